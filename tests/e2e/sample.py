"""The shipped sample compiles and agrees with the float model, also on cores of other families; its
README's claims hold; where one file cannot be written, none is."""

import os
import re

import numpy as np

import harness

MODEL = os.path.join(harness.SAMPLE, "kws_cnn.pb")
OUT = "labels_softmax"
OTHER_CORES = ("X2_1204", "APUS")


def check_no_room(config):
    """The header is larger than a file may be, the other artifacts are not."""
    with harness.scratch() as folder:
        result = harness.run("bash", "-c", 'trap "" XFSZ; ulimit -f 50; exec "$@"', "bash",
                             harness.program("npuc"), config, "-o", folder, expect=1)
        harness.check("kws_cnn.h: File too large" in result.stderr, result.stderr)
        harness.check(os.listdir(folder) == [], f"left behind: {os.listdir(folder)}")


def check_readme(right, items):
    with open(os.path.join(harness.SAMPLE, "README.md"), encoding="utf-8") as f:
        text = f.read()
    claimed = re.search(r"gets (\d+) of these (\d+)", text)
    harness.check((right, items) == tuple(int(n) for n in claimed.groups()),
                  f"the float model gets {right} of {items}, README says {claimed.group(0)}")
    harness.check(f"{os.path.getsize(MODEL)} bytes" in text, "README has another size of the model")


def quantized(core, x, folder):
    """What the core answers on the half of the items that it was not calibrated on."""
    samples = os.path.join(folder, "samples.npy")
    np.save(samples, x[::2])
    config = os.path.join(folder, f"{core}.yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write(f"CORENAME: {core}\nFRAMEWORK: TF\nMODEL_FILE: {MODEL}\nOUTPUT_FILE: net.h\n"
                f"INPUT_OPS: {{Feats: [1, 490]}}\nOUTPUT_OPS: [{OUT}]\n"
                f"QUANT: {{calibration_data: {samples}, preset: best}}\n")
    out = os.path.join(folder, core)
    harness.npuc(config, "-o", out)
    return harness.simulate(os.path.join(out, "net.npuc"), {"Feats": x[1::2]},
                            os.path.join(out, "sim"), [OUT])[OUT]


def compare(where, simulated, reference):
    """Fails where the words differ more than rounding explains."""
    simulated = simulated.reshape(reference.shape)
    error = float(np.abs(simulated - reference).max())
    same = int((simulated.argmax(axis=1) == reference.argmax(axis=1)).sum())
    harness.figure(f"sample kws on {where}: {len(reference)} items, largest error {error:.5f}, "
                   f"same top-1 {same}")
    harness.check(error < 0.1 and same >= len(reference) - 1, f"the sample on {where} is off")


def main(arguments):
    x = np.load(os.path.join(harness.SAMPLE, "test_inputs.npy"))
    labels = np.load(os.path.join(harness.SAMPLE, "test_labels.npy"))
    config = os.path.join(harness.SAMPLE, "config.yaml")
    check_no_room(config)
    with harness.scratch() as folder:
        header = harness.compile_header(config, folder, "kws_cnn.h")
        simulated = harness.simulate(header, {"Feats": x}, os.path.join(folder, "sim"), [OUT])[OUT]
        reference = harness.simulate(config, {"Feats": x}, os.path.join(folder, "ref"), [OUT],
                                     verb="reference")[OUT].reshape(len(x), -1)
        check_readme(int((reference.argmax(axis=1) == labels).sum()), len(x))
        compare("GRUS", simulated, reference)
        for core in OTHER_CORES:
            compare(core, quantized(core, x, folder), reference[1::2])
