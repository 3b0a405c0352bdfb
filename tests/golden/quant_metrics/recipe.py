"""Data and labels of a metric that do not fit the model, or the metric."""

import numpy as np

import recipes

CONFIG = """CORENAME: X2_1204
MODEL_FILE: model.pb
OUTPUT_FILE: model.h
INPUT_OPS: {x: [1, 4]}
OUTPUT_OPS: [y]
QUANT: {calibration_data: samples.npy, data: DATA, label: LABEL, metric: [METRIC]}
"""


def files():
    def config(data, label, metric):
        text = CONFIG.replace("DATA", data).replace("LABEL", label).replace("METRIC", metric)
        return text.encode()

    return {"model.pb": recipes.dense().serialize(),
            "samples.npy": recipes.npy(np.ones((2, 4), np.float32)),
            "wide.npy": recipes.npy(np.ones((2, 5), np.float32)),
            "labels.npy": recipes.npy(np.array([0, 1], np.int32)),
            "data.yaml": config("wide.npy", "labels.npy", "topk"),
            "label.yaml": config("samples.npy", "samples.npy", "topk"),
            "metric.yaml": config("samples.npy", "labels.npy", "auc")}
