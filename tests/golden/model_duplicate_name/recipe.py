"""Two nodes of one name."""

import recipes


def files():
    graph = recipes.one_node("Relu", inputs=["x"])
    graph.node("Tanh", "y", ["x"], recipes.FLOAT)
    return {"model.pb": graph.serialize()}
