"""What stands where a config or a core is expected; a torch config without inputs."""

import recipes  # noqa: F401  (finds the models folder)
from onnxmodel import model, node

CHIP = """CORENAME: GX8002
FRAMEWORK: ONNX
MODEL_FILE: model.onnx
OUTPUT_FILE: model.h
"""
TORCH = """CORENAME: GRUS
FRAMEWORK: PT
MODEL_FILE: model.pt
OUTPUT_FILE: model.h
"""


def files():
    return {"model.onnx": model([node("Relu", ["x"], ["y"])], [("x", [1, 4])], [("y", [1, 4])]),
            "chip.yaml": CHIP.encode(), "torch.yaml": TORCH.encode()}
