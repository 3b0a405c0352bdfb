"""An archive cut short, one with a wrong checksum, one whose directory is elsewhere."""

import torch_recipes as t


def files():
    whole = t.archive()
    flipped = whole.replace(b"\0\0\x80\x3f" * 4, b"\0\0\x80\x3e" * 4)
    return t.cases({"cut": whole[:-30], "checksum": flipped, "shifted": b"PK" + whole[3:]})
