"""EXCLUDE_COMPRESS_OPS while nothing is compressed."""

import recipes


def files():
    return {"model.pb": recipes.dense().serialize()}
