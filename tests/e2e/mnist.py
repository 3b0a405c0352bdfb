"""The vendor's published MNIST example: our header is its header, and both give the same digits."""

import os
import re

import numpy as np

import harness

# The only two lines that may differ, and only between the quotes.
_FREE_LINES = re.compile(rb'^(const char \*(?:version|model_info) = )"[^"\n]*";$', re.M)


def masked(data):
    return _FREE_LINES.sub(rb'\1"";', data)


def first_difference(ours, theirs):
    for i, (a, b) in enumerate(zip(ours.split(b"\n"), theirs.split(b"\n")), 1):
        if a != b:
            return f"line {i}: ours {a[:120]!r}, the vendor's {b[:120]!r}"
    return f"lengths {len(ours)} and {len(theirs)}"


def main(arguments):
    fixture = harness.shared("fixtures", "gxdnn-mnist")
    images = np.load(os.path.join(fixture, "images.npy"))
    digits = np.load(os.path.join(fixture, "digits.npy")).reshape(-1)
    vendor = os.path.join(fixture, "vendor_model.h")
    with harness.scratch() as folder:
        ours = harness.compile_header(os.path.join(fixture, "config.yaml"), folder, "model.h")
        with open(ours, "rb") as f, open(vendor, "rb") as g:
            our_bytes, vendor_bytes = f.read(), g.read()
        harness.check(len(_FREE_LINES.findall(our_bytes)) == 2, "no version or model_info line")
        harness.check(masked(our_bytes) == masked(vendor_bytes),
                      "our header differs: " +
                      first_difference(masked(our_bytes), masked(vendor_bytes)))
        harness.figure("mnist: header equals the vendor's byte for byte but for the values of "
                       "version and model_info")
        results = []
        for name, header in (("ours", ours), ("vendor", vendor)):
            out = harness.simulate(header, {"input_x": images}, os.path.join(folder, name),
                                   ["result"])["result"]
            results.append(out)
        harness.check(results[0].tobytes() == results[1].tobytes(),
                      "the simulator's outputs of the two headers differ")
        rows = results[0].reshape(len(images), -1)
        harness.check((rows.argmax(axis=1) == digits).all(),
                      f"digits {rows.argmax(axis=1)}, expected {digits}")
        floats = np.load(os.path.join(fixture, "logits_float.npy")).reshape(rows.shape)
        harness.figure(f"mnist: digits {' '.join(map(str, rows.argmax(axis=1)))}; both headers "
                       f"bit-identical; largest difference to the float model "
                       f"{np.abs(rows - floats).max():.4f} (logits up to "
                       f"{np.abs(floats).max():.2f})")
