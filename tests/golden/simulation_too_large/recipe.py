"""More data than the simulator holds."""

import recipes


def files():
    return {"model.h": recipes.header(data_bytes=1 << 29)}
