"""A difference of two inputs that are nearly equal: eight bits of the inputs leave little of it."""

import numpy as np

import recipes
from onnxmodel import model, node

CONFIG = """CORENAME: X2_1204
FRAMEWORK: ONNX
MODEL_FILE: model.onnx
OUTPUT_FILE: model.h
QUANT: {calibration_data: samples.npy, %s}
"""


def files():
    random = np.random.RandomState(1)
    samples = np.repeat(random.uniform(-50, 50, (16, 1)), 4, 1)
    samples[:, 1::2] += random.uniform(-1, 1, (16, 2))
    weight = np.array([[1, 0.5], [-1, -0.5], [0.5, 1], [-0.5, -1]], np.float32)
    net = model([node("MatMul", ["x", "w"], ["y"])], [("x", [1, 4])], [("y", [1, 2])],
                {"w": weight})
    return {"model.onnx": net, "samples.npy": recipes.npy(samples.astype(np.float32)),
            "best.yaml": (CONFIG % "preset: best").encode(),
            "narrow.yaml": (CONFIG % "preset: best, least_sqnr: 0").encode(),
            "wrong.yaml": (CONFIG % "least_sqnr: -3").encode()}
