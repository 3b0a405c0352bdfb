"""A header of the fixed-point family."""

import recipes


def files():
    return {"model.h": recipes.header(typedef="short")}
