"""Matrices whose sides do not fit."""

import recipes


def files():
    graph = recipes.Graph()
    graph.placeholder("x", [1, 4])
    graph.const("w", recipes.ramp(5, 3))
    graph.node("MatMul", "y", ["x", "w"], recipes.FLOAT)
    return {"model.pb": graph.serialize()}
