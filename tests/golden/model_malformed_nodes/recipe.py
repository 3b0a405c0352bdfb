"""A node without operator, and an unreadable input."""

import recipes


def files():
    graph = recipes.dense()
    graph.node("", "nameless", ["y"])
    graph.node("Relu", "z", ["y:none"], recipes.FLOAT)
    return {"model.pb": graph.serialize()}
