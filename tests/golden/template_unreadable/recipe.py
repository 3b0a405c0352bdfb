"""An empty template."""

import recipes


def files():
    return {"model.pb": recipes.dense(weight="dense").serialize(),
            "template.json": b""}
