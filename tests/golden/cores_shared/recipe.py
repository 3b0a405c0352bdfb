"""A wide map between two narrow ones: 64 x 64 pixels of 8 channels, then of 32, then 16 x 16."""

import numpy as np
import recipes
from graphdef import Graph


def files():
    graph = Graph()
    graph.placeholder("x", [1, 64, 64, 8])

    def convolve(name, source, kernel, stride):
        graph.const(f"{name}/w", recipes.ramp(*kernel))
        graph.node("Conv2D", name, [source, f"{name}/w"],
                   {**recipes.FLOAT, "strides": [1, stride, stride, 1], "padding": b"SAME",
                    "data_format": b"NHWC"})

    convolve("wide", "x", (1, 1, 8, 32), 1)
    convolve("y", "wide", (3, 3, 32, 8), 4)
    random = np.random.default_rng(22)
    data = random.normal(0, 1, (4, 64, 64, 8)).astype(np.float32)
    return {"model.pb": graph.serialize(), "x.npy": recipes.npy(data)}
