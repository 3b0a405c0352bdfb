"""A broadcast that takes a command for each of very many rows."""

import recipes


def files():
    graph = recipes.Graph()
    graph.placeholder("x", [2, 1, 2, 1, 2, 1, 2, 1])
    graph.placeholder("x2", [1, 64, 1, 64, 1, 64, 1, 8])
    graph.node("Add", "y", ["x", "x2"], recipes.FLOAT)
    return {"model.pb": graph.serialize()}
