"""KEEP_STATES of an LSTM without states in the model: a layer's name, a wrong one, and a model
that has no such layer; an LSTM whose state is the model's input is none of KEEP_STATES' either."""

import numpy as np

import recipes
from onnxmodel import model, node

CONFIG = """CORENAME: GRUS
FRAMEWORK: ONNX
MODEL_FILE: %s.onnx
OUTPUT_FILE: %s.h
KEEP_STATES: [%s]
"""


def lstm(*states):
    weights = {"w": recipes.ramp(1, 8, 3), "r": recipes.ramp(1, 8, 2)}
    operands = ["x", "w", "r", "", "", *states]
    return model([node("LSTM", operands, ["memory"], hidden_size=2)],
                 [("x", [4, 1, 3])] + [(s, [1, 1, 2]) for s in states], [("memory", [4, 1, 1, 2])],
                 weights)


def files():
    begins = {"w": recipes.ramp(1, 8, 3), "r": recipes.ramp(1, 8, 2),
              "h": np.full((1, 1, 2), 0.5, np.float32)}
    begun = model([node("LSTM", ["x", "w", "r", "", "", "h"], ["memory"],
                        hidden_size=2)], [("x", [4, 1, 3])], [("memory", [4, 1, 1, 2])], begins)
    relu = model([node("Relu", ["x"], ["y"])], [("x", [1, 4])], [("y", [1, 4])])
    nets = {"named": (lstm(), "memory"), "wrong": (lstm(), "memry"), "begun": (begun, "'*'"),
            "given": (lstm("h0", "c0"), "memory"), "none": (relu, "'*'")}
    found = {f"{name}.onnx": data for name, (data, _) in nets.items()}
    for name, (_, asked) in nets.items():
        found[f"{name}.yaml"] = (CONFIG % (name, name, asked)).encode()
    return found
