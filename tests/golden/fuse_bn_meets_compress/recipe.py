"""FUSE_BN folds scales into weights that CONV2D_COMPRESS then compresses: a warning."""

import recipes


def files():
    return {"model.pb": recipes.dense(weight="dense/kernel").serialize()}
