"""More data than commands reach, and more frames than are run at once."""

import recipes


def files():
    return {"model.h": recipes.header(data_bytes=1 << 29),
            "small.h": recipes.header()}
