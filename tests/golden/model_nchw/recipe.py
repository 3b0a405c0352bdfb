"""A channels-first pooling; what follows ends the import."""

import recipes


def files():
    graph = recipes.Graph()
    graph.placeholder("x", [1, 2, 4, 4])
    graph.node("MaxPool", "pool", ["x"], {**recipes.FLOAT, "ksize": [1, 1, 2, 2],
                                          "strides": [1, 1, 2, 2], "padding": "VALID",
                                          "data_format": "NCHW"})
    graph.node("MatrixDeterminant", "y", ["pool"], recipes.FLOAT)
    return {"model.pb": graph.serialize()}
