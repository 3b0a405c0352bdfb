"""Layers that the fake-quant options leave in float, where an integer core is to compute them."""

import numpy as np

import recipes

CONFIG = b"""CORENAME: X2_1204
MODEL_FILE: model.pb
OUTPUT_FILE: model.h
INPUT_OPS: {x: [1, 4]}
OUTPUT_OPS: [z]
QUANT:
  calibration_data: samples.npy
  fake_quant_operators_for_debug: FullyConnected
"""


def files():
    graph = recipes.dense()
    recipes.dense(graph, name="z", source="y", weight="v", shape=(3, 2))
    return {"model.pb": graph.serialize(),
            "samples.npy": recipes.npy(np.ones((2, 4), np.float32)),
            "config.yaml": CONFIG}
