"""A computed value cast to integers."""

import recipes


def files():
    types = {"SrcT": recipes.DType(1), "DstT": recipes.DType(3)}
    return {"model.pb": recipes.one_node("Cast", types).serialize()}
