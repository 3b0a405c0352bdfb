"""A statistics file of another model, and one that is none."""

import recipes

CONFIG = """CORENAME: X2_1204
MODEL_FILE: model.pb
OUTPUT_FILE: model.h
INPUT_OPS: {x: [1, 4]}
OUTPUT_OPS: [y]
QUANT: {statistic_file: none.json}
"""


def files():
    return {"model.pb": recipes.dense().serialize(),
            "statistics.json": b"{}",
            "none.yaml": CONFIG.encode(),
            "none.json": b"[1]"}
