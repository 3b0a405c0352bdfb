"""A reciprocal of 16-bit values by a table of 256 steps, as the config asks for."""

import numpy as np

import recipes


def files():
    graph = recipes.one_node("Reciprocal")
    samples = np.geomspace(0.05, 10, 64, dtype=np.float32).reshape(16, 4)
    return {"model.pb": graph.serialize(), "samples.npy": recipes.npy(samples)}
