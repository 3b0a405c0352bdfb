"""What scripts of Compass's users import, on the files that npuc writes."""
