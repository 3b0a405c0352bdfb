"""The shipped sample: compiles, agrees with the float model, and its README's claim holds; where
one file cannot be written, none is."""

import os
import re

import numpy as np

import harness


def check_no_room(config):
    """The header is larger than a file may be, the other artifacts are not."""
    with harness.scratch() as folder:
        result = harness.run("bash", "-c", 'trap "" XFSZ; ulimit -f 200; exec "$@"', "bash",
                             harness.program("npuc"), config, "-o", folder, expect=1)
        harness.check("kws_fc.h: File too large" in result.stderr, result.stderr)
        harness.check(os.listdir(folder) == [], f"left behind: {os.listdir(folder)}")


def main(arguments):
    x = np.load(os.path.join(harness.SAMPLE, "test_inputs.npy"))
    labels = np.load(os.path.join(harness.SAMPLE, "test_labels.npy"))
    config = os.path.join(harness.SAMPLE, "config.yaml")
    out = "labels_softmax"
    check_no_room(config)
    with harness.scratch() as folder:
        header = harness.compile_header(config, folder, "kws_fc.h")
        simulated = harness.simulate(header, {"Feats": x}, os.path.join(folder, "sim"), [out])[out]
        reference = harness.simulate(config, {"Feats": x}, os.path.join(folder, "ref"), [out],
                                     verb="reference")[out]
    simulated, reference = (a.reshape(len(x), -1) for a in (simulated, reference))
    right = int((reference.argmax(axis=1) == labels).sum())
    with open(os.path.join(harness.SAMPLE, "README.md"), encoding="utf-8") as f:
        claimed = int(re.search(r"gets (\d+) of these", f.read()).group(1))
    harness.check(right == claimed, f"the float model gets {right} right, README says {claimed}")
    error = float(np.abs(simulated - reference).max())
    same = int((simulated.argmax(axis=1) == reference.argmax(axis=1)).sum())
    harness.figure(f"sample kws: {len(x)} items, largest error {error:.5f}, same top-1 {same}")
    # A NumPy emulation of the 8-bit weight codes gives 0.055 and one different top-1 of 20.
    harness.check(error < 0.1 and same >= len(x) - 2, "the simulated sample is off")
