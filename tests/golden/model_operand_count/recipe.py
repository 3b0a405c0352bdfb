"""Relu of two operands."""

import recipes


def files():
    return {"model.pb": recipes.one_node("Relu", inputs=["x", "x"]).serialize()}
