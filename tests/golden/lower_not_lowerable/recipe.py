"""A grouped convolution whose weights are computed at run time."""

import recipes


def files():
    graph = recipes.Graph()
    graph.placeholder("x", [1, 4, 4, 4])
    graph.placeholder("w", [3, 3, 2, 4])
    graph.node("Conv2D", "y", ["x", "w"],
               {**recipes.FLOAT, "strides": [1, 1, 1, 1], "padding": "VALID"})
    return {"model.pb": graph.serialize()}
