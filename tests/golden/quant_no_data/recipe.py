"""A float model for an integer core; data that name a missing input, are of another shape."""

import numpy as np

import recipes

CONFIG = """CORENAME: X2_1204
MODEL_FILE: model.pb
OUTPUT_FILE: model.h
INPUT_OPS: {x: [1, 4]}
OUTPUT_OPS: [y]
QUANT:
  calibration_data: samples.npy
"""


def files():
    return {"model.pb": recipes.dense().serialize(),
            "shape.yaml": CONFIG.encode(),
            "samples.npy": recipes.npy(np.zeros((2, 5), np.float32)),
            "input.yaml": CONFIG.replace("samples.npy", "{z: samples.npy}").encode()}
