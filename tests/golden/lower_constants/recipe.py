"""A masking constant beyond fp16; a weight too small for 8-bit codes."""

import recipes


def files():
    graph = recipes.dense(name="scores", values=recipes.ramp(4, 3) * 1e-6)
    graph.const("mask", recipes.np.array([0, -1e9, 0], recipes.np.float32))
    graph.node("Add", "y", ["scores", "mask"], recipes.FLOAT)
    return {"model.pb": graph.serialize()}
