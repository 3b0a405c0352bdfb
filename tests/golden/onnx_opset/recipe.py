"""An operator set of the future."""

import recipes  # noqa: F401  (finds the models folder)
from onnxmodel import model, node


def files():
    return {"model.onnx": model([node("Relu", ["x"], ["y"])], [("x", [1, 4])], [("y", [1, 4])],
                                opset=99)}
