"""A size constant that disagrees with the arrays."""

import recipes


def files():
    return {"model.h": recipes.header(npu_size=49)}
