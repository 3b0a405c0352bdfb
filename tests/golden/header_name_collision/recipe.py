"""Two outputs that are one C identifier."""

import recipes


def files():
    graph = recipes.dense(name="net/y")
    graph.node("Relu", "net_y", ["net/y"], recipes.FLOAT)
    return {"model.pb": graph.serialize()}
