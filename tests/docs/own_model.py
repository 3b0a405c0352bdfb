"""A newcomer's own model, as README.md takes it for given: `my.pb`, a frozen graph whose net begins
behind the node Reshape and ends at labels_softmax, and `features.npy`, inputs for it."""

import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "models"))
import graphdef  # noqa: E402

FEATURES, HIDDEN, LABELS, ITEMS = 250, 64, 10, 8


def write(folder):
    """Writes both into the folder; what the net answers, [items, labels], by NumPy in double."""
    random = np.random.RandomState(11)
    real = {"T": graphdef.DType(np.float32)}
    graph = graphdef.Graph()
    values = random.normal(0, 1, (ITEMS, 1, FEATURES)).astype(np.float32)
    np.save(os.path.join(folder, "features.npy"), values)
    values = values[:, 0].astype(np.float64)
    last = graph.placeholder("audio", [1, 5, 50])
    shape = graph.const("shape", np.array([1, FEATURES], np.int32))
    last = graph.node("Reshape", "Reshape", [last, shape],
                      {**real, "Tshape": graphdef.DType(np.int32)})
    for name, wide, out in (("hidden", FEATURES, HIDDEN), ("labels", HIDDEN, LABELS)):
        weights = random.normal(0, wide ** -0.5, (wide, out)).astype(np.float32)
        bias = random.normal(0, 0.1, out).astype(np.float32)
        values = values @ weights.astype(np.float64) + bias
        last = graph.node("MatMul", name, [last, graph.const(f"{name}/w", weights)], real)
        last = graph.node("BiasAdd", f"{name}/sum", [last, graph.const(f"{name}/b", bias)], real)
        if name == "hidden":
            values = np.maximum(values, 0)
            last = graph.node("Relu", "hidden/relu", [last], real)
    graph.node("Softmax", "labels_softmax", [last], real)
    with open(os.path.join(folder, "my.pb"), "wb") as f:
        f.write(graph.serialize())
    values = np.exp(values - values.max(1, keepdims=True))
    return values / values.sum(1, keepdims=True)
