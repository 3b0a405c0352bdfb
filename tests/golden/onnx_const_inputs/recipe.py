"""Values and sizes that the model's inputs cannot have; a config that has them right compiles."""

import recipes  # noqa: F401  (finds the models folder)
from onnxmodel import model, node

GOOD = """CORENAME: GRUS
FRAMEWORK: ONNX
MODEL_FILE: model.onnx
OUTPUT_FILE: model.h
CONST_INPUTS: {rate: 2, lengths: [1, 2]}
DIMS: {time: 4}
"""


def files():
    nodes = [node("Cast", ["rate"], ["factor"], to=1), node("Mul", ["x", "factor"], ["y"]),
             node("Cast", ["lengths"], ["z"], to=1)]
    inputs = [("x", ["batch", "time"]), ("rate", [], 7), ("lengths", ["batch"], 7)]
    return {"model.onnx": model(nodes, inputs, [("y", ["batch", "time"]), ("z", ["batch"])]),
            "good.yaml": GOOD.encode()}
