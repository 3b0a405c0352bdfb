"""Configs in the form of Compass's aipubuild: two with problems, one with a word too many."""

import numpy as np

import recipes


def files():
    return {"model.pb": recipes.dense().serialize(),
            "samples.npy": recipes.npy(np.ones((2, 4), np.float32))}
