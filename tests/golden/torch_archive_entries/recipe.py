"""Entries that are missing or there twice."""

import warnings

import torch_recipes as t


def files():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        twice = t.archive(twice=("data/0",))
    return t.cases({"twice": twice, "missing": t.archive(drop=("constants.pkl", "version"))})
