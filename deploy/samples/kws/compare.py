#!/usr/bin/python3
"""Shows what the simulated NPU answered, and compares it with the float model and with the labels;
exit 1 where they part.

    compare.py SIMULATED.npy REFERENCE.npy LABELS.npy

labels.txt, beside LABELS.npy, has the words that the labels count.
"""

import os
import sys

import numpy as np

# The outputs are probabilities. The 8-bit weight codes and fp16 arithmetic cost up to 0.016 on the
# sample's items; a wrong result is off by more.
LARGEST_ERROR_ALLOWED = 0.1
SHOWN = 6  # items


def main():
    simulated, reference, labels = (np.load(path) for path in sys.argv[1:4])
    with open(os.path.join(os.path.dirname(sys.argv[3]), "labels.txt"), encoding="utf-8") as f:
        words = f.read().split()
    simulated = simulated.reshape(len(labels), -1)
    reference = reference.reshape(len(labels), -1)
    if simulated.shape != reference.shape or not np.isfinite(simulated).all():
        sys.exit(f"outputs unusable: shapes {simulated.shape} and {reference.shape}")
    print("recording  said      NPU        sure   float model")
    for i in range(min(SHOWN, len(labels))):
        answer, float_answer = simulated[i].argmax(), reference[i].argmax()
        print(f"{i:9}  {words[labels[i]]:8}  {words[answer]:8}  {simulated[i, answer]:5.0%}   "
              f"{words[float_answer]}")
    error = np.abs(simulated - reference).max()
    same = int((simulated.argmax(axis=1) == reference.argmax(axis=1)).sum())
    right = int((simulated.argmax(axis=1) == labels).sum())
    float_right = int((reference.argmax(axis=1) == labels).sum())
    count = len(labels)
    print(f"all {count}: {right} of {count} words right (float model: {float_right}); "
          f"the same answer as the float model: {same}")
    print(f"largest error against the float model: {error:.6f} (of probabilities)")
    if error > LARGEST_ERROR_ALLOWED:
        sys.exit(f"the largest error is above {LARGEST_ERROR_ALLOWED}")


if __name__ == "__main__":
    main()
