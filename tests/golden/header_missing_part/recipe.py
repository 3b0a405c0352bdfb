"""A header without weight_content."""

import recipes


def files():
    return {"model.h": recipes.header(weights=False)}
