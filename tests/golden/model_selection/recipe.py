"""Models that compare, choose and look up at run time: what they become, and what has no form."""

import numpy as np

import recipes  # noqa: F401  (finds the models folder)
from onnxmodel import model, node

CONFIG = """CORENAME: GRUS
FRAMEWORK: ONNX
MODEL_FILE: %s.onnx
OUTPUT_FILE: %s.h
"""


def files():
    table = np.arange(12, dtype=np.float32).reshape(4, 3)
    selects = [node("Greater", ["x", "limit"], ["above"]),
               node("Where", ["above", "x", "limit"], ["cut"]),
               node("ArgMax", ["cut"], ["best"], axis=1),
               node("Gather", ["table", "ids"], ["rows"])]
    refused = [node("Div", ["ids", "two"], ["halves"]), node("Gather", ["long", "ids"], ["rows"]),
               node("Cast", ["x"], ["bytes"], to=2)]
    inputs = [("x", [1, 4]), ("ids", [2], 7)]
    found = {
        "selects": model(selects, inputs, [("best", [1, 1], 7), ("rows", [2, 3])],
                         {"limit": np.float32(0.5), "table": table}),
        "refused": model(refused, inputs,
                         [("halves", [2], 7), ("rows", [2]), ("bytes", [1, 4], 2)],
                         {"two": np.int64(2), "long": np.zeros(4000, np.float32)})}
    configs = {f"{name}.yaml": (CONFIG % (name, name)).encode() for name in found}
    return {**configs, **{f"{name}.onnx": data for name, data in found.items()}}
