"""Operators of which the core has none, and integers at run time."""

import recipes  # noqa: F401  (finds the models folder)
from onnxmodel import model, node


def files():
    nodes = [node("Max", ["x", "z"], ["y"]), node("Add", ["i", "i"], ["j"])]
    return {"model.onnx": model(nodes, [("x", [1, 4]), ("z", [1, 4]), ("i", [2], 7)],
                                [("y", [1, 4]), ("j", [2], 7)])}
