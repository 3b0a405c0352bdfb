"""Samples of which one is a hundred times as large as the others: by the mean of the samples'
ranges, the default, it is clipped."""

import numpy as np

import recipes
from onnxmodel import model, node


def files():
    samples = np.ones((16, 4), np.float32)
    samples[3] = 100
    net = model([node("MatMul", ["x", "w"], ["y"])], [("x", [1, 4])], [("y", [1, 3])],
                {"w": recipes.ramp(4, 3)})
    return {"model.onnx": net, "samples.npy": recipes.npy(samples)}
