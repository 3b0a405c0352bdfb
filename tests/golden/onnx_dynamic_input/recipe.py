"""Inputs whose dimensions nobody states: an open first one is one item, others must be stated."""

import recipes  # noqa: F401  (finds the models folder)
from onnxmodel import model, node


def files():
    return {"model.onnx": model([node("Add", ["x", "state"], ["y"])],
                                [("x", ["batch", 4]), ("state", ["batch", "width"])],
                                [("y", ["batch", 4])])}
