"""Forty broadcasts over alternating dimensions, tens of thousands of copies each."""

import numpy as np
import recipes


def files():
    graph = recipes.Graph()
    graph.placeholder("x", [8, 1] * 4)
    graph.placeholder("x2", [1, 8] * 4)
    for i in range(40):
        graph.const(f"c{i}", np.float32(i + 2))
        graph.node("Mul", f"m{i}", ["x", f"c{i}"], recipes.FLOAT)
        graph.node("Add", f"y{i}", [f"m{i}", "x2"], recipes.FLOAT)
    return {"model.pb": graph.serialize()}
