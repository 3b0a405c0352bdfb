"""A computed value cast to texts."""

import recipes


def files():
    types = {"SrcT": recipes.DType(1), "DstT": recipes.DType(7)}
    return {"model.pb": recipes.one_node("Cast", types).serialize()}
