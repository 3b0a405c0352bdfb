"""Pow with an exponent that is computed."""

import recipes


def files():
    graph = recipes.one_node("Pow", inputs=["x", "x2"])
    graph.placeholder("x2", [1, 4])
    return {"model.pb": graph.serialize()}
