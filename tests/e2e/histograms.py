"""`npuc -s`: a picture of each weight's values, whose data must be NumPy's histogram of the model
file's weights, and so must be the histograms of report.json. That the pictures show the data is
tools/histogram_picture_test.cc's to test.
"""

import json
import os
import struct

import numpy as np

import graphdef
import harness

MODEL = os.path.join(harness.SAMPLE, "kws_cnn.pb")
CONFIG = os.path.join(harness.SAMPLE, "config.yaml")


def jpeg_size(path):
    """Width and height of a JPEG file, from its frame header; None where the file is none."""
    with open(path, "rb") as f:
        data = f.read()
    if data[:2] != b"\xff\xd8" or data[-2:] != b"\xff\xd9":
        return None
    at = 2
    while at + 9 < len(data) and data[at] == 0xff:
        marker, length = data[at + 1], struct.unpack_from(">H", data, at + 2)[0]
        if marker in (0xc0, 0xc1, 0xc2):
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        at += 2 + length
    return None


def check_weight(entry, values):
    name = entry["weight"]
    counts, edges = np.histogram(values.astype(np.float64), bins=len(entry["counts"]))
    harness.check(len(counts) >= 50, f"{name}: {len(counts)} bins")
    harness.check(entry["counts"] == counts.tolist(), f"{name}: other counts than NumPy's")
    harness.check((entry["low"], entry["high"]) == (edges[0], edges[-1]), f"{name}: other edges")
    harness.check(entry["zeros"] == int((values == 0).sum()), f"{name}: zeros {entry['zeros']}")
    for key, wanted in (("min", values.min()), ("max", values.max()),
                        ("mean", values.astype(np.float64).mean())):
        harness.check(abs(entry[key] - wanted) < 1e-9, f"{name}: {key} {entry[key]}, not {wanted}")


def check_report(folder, weights):
    """The histograms of report.json, which the page draws: of all values, too."""
    with open(os.path.join(folder, "report.json"), encoding="utf-8") as f:
        entries = json.load(f)["weights"]
    harness.check(any(weights[e["name"]].size > 2048 for e in entries), "no weight is large")
    for entry in entries:
        name, values, found = entry["name"], weights[entry["name"]], entry["histogram"]
        counts, edges = np.histogram(values.astype(np.float64), bins=len(found["counts"]))
        harness.check(found["counts"] == counts.tolist(), f"report: {name}: {found['counts']}")
        harness.check((found["low"], found["high"]) == (edges[0], edges[-1]),
                      f"report: {name}: bins from {found['low']} to {found['high']}")
        harness.check((found["min"], found["max"]) == (values.min(), values.max()) and
                      found["values"] == values.size,
                      f"report: {name}: {found['values']} values, {found['min']}..{found['max']}")


def main(arguments):
    with open(MODEL, "rb") as f:
        weights = {n.name: n.tensor() for n in graphdef.read_graph(f.read()) if n.op == "Const"}
    with harness.scratch() as folder:
        result = json.loads(harness.npuc(CONFIG, "-o", folder, "-s", "--json").stdout)
        pictures = os.path.join(folder, "npu_jpgs")
        listed = [entry["path"] for entry in result["histograms"]]
        harness.check(sorted(listed) == sorted(os.path.join(pictures, n)
                                               for n in os.listdir(pictures)),
                      f"{listed} are not the files of {pictures}")
        names = [entry["weight"] for entry in result["histograms"]]
        harness.check(names == ["conv1/weights", "conv2/weights", "labels/weights"],
                      f"pictures of {names}")
        for entry in result["histograms"]:
            check_weight(entry, weights[entry["weight"]])
            size = jpeg_size(entry["path"])
            harness.check(size is not None and min(size) >= 400,
                          f"{entry['path']} is no legible JPEG file: {size}")
        check_report(folder, weights)
        # Without -s the same artifacts and no folder.
        plain = os.path.join(folder, "plain")
        harness.npuc(CONFIG, "-o", plain)
        harness.check("npu_jpgs" not in os.listdir(plain), "pictures without -s")
        for name in os.listdir(plain):
            with open(os.path.join(plain, name), "rb") as a, \
                    open(os.path.join(folder, name), "rb") as b:
                harness.check(a.read() == b.read(), f"{name} differs with -s")
        # A folder that cannot be made is a diagnostic.
        blocked = os.path.join(folder, "blocked")
        os.makedirs(blocked)
        with open(os.path.join(blocked, "npu_jpgs"), "w", encoding="utf-8"):
            pass
        refused = harness.npuc(CONFIG, "-o", blocked, "-s", expect=1)
        harness.check("[NPUC" in refused.stderr and "npu_jpgs" in refused.stderr, refused.stderr)
    harness.figure(f"histograms: {len(names)} pictures, counts equal to NumPy's")
