"""Strategies without what they need: ranges of the model's own, data to measure on."""

import numpy as np

import recipes

CONFIG = """CORENAME: X2_1204
MODEL_FILE: model.pb
OUTPUT_FILE: model.h
INPUT_OPS: {x: [1, 4]}
OUTPUT_OPS: [y]
QUANT:
"""


def files():
    return {"model.pb": recipes.dense().serialize(),
            "samples.npy": recipes.npy(np.arange(8, dtype=np.float32).reshape(2, 4)),
            "calibrate.yaml": (CONFIG + "  calibration_data: samples.npy\n"
                               "  save_statistic_info: true\n").encode(),
            "auto.yaml": (CONFIG + "  statistic_file: out/statistics.json\n"
                          "  calibration_strategy_for_activation: auto\n").encode()}
