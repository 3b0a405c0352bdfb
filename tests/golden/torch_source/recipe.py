"""Source that is no UTF-8 text."""

import torch_recipes as t


def files():
    return t.cases({"source": t.archive(code=t.CODE + b"\xff\n")})
