"""Programs of PaddlePaddle that are refused: another file, an input of unknown size, parameters
that are not there or not the program's, operators that are not supported."""

import struct

CONFIG = "CORENAME: GRUS\nFRAMEWORK: PADDLE\nMODEL_FILE: {}\nOUTPUT_FILE: model.h\n"


def field(number, content):
    """A protobuf field: bytes, or a number."""
    def varint(value):
        out = b""
        while value > 127:
            out += bytes([value & 127 | 128])
            value >>= 7
        return out + bytes([value])
    if isinstance(content, int):
        return varint(number << 3) + varint(content & (1 << 64) - 1)
    return varint(number << 3 | 2) + varint(len(content)) + content


def argument(parameter, name):
    return field(1, parameter.encode()) + field(2, name.encode())


def op(kind, operands, result):
    return field(4, b"".join([field(1, argument(p, n)) for p, n in operands] +
                             [field(2, argument("Out", result)), field(3, kind.encode())]))


def variable(name, dims, persistable=0):
    tensor = field(1, 5) + b"".join(field(2, d) for d in dims)
    kind = field(1, 7) + field(3, field(1, tensor))
    return field(3, field(1, name.encode()) + field(2, kind) + field(3, persistable))


def program(*parts):
    return field(1, field(1, 0) + field(2, -1) + b"".join(parts))


def parameter(dims, values):
    desc = field(1, 5) + b"".join(field(2, d) for d in dims)
    return (bytes(16) + struct.pack("<i", len(desc)) + desc +
            struct.pack(f"<{len(values)}f", *values))


def files():
    feed, fetch = op("feed", [("X", "feed")], "x"), op("fetch", [("X", "y")], "fetch")
    dense = program(variable("x", [1, 2]), variable("w", [2, 1], 1), feed,
                    op("mul", [("X", "x"), ("Y", "w")], "y"), fetch)
    found = {
        "other.pdmodel": b"{\"base_code\": {\"magic\": \"pir\"}}",
        "open.pdmodel": program(variable("x", [1, -1]), feed, op("relu", [("X", "x")], "y"), fetch),
        "alone.pdmodel": dense,
        "wrong.pdmodel": dense,
        "wrong.pdiparams": parameter([1, 2], [1.0, 2.0]),
        "ops.pdmodel": program(variable("x", [1, 2]), feed, op("while", [("X", "x")], "t"),
                               op("topk_v2", [("X", "t")], "y"), fetch),
        "other.pdiparams": b"",
        "ops.pdiparams": b"",
        "open.pdiparams": b"",
    }
    for name in ("other", "open", "alone", "wrong", "ops"):
        found[f"{name}.yaml"] = CONFIG.format(f"{name}.pdmodel").encode()
    return found
