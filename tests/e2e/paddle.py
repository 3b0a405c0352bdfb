"""Operators and nets of PaddlePaddle against recorded answers.

    run_e2e.py paddle [-v] [--update] [NAME...]

shared/suites/paddle: single operators, an MNIST net of 1.x, whose parameters are a file each and
are given as a zip of the folder, and the text detector of PP-OCR. PADDLE.md of the front end has
the verdicts.
"""

import glob
import os
import zipfile

import numpy as np

import harness
import recorded_layers

PAGE = os.path.join(harness.ROOT, "compiler_core", "frontends", "paddle", "PADDLE.md")


def arrays(pattern, prefix):
    """Recorded arrays by the name that stands between a prefix and .npy."""
    found = {}
    for path in sorted(glob.glob(pattern)):
        found[os.path.basename(path)[len(prefix):-4]] = np.load(path)
    return found


def operator_cases(folder):
    for path in sorted(glob.glob(os.path.join(folder, "*.pdmodel"))):
        stem = path[:-len(".pdmodel")]
        name = os.path.basename(stem)
        yield recorded_layers.Case(
            name, "PADDLE", {"MODEL_FILE": path}, arrays(stem + ".in.*.npy", name + ".in."),
            arrays(stem + ".out.*.npy", name + ".out."))


def zip_of(folder, path):
    """The parameters of a 1.x model as one file."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(os.listdir(folder)):
            if os.path.isfile(os.path.join(folder, name)) and name != "__model__":
                archive.write(os.path.join(folder, name), name)
    return path


def recorded(folder, name):
    """Inputs and outputs of a net."""
    expected = os.path.join(folder, "expected")
    inputs = arrays(os.path.join(expected, name + ".input.*.npy"), name + ".input.")
    outputs = arrays(os.path.join(expected, name + ".*.npy"), name + ".")
    return inputs, {n: a for n, a in outputs.items() if not n.startswith("input.")}


def net_cases(root, scratch):
    mnist = os.path.join(root, "mnist_mlp")
    inputs, outputs = recorded(mnist, "mnist_mlp")
    yield recorded_layers.Case(
        "mnist_mlp", "PADDLE",
        {"MODEL_FILE": os.path.join(mnist, "__model__"),
         "WEIGHTS_FILE": zip_of(mnist, os.path.join(scratch, "mnist.zip"))},
        inputs, outputs)
    ocr = os.path.join(root, "ppocr_det")
    inputs, outputs = recorded(ocr, "ppocr_det")
    # The net's result is below 1e-9 on the recorded noise; compare what is in front of its sigmoid.
    del outputs["sigmoid_0.tmp_0"]
    yield recorded_layers.Case(
        "ppocr_det", "PADDLE", {"MODEL_FILE": os.path.join(ocr, "inference.pdmodel")}, inputs,
        outputs, True, list(outputs))


def main(arguments):
    root = harness.shared("suites", "paddle")
    with harness.scratch() as scratch:
        cases = [*operator_cases(os.path.join(root, "ops")), *net_cases(root, scratch)]
        recorded_layers.run_suite("paddle", "Answers of PaddlePaddle's operators, and of npuc",
                                  PAGE, cases, arguments)
