"""A weight that holds NaN."""

import recipes


def files():
    weights = recipes.ramp(4, 3)
    weights[1, 2] = float("nan")
    return {"model.pb": recipes.dense(values=weights).serialize()}
