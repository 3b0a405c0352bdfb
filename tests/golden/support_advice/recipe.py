"""A convolution whose kernel is even: LEO's list calls odd ones faster."""

import recipes


def files():
    graph = recipes.Graph()
    graph.placeholder("x", [1, 8, 8, 2])
    graph.const("w", recipes.ramp(2, 2, 2, 4))
    graph.node("Conv2D", "y", ["x", "w"],
               {**recipes.FLOAT, "strides": [1, 1, 1, 1], "padding": b"VALID",
                "data_format": b"NHWC"})
    return {"model.pb": graph.serialize()}
