"""resize_degrade_to_nearest on a net that interpolates an image, and on one that does not."""

import numpy as np

import recipes
from onnxmodel import model, node

CONFIG = """CORENAME: X2_1204
FRAMEWORK: ONNX
MODEL_FILE: %s.onnx
OUTPUT_FILE: model.h
QUANT: {calibration_data: samples.npy, resize_degrade_to_nearest: true}
"""


def files():
    samples = np.random.RandomState(1).uniform(-1, 1, (8, 2, 4, 4)).astype(np.float32)
    sizes = {"sizes": np.array([1, 2, 8, 6], np.int64)}
    resize = model([node("Resize", ["x", "", "", "sizes"], ["y"], mode="linear")],
                   [("x", [1, 2, 4, 4])], [("y", [1, 2, 8, 6])], sizes)
    plain = model([node("Relu", ["x"], ["y"])], [("x", [1, 2, 4, 4])], [("y", [1, 2, 4, 4])])
    return {"resize.onnx": resize, "plain.onnx": plain, "samples.npy": recipes.npy(samples),
            "resize.yaml": (CONFIG % "resize").encode(), "plain.yaml": (CONFIG % "plain").encode()}
