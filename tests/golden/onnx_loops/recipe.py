"""Loops and branches that cannot be unrolled: counts that flow, graphs that do not fit."""

import numpy as np
import recipes  # noqa: F401  (finds the models folder)
from onnxmodel import graph, model, node


def files():
    turn, more, state = ("turn", [], 7), ("more", [], 9), ("s", [4])
    body = graph([node("Add", ["s", "x"], ["sum"])], [turn, more, state], [more, ("sum", [4])])
    mystery = graph([node("Mystery", ["s"], ["sum"])], [turn, more, state], [more, ("sum", [4])])
    short = graph([node("Neg", ["turn"], ["n"])], [turn], [("n", [], 7)])
    branch = graph([node("Neg", ["x"], ["n"])], [], [("n", [4])])
    double = graph([node("Concat", ["x", "x"], ["n"], axis=0)], [], [("n", [8])])
    nodes = [node("Loop", ["count", "", "x"], ["a"], body=body),
             node("Loop", ["three", "", "x"], ["b"], body=mystery),
             node("Loop", ["three", "", "x"], ["c"], body=short),
             node("Loop", ["", "", "x"], ["d"], body=body),
             node("If", ["choice"], ["e"], then_branch=branch, else_branch=double),
             node("Scan", ["x", "x"], ["f"], body=short, num_scan_inputs=1)]
    return {"model.onnx": model(nodes, [("x", [4]), ("count", [], 7), ("choice", [], 9)],
                                [(name, [4]) for name in "abcdef"],
                                {"three": np.array(3, np.int64)})}
