"""A quantized model with one input that it does not quantize; QUANT is given and does not apply."""

import io

import numpy as np

import recipes  # noqa: F401  (finds the models folder)
from onnxmodel import model, node


def files():
    samples = io.BytesIO()
    ramp = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 1, 4)
    np.savez(samples, x=ramp, z=ramp)
    constants = {"s": np.float32(0.0625), "zero": np.int8(0)}
    nodes = [node("QuantizeLinear", ["x", "s", "zero"], ["q"]),
             node("DequantizeLinear", ["q", "s", "zero"], ["f"]),
             node("Mul", ["f", "z"], ["product"]),
             node("QuantizeLinear", ["product", "s", "zero"], ["p"]),
             node("DequantizeLinear", ["p", "s", "zero"], ["y"])]
    return {"model.onnx": model(nodes, [("x", [1, 4]), ("z", [1, 4])], [("y", [1, 4])], constants),
            "samples.npz": samples.getvalue()}
