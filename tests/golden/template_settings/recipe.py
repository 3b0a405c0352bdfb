"""Layers, keys and values that templates do not have."""

import recipes


def files():
    return {"model.pb": recipes.dense(weight="dense").serialize(),
            "template.json": b'''{
      "dense": {"q_bits_weight": 7, "q_bits": 8, "min": "low", "max": 1, "max": 2},
      "conv": {"q_bits_weight": 8}
    }
    '''}
