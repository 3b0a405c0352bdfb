"""An output folder that is a file."""

import recipes


def files():
    return {"model.pb": recipes.dense().serialize()}
