"""INPUT_OPS, OUTPUT_OPS and FP16_OUT_OPS that the model does not have."""

import recipes


def files():
    return {"model.pb": recipes.dense().serialize()}
