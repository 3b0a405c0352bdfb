#!/usr/bin/python3
"""Adds up ctest's JUnit files: names what failed, with the end of its output, or was skipped, and
ends with one line of totals.

    count_tests.py FILE...      exit 1 where a test failed, or where there was none
"""

import os
import sys
import xml.etree.ElementTree as ElementTree

LINES = 15  # of each failed test's output
WIDTH = 300
MOST_SHOWN = 5  # failed tests with their output


def end_of_output(case):
    """The last lines that a test wrote, as CI shows the end of a long log alone."""
    lines = (case.findtext("system-out") or "").rstrip().splitlines()
    return [f"   | {line[:WIDTH]}" for line in lines[-LINES:]]


def main():
    passed = failed = skipped = 0
    for path in sys.argv[1:]:
        if not os.path.exists(path):
            continue
        suite = os.path.basename(path).replace(".junit.xml", "")
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            name = f"{case.get('name')} ({suite})"
            if case.find("failure") is not None or case.get("status") == "fail":
                failed += 1
                print(f"failed: {name}")
                if failed <= MOST_SHOWN:
                    for line in end_of_output(case):
                        print(line)
            elif case.find("skipped") is not None or case.get("status") != "run":
                skipped += 1
                print(f"skipped: {name}")
            else:
                passed += 1
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
