"""An input of texts."""

import recipes
from graphdef import Shape


def files():
    graph = recipes.Graph()
    graph.node("Placeholder", "x", [], {"dtype": recipes.DType(7), "shape": Shape([1, 4])})
    graph.node("Identity", "y", ["x"], {"T": recipes.DType(7)})
    return {"model.pb": graph.serialize()}
