"""A quantized model whose input goes through two scales that 16 bits do not hold both."""

import numpy as np

import recipes  # noqa: F401  (finds the models folder)
from onnxmodel import model, node


def files():
    nodes = []
    for name in ("fine", "wide"):
        nodes += [node("QuantizeLinear", ["x", name, "z"], [name + "_q"]),
                  node("DequantizeLinear", [name + "_q", name, "z"], [name + "_y"])]
    constants = {"fine": np.float32(0.0001), "wide": np.float32(1), "z": np.int8(0)}
    return {"model.onnx": model(nodes, [("x", [1, 4])], [("fine_y", [1, 4]), ("wide_y", [1, 4])],
                                constants)}
