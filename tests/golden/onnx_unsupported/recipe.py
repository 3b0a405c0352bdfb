"""Operators, domains and modes that cannot be imported: one diagnostic a node, all at once."""

import recipes  # noqa: F401  (finds the models folder)
from onnxmodel import model, node


def files():
    nodes = [node("TopK", ["x", "k"], ["top", "at"]), node("Mystery", ["x"], ["a"], domain="acme"),
             node("Sin", ["x"], ["b"]), node("MaxPool", ["c"], ["d", "e"], kernel_shape=[2, 2])]
    return {"model.onnx": model(nodes, [("x", [1, 4]), ("k", [1], 7), ("c", [1, 1, 4, 4])],
                                [("top", [1, 2]), ("a", [1, 4]), ("b", [1, 4]),
                                 ("d", [1, 1, 3, 3]), ("e", [1, 1, 3, 3], 7)])}
