"""Inputs whose dimensions nobody states."""

import recipes  # noqa: F401  (finds the models folder)
from onnxmodel import model, node


def files():
    return {"model.onnx": model([node("Add", ["x", "state"], ["y"])],
                                [("x", ["batch", 4]), ("state", ["batch", 4])],
                                [("y", ["batch", 4])])}
