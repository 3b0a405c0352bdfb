"""A masking constant beyond fp16; one with values below it; a weight too small for 8-bit codes."""

import recipes


def files():
    graph = recipes.dense(name="scores", values=recipes.ramp(4, 3) * 1e-6)
    graph.const("mask", recipes.np.array([0, -1e9, 0], recipes.np.float32))
    graph.const("epsilon", recipes.np.array([1e-12, 1, -1e-9], recipes.np.float32))
    graph.node("Mul", "scaled", ["scores", "epsilon"], recipes.FLOAT)
    graph.node("Add", "y", ["scaled", "mask"], recipes.FLOAT)
    return {"model.pb": graph.serialize()}
