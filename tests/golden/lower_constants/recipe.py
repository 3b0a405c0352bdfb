"""Masking constants beyond fp16, one of them a command's number; others with values below it; a
weight too small for 8-bit codes."""

import recipes


def files():
    graph = recipes.dense(name="scores", values=recipes.ramp(4, 3) * 1e-6)
    graph.const("mask", recipes.np.array([0, -1e9, 0], recipes.np.float32))
    graph.const("epsilon", recipes.np.array([1e-12, 1, -1e-9], recipes.np.float32))
    graph.node("Mul", "scaled", ["scores", "epsilon"], recipes.FLOAT)
    graph.node("Add", "shifted", ["scaled", "mask"], recipes.FLOAT)
    graph.const("lowest", recipes.np.float32(-3.4e38))
    graph.const("tiny", recipes.np.float32(1e-12))
    graph.node("Mul", "masked", ["shifted", "lowest"], recipes.FLOAT)
    graph.node("Add", "y", ["masked", "tiny"], recipes.FLOAT)
    return {"model.pb": graph.serialize()}
