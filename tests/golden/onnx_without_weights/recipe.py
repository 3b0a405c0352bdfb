"""An ONNX file that was saved without its weights, and one that lacks a single one of them."""

import recipes
from onnxmodel import model, node


def files():
    nodes = [node("MatMul", ["x", "fc1.weight"], ["h"]), node("MatMul", ["h", "fc2.weight"], ["y"])]
    ends = ([("x", [1, 4])], [("y", [1, 4])])
    config = "CORENAME: GRUS\nFRAMEWORK: ONNX\nMODEL_FILE: %s.onnx\nOUTPUT_FILE: model.h\n"
    return {"all.onnx": model(nodes, *ends),
            "one.onnx": model(nodes, *ends, {"fc1.weight": recipes.ramp(4, 4)}),
            "all.yaml": (config % "all").encode(), "one.yaml": (config % "one").encode()}
