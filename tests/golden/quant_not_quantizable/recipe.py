"""A model that computes integers between its inputs and outputs."""

import io

import numpy as np

import recipes  # noqa: F401  (finds the models folder)
from onnxmodel import model, node


def files():
    samples = io.BytesIO()
    np.savez(samples, x=np.zeros((2, 1, 4), np.float32), i=np.zeros((2, 2), np.int64))
    nodes = [node("Relu", ["x"], ["y"]), node("Add", ["i", "i"], ["j"])]
    return {"model.onnx": model(nodes, [("x", [1, 4]), ("i", [2], 7)],
                                [("y", [1, 4]), ("j", [2], 7)]),
            "samples.npz": samples.getvalue()}
