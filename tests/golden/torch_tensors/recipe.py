"""Tensors whose storage is missing or too small, or that reach beyond it."""

import torch_recipes as t


def files():
    return t.cases({"no_storage": t.archive(drop=("data/0",)),
                    "short_storage": t.archive(storage=b"\0" * 12),
                    "beyond": t.archive(t.module(t.tensor(sizes=(2, 4), strides=(4, 1))))})
