"""An input that names no node."""

import recipes


def files():
    return {"model.pb": recipes.one_node("Relu", inputs=["xx"]).serialize()}
