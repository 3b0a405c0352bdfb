"""An array with a value that is no byte."""

import recipes


def files():
    return {"model.h": recipes.header().replace(b"0x70,", b"0x170,")}
