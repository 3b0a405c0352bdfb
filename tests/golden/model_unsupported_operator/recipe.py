"""An operator that no version imports."""

import recipes


def files():
    return {"model.pb": recipes.one_node("MatrixDeterminant").serialize()}
