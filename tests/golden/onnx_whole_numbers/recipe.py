"""A net of whole numbers in floats, which requantizes as DORY writes it."""

import numpy as np

import recipes  # noqa: F401  (finds the models folder)
from onnxmodel import model, node

INT64, FLOAT = 7, 1


def files():
    nodes = [node("MatMul", ["x", "weight"], ["s"]), node("Mul", ["s", "kappa"], ["a"]),
             node("Cast", ["a"], ["b"], to=INT64), node("Mul", ["b", "three"], ["c"]),
             node("Div", ["c", "divisor"], ["d"]), node("Cast", ["d"], ["e"], to=FLOAT),
             node("Relu", ["e"], ["y"])]
    net = model(nodes, [("x", [1, 4])], [("y", [1, 4])],
                {"weight": np.eye(4, dtype=np.float32), "kappa": np.float32([100]),
                 "three": np.array([3], np.int64), "divisor": np.array([256], np.int64)})
    config = "CORENAME: {}\nFRAMEWORK: ONNX\nMODEL_FILE: model.onnx\nOUTPUT_FILE: model.h\n"
    return {"model.onnx": net, "grus.yaml": config.format("GRUS").encode(),
            "apus.yaml": config.format("APUS").encode()}
