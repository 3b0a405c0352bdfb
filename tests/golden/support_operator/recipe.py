"""An operator that the core's list does not hold."""

import recipes


def files():
    graph = recipes.one_node("Maximum", inputs=["x", "x2"])
    graph.placeholder("x2", [1, 4])
    return {"model.pb": graph.serialize()}
