"""Operators and modes that cannot be imported: one diagnostic an operator, all at once."""

import recipes  # noqa: F401  (finds the models folder)
from tflitemodel import Net


def files():
    net = Net("m")
    x = net.input("x", (1, 4))
    a = net.op("L2_POOL_2D", [x], [(1, 4)], names=["a"])
    b = net.op("CONCATENATION", [x, x], [(1, 8)], "ConcatenationOptions", {"axis": 5}, names=["b"])
    c = net.op("CONV_2D", [x, x], [(1, 4)], names=["c"])
    return {"model.tflite": net.output(a, b, c).to_bytes()}
