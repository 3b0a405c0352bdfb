"""A name longer than any."""

import recipes


def files():
    graph = recipes.dense()
    graph.node("Relu", "n" * 5000, ["y"], recipes.FLOAT)
    return {"model.pb": graph.serialize()}
