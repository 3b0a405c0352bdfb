"""A .cfg whose model is refused: the fix names YAML keys, a note says what a .cfg calls them."""

import numpy as np

import recipes  # noqa: F401  (finds the models folder)
from onnxmodel import model, node

CONFIG = """[Parser]
model_type = ONNX
input_model = model.onnx
model_name = m
input = x
input_shape = [1,4]
output = z
[Optimizer]
calibration_data = samples.npy
"""


def files():
    nodes = [node("Relu", ["x"], ["r"]), node("Mystery", ["r"], ["y"], domain="acme"),
             node("Tanh", ["y"], ["z"])]
    return {"model.onnx": model(nodes, [("x", [1, 4])], [("z", [1, 4])]),
            "job.cfg": CONFIG.encode(),
            "samples.npy": recipes.npy(np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4))}
