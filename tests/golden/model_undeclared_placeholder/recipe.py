"""An input that INPUT_OPS leaves out."""

import recipes


def files():
    graph = recipes.dense()
    graph.placeholder("gain", [1, 3])
    graph.node("Mul", "z", ["y", "gain"], recipes.FLOAT)
    return {"model.pb": graph.serialize()}
