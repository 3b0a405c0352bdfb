#!/usr/bin/python3
"""Compares simulated outputs with the float model's and with the labels; exit 1 where they part.

    compare.py SIMULATED.npy REFERENCE.npy LABELS.npy
"""

import sys

import numpy as np

# The outputs are probabilities. The 8-bit weight codes cost up to 0.055 on the sample's items (by
# an emulation in NumPy), fp16 arithmetic a hundredth of that; a wrong result is off by more.
LARGEST_ERROR_ALLOWED = 0.1


def main():
    simulated, reference, labels = (np.load(path) for path in sys.argv[1:4])
    simulated = simulated.reshape(len(labels), -1)
    reference = reference.reshape(len(labels), -1)
    if simulated.shape != reference.shape or not np.isfinite(simulated).all():
        sys.exit(f"outputs unusable: shapes {simulated.shape} and {reference.shape}")
    error = np.abs(simulated - reference).max()
    same = int((simulated.argmax(axis=1) == reference.argmax(axis=1)).sum())
    right = int((simulated.argmax(axis=1) == labels).sum())
    float_right = int((reference.argmax(axis=1) == labels).sum())
    count = len(labels)
    print(f"items: {count}, outputs each: {simulated.shape[1]}")
    print(f"largest error against the float model: {error:.6f} (of probabilities)")
    print(f"same top-1 class as the float model: {same} of {count}")
    print(f"top-1 agreement with the labels: {right} of {count} (float model: {float_right})")
    if error > LARGEST_ERROR_ALLOWED:
        sys.exit(f"the largest error is above {LARGEST_ERROR_ALLOWED}")


if __name__ == "__main__":
    main()
