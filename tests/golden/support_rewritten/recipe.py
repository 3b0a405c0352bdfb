"""A matrix over the unit's limit, which is split; more memory than SRAM."""

import recipes


def files():
    return {"model.pb": recipes.dense(shape=(256, 288)).serialize()}
