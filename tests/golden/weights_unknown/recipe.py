"""Keys that name weights which the model does not have."""

import recipes


def files():
    return {"model.pb": recipes.dense(weight="dense/kernel").serialize()}
