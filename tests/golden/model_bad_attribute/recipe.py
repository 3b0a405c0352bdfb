"""A reduction's axis where a flag is expected."""

import recipes


def files():
    graph = recipes.Graph()
    graph.placeholder("x", [1, 4])
    graph.const("w", recipes.ramp(4, 3))
    graph.node("MatMul", "y", ["x", "w"], {**recipes.FLOAT, "transpose_b": "yes"})
    return {"model.pb": graph.serialize()}
