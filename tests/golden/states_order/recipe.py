"""State outputs in another order than the state inputs, behind a prediction."""

import recipes


def files():
    graph = recipes.dense()
    for state in ("h", "c"):
        graph.placeholder(state, [1, 3])
        graph.node("Add", state + "_out", ["y", state], recipes.FLOAT)
    return {"model.pb": graph.serialize()}
