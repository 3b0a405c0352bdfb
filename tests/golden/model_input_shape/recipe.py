"""A declared shape that the model contradicts."""

import recipes


def files():
    return {"model.pb": recipes.dense().serialize()}
