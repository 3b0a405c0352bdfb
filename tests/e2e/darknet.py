"""Layers and nets of Darknet against what Darknet itself answered.

    run_e2e.py darknet [-v] [--update] [NAME...]

shared/suites/darknet: single layers, and the three Yolo-Fastest nets, whose outputs are the layers
in front of their heads. pjreddie's Darknet gave all answers, so that the nets run as its own:
without the keys that mark a .cfg as the fork's, whose normalisations have another epsilon.
DARKNET.md of the front end has the verdicts.
"""

import glob
import os
import tempfile

import numpy as np

import harness
import recorded_layers

PAGE = os.path.join(harness.ROOT, "compiler_core", "frontends", "darknet", "DARKNET.md")
HEADS = ("yolo", "region", "detection", "cost")
# Keys of the nets' [yolo] that the fork alone reads. They say nothing of the layers in front.
FORK_KEYS = ("scale_x_y", "iou_loss", "iou_normalizer", "cls_normalizer", "iou_thresh", "beta_nms",
             "nms_kind")


def sections(path):
    """The types of a .cfg's layers, in order."""
    with open(path, encoding="utf-8") as f:
        lines = [line.strip() for line in f]
    return [line[1:-1] for line in lines if line.startswith("[")][1:]


def decode_region(raw):
    """[region] of two boxes of three classes, as its source has it: x, y and objectness through the
    logistic function, a softmax over the classes; npuc leaves it to the application."""
    boxes = raw.reshape(2, 8, *raw.shape[2:]).astype(np.float64)
    for entry in (0, 1, 4):
        boxes[:, entry] = 1 / (1 + np.exp(-boxes[:, entry]))
    powers = np.exp(boxes[:, 5:] - boxes[:, 5:].max(1, keepdims=True))
    boxes[:, 5:] = powers / powers.sum(1, keepdims=True)
    return boxes.reshape(raw.shape).astype(np.float32)


def layer_cases(folder):
    for path in sorted(glob.glob(os.path.join(folder, "*.cfg"))):
        stem = path[:-4]
        types = sections(path)
        last = max(i for i, t in enumerate(types) if t not in HEADS)
        yield recorded_layers.Case(
            os.path.basename(stem), "DARKNET", {"MODEL_FILE": path},
            {"input": np.load(stem + ".input.npy")},
            {f"{types[last]}_{last}": np.load(stem + ".output.npy")},
            decode=decode_region if types[-1] == "region" else None)


def as_the_original(path, folder):
    """A copy of a .cfg without FORK_KEYS."""
    with open(path, encoding="utf-8") as f:
        lines = [line for line in f if line.split("=")[0].strip() not in FORK_KEYS]
    copy = os.path.join(folder, os.path.basename(path))
    with open(copy, "w", encoding="utf-8") as f:
        f.writelines(lines)
    return copy


def net_cases(folder, scratch):
    for path in sorted(glob.glob(os.path.join(folder, "*.cfg"))):
        name = os.path.basename(path)[:-4]
        types = sections(path)
        expected = {}
        for recorded in glob.glob(os.path.join(folder, "expected", f"{name}.layer*.npy")):
            number = int(recorded.split(".layer")[1][:-4])
            expected[f"{types[number]}_{number}"] = np.load(recorded)
        image = np.load(os.path.join(folder, "expected", f"{name}.input.npy"))
        files = {"MODEL_FILE": as_the_original(path, scratch),
                 "WEIGHTS_FILE": path[:-4] + ".weights"}
        yield recorded_layers.Case(name, "DARKNET", files, {"input": image}, expected, is_net=True)


def main(arguments):
    root = harness.shared("suites", "darknet")
    with tempfile.TemporaryDirectory() as scratch:
        cases = [*layer_cases(os.path.join(root, "layers")),
                 *net_cases(os.path.join(root, "yolo_fastest"), scratch)]
        recorded_layers.run_suite("darknet", "Darknet's own answers, and those of npuc", PAGE,
                                  cases, arguments)
