"""An entry that claims to decompress beyond what any compression can do, and one too large."""

import struct

import torch_recipes as t


def claim(data, size):
    """The archive with another size of data/0 in its directory, deflated as it says."""
    at = data.rindex(b"net/data/0") - 46
    data = bytearray(data)
    data[at + 10:at + 12] = struct.pack("<H", 8)
    data[at + 24:at + 28] = struct.pack("<I", size)
    return bytes(data)


def files():
    deep = b"\x80\x02" + b"]" * 300 + b"a" * 299 + b"."
    return t.cases({"bomb": claim(t.archive(), 200 << 20), "large": claim(t.archive(), 3 << 30),
                    "deep": t.archive(deep)})
