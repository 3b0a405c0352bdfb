"""A bias so large beside its layer's weights that its integer needs more bits than bias_bits."""

import numpy as np

import recipes

CONFIG = b"""CORENAME: X2_1204
MODEL_FILE: model.pb
OUTPUT_FILE: model.h
INPUT_OPS: {x: [1, 4]}
OUTPUT_OPS: [z]
QUANT: {calibration_data: samples.npy, bias_bits: 16}
"""


def files():
    graph = recipes.dense(values=1e-6 * recipes.ramp(4, 3))
    graph.const("b", np.array([1, -2, 3], np.float32))
    graph.node("Add", "z", ["y", "b"], recipes.FLOAT)
    return {"model.pb": graph.serialize(),
            "samples.npy": recipes.npy(np.ones((2, 4), np.float32)),
            "config.yaml": CONFIG}
