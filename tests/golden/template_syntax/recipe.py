"""A template cut short."""

import recipes


def files():
    return {"model.pb": recipes.dense(weight="dense").serialize(),
            "template.json": b'{"dense": {"q_bits_weight": 8'}
