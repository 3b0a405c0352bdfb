"""Nets rebuilt from published headers against what the vendor's compiler made of them.

    vendor_like [NAME...]

Compiles each config of ../shared/models/vendor_like, without and with MEMORY_PLAN: compatible, and
runs both on the same seeded inputs, states among them. Outputs must be equal byte for byte. A
batch_norm rounds once where its two plain commands round twice: a net that has one must be as near
to `npuc reference` as the plain one. The figures of report.json must not be above LIMITS, nor above
the plain ones.
"""

import json
import os

import numpy as np

import harness

SEED = 41
ITEMS = 200
FIGURES = ("commands", "elements", "macs")
# commands, bytes of data_content, elements. sed and ds_tcn: those of the published headers;
# dense_20_rows: a product, a sum, and the format's whole rows and rest.
LIMITS = {
    "sed": (56, 1280, 4486),
    "sed_fb": (56, 1280, 4486),
    "ds_tcn": (141, 13312, 20236),
    "ds_tcn_fb": (141, 13312, 20236),
    "dense_20_rows": (4, 5120, 3840),
}
# Both round their sums to fp16 at random: the errors of two such nets differ by this much.
AS_NEAR = 1.02


class Compiled:
    def __init__(self, text, folder, plain):
        self.folder = os.path.join(folder, "plain" if plain else "short")
        os.makedirs(self.folder)
        path = os.path.join(self.folder, "net.yaml")
        with open(path, "w", encoding="utf-8") as f:
            if plain:
                text = text.replace("MEMORY_PLAN: in_place\n", "") + "MEMORY_PLAN: compatible\n"
            f.write(text)
        header = next(line.split()[1] for line in text.splitlines()
                      if line.startswith("OUTPUT_FILE"))
        self.config = path
        self.artifact = harness.compile_header(path, self.folder, header)
        with open(os.path.join(self.folder, "report.json"), encoding="utf-8") as f:
            report = json.load(f)
        self.inputs, self.outputs = report["inputs"], [o["name"] for o in report["outputs"]]
        self.states = {o["state_of"] for o in report["outputs"] if "state_of" in o}
        self.figures = {k: report["per_frame"][k] for k in FIGURES}
        self.figures["data"] = report["sizes_bytes"]["data_content"]
        self.has_batch_norm = "batch_norm" in report["commands"]

    def run(self, inputs):
        return harness.simulate(self.artifact, inputs, os.path.join(self.folder, "out"),
                                self.outputs)


def seeded(inputs, states):
    """Values of fp16, so that the reference has the same; of a state its start alone."""
    random = np.random.default_rng(SEED)
    found = {}
    for port in inputs:
        shape = [int(n) for n in port["type"][:-1].split("[")[1].split(",")]
        items = 1 if port["name"] in states else ITEMS
        found[port["name"]] = random.normal(0, 1, [items * shape[0], *shape[1:]]) \
            .astype(np.float16).astype(np.float32)
    return found


def error(outputs, truth):
    """The root of the mean squared error over all outputs."""
    return float(np.sqrt(np.mean(np.concatenate(
        [(outputs[n].astype(np.float64) - truth[n]).reshape(-1) ** 2 for n in outputs]))))


def check_net(name, text):
    with harness.scratch() as folder:
        short, plain = (Compiled(text, folder, p) for p in (False, True))
        inputs = seeded(short.inputs, short.states)
        got, want = short.run(inputs), plain.run(inputs)
        said = "equal outputs"
        if short.has_batch_norm:
            truth = harness.simulate(short.config, inputs, os.path.join(folder, "reference"),
                                     short.outputs, verb="reference")
            errors = error(got, truth), error(want, truth)
            said = f"errors {errors[0]:.3e} and {errors[1]:.3e}"
            harness.check(errors[0] <= AS_NEAR * errors[1], f"{name}: {said}")
        else:
            for output in short.outputs:
                harness.check(got[output].tobytes() == want[output].tobytes(),
                              f"{name}: {output} differs from that of the plain commands")
    figures = ", ".join(f"{k} {short.figures[k]:,} and {plain.figures[k]:,}"
                        for k in short.figures)
    harness.figure(f"{name}, without and with MEMORY_PLAN: compatible: {figures}; {said}")
    for key, value in short.figures.items():
        harness.check(value <= plain.figures[key], f"{name}: {key} above the plain one: {figures}")
    commands, data, elements = LIMITS.get(name, (None, None, None))
    for key, limit in (("commands", commands), ("data", data), ("elements", elements)):
        harness.check(limit is None or short.figures[key] <= limit,
                      f"{name}: {key} {short.figures[key]}, the vendor has {limit}")


def main(arguments):
    folder = harness.shared("models", "vendor_like")
    names = sorted(n[:-5] for n in os.listdir(folder) if n.endswith(".yaml"))
    harness.check(set(LIMITS) <= set(names), f"no configs of {set(LIMITS) - set(names)}")
    for name in names:
        if arguments and name not in arguments:
            continue
        with open(os.path.join(folder, f"{name}.yaml"), encoding="utf-8") as f:
            check_net(name, f.read().replace("MODEL_FILE: ", f"MODEL_FILE: {folder}/"))
