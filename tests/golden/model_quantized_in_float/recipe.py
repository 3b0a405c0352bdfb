"""A quantized model on a core that computes in fp16: it compiles in float, with one note."""

import numpy as np

import recipes  # noqa: F401  (finds the models folder)
from onnxmodel import model, node


def files():
    scale, zero = ("s", np.float32(0.0625)), ("z", np.uint8(0))
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["q"]),
             node("DequantizeLinear", ["q", "s", "z"], ["f"]),
             node("Neg", ["f"], ["n"]),
             node("QuantizeLinear", ["n", "s", "z"], ["p"]),
             node("DequantizeLinear", ["p", "s", "z"], ["y"])]
    return {"model.onnx": model(nodes, [("x", [1, 4])], [("y", [1, 4])],
                                dict([scale, zero]))}
