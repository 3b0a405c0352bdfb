"""An input of integers."""

import recipes


def files():
    graph = recipes.Graph()
    graph.placeholder("x", [1, 4], recipes.np.int32)
    graph.node("Abs", "y", ["x"], {"T": recipes.DType(3)})
    return {"model.pb": graph.serialize()}
