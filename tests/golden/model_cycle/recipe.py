"""Two nodes that feed each other."""

import recipes


def files():
    graph = recipes.one_node("Add", inputs=["x", "z"])
    graph.node("Relu", "z", ["y"], recipes.FLOAT)
    return {"model.pb": graph.serialize()}
