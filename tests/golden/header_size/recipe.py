"""An array whose size disagrees with its values."""

import recipes


def files():
    return {"model.h": recipes.header().replace(b"cmd_content[48]", b"cmd_content[49]")}
