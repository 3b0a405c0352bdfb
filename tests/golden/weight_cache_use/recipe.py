"""How much of the weights a weight cache holds: a note."""

import recipes


def files():
    return {"model.pb": recipes.dense(weight="dense/kernel").serialize()}
