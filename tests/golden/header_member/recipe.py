"""Members of a type and of a shape that headers do not have."""

import recipes


def files():
    return {"model.h": recipes.header(inputs="double x[1][4];", outputs="float y[];")}
