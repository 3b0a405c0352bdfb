"""A constant whose bytes do not fill its shape."""

import recipes


def files():
    shape = b"\x12\x02\x08\x04\x12\x02\x08"  # the dimensions 4 and then ...
    data = recipes.dense().serialize()
    return {"model.pb": data.replace(shape + b"\x03", shape + b"\x05")}
