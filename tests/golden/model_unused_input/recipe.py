"""A declared input that reaches no output."""

import recipes


def files():
    graph = recipes.dense()
    graph.placeholder("unused", [1, 2])
    return {"model.pb": graph.serialize()}
