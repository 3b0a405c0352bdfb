"""FUSE_BN folds scales, FUSE_BIASADD biases into what CONV2D_COMPRESS compresses: warnings."""

import recipes


def files():
    return {"model.pb": recipes.dense(weight="dense/kernel").serialize()}
