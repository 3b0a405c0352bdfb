"""An opcode that no core has."""

import recipes


def files():
    return {"model.h": recipes.header([0x00000199, *recipes.RELU[1:]])}
