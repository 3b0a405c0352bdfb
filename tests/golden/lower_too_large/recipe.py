"""A net whose values between operators, and whose output, are above what commands reach."""

import recipes


def files():
    graph = recipes.Graph()
    graph.placeholder("x", [1, 1 << 27])
    graph.node("Relu", "a", ["x"], recipes.FLOAT)
    graph.node("Tanh", "b", ["a"], recipes.FLOAT)
    graph.node("Relu", "y", ["b"], recipes.FLOAT)
    return {"model.pb": graph.serialize()}
