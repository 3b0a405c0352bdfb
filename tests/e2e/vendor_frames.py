"""The nine published headers run many frames on the simulator, their states fed back.

Nobody published what they answer, so the checks are those that any net of their kind meets: every
value of every frame is finite; rows that a softmax makes sum to 1, those that a sigmoid makes lie
in 0..1; the answer depends on this frame's input and, through the states, on the frames before it.
A wrong reading of the weights or of the commands' order breaks these within a few frames.

`--update` writes compiler_core/sim/VENDOR_NETS.md; without it, a page that differs is a failure.
"""

import collections
import os
import re

import numpy as np

import harness

PAGE = os.path.join(harness.ROOT, "compiler_core", "sim", "VENDOR_NETS.md")
FRAMES = 50
# Features reach these nets normalised: spreads around 1. The larger ones look for overflow.
SPREADS = (0.25, 1.0, 4.0)
# Each of up to 65 values of a softmax row is rounded to fp16 once; so are the sum and the exp.
SOFTMAX_TOLERANCE = 0.01
LEAST_PROBABILITY = 2.0**-24  # the least fp16 above zero
# What an answer must move by when a frame's input is turned round, or all the frames before it.
LEAST_MOVE_NATS = 0.01
_PORT = re.compile(r"# (input|output) (\S+) (f16|f32)\[([\d,]*)\] at \w+\+0x[0-9a-f]+(?:, "
                   r"the next frame's (\S+))?")
_COMMAND = re.compile(r"\d{6}  [0-9a-f]{8}  (\w+)(.*)")
Port = collections.namedtuple("Port", "name dtype shape state")

ENDINGS = {"op=div": "softmax", "f=sigmoid": "sigmoid"}


class Net:
    """What `npuc dis` says of a header."""

    def __init__(self, path):
        self.path = path
        self.name = re.sub(r"^lvp_(?:kws|sed)__lvp_vui_(?:kws|sed)_models_|_model\.h$", "",
                           os.path.basename(path))
        self.ports = {"input": [], "output": []}
        self.kinds = collections.Counter()
        self.ending = None
        last = ""
        for line in harness.npuc("dis", path).stdout.splitlines():
            port = _PORT.match(line)
            if port:
                side, name, dtype, dims, state = port.groups()
                shape = [int(d) for d in dims.split(",")]
                self.ports[side].append(Port(name, dtype, shape, state))
            sizes = re.match(r"# bytes: (.*)", line)
            if sizes:
                self.sizes = {k: int(v) for k, v in re.findall(r"(\w+) (\d+)", sizes.group(1))}
            header = re.match(r"# GRUS \S+ compiler (\S+),", line)
            if header:
                self.version = header.group(1)
            command = _COMMAND.match(line)
            if not command:
                continue
            kind, rest = command.groups()
            self.kinds[kind] += 1
            if kind == "format" and self.ending is None:
                self.ending = next((e for key, e in ENDINGS.items() if key in last), "scores")
            elif kind not in ("format", "copy"):
                last = kind + rest
        self.states = {p.state for p in self.ports["output"] if p.state}
        self.features = [p for p in self.ports["input"] if p.name not in self.states]
        self.answers = [p for p in self.ports["output"] if not p.state]

    def run(self, features, folder):
        """The outputs by name, one row a frame."""
        names = [p.name for p in self.ports["output"]]
        inputs = {self.features[0].name: features.reshape([-1] + self.features[0].shape[1:])}
        outputs = harness.simulate(self.path, inputs, folder, names)
        return {name: array.astype(np.float64).reshape(len(features), -1)
                for name, array in outputs.items()}


def check_rows(net, rows, label):
    if net.ending == "softmax":
        error = float(np.abs(rows.sum(axis=1) - 1).max())
        harness.check(error < SOFTMAX_TOLERANCE and rows.min() >= 0,
                      f"{label}: rows of a softmax are off 1 by {error}")
        return error
    if net.ending == "sigmoid":
        harness.check(rows.min() >= 0 and rows.max() <= 1, f"{label}: not in 0..1")
    return 0.0


def moved(a, b):
    """The largest step between two answers, in nats: probabilities count by their ratio."""
    a, b = np.maximum(a, LEAST_PROBABILITY), np.maximum(b, LEAST_PROBABILITY)
    return float(np.abs(np.log(a) - np.log(b)).max())


def check_net(net, folder):
    """Runs a net in every way; its figures."""
    harness.check(len(net.features) == 1 and len(net.answers) == 1 and net.states,
                  f"{net.name}: not one input, one answer and states")
    random = np.random.RandomState(20)
    answer = net.answers[0].name
    softmax_error = 0.0
    for spread in SPREADS:
        features = (random.standard_normal([FRAMES, *net.features[0].shape])
                    * spread).astype(np.float32)
        outputs = net.run(features, folder)
        label = f"{net.name}, inputs of spread {spread:g}"
        for name, rows in outputs.items():
            harness.check(np.isfinite(rows).all(), f"{label}: {name} is not finite")
            harness.check(rows.shape[0] == FRAMES, f"{label}: {len(rows)} frames")
        softmax_error = max(softmax_error, check_rows(net, outputs[answer], label))
        if spread != 1.0:
            continue
        rows = outputs[answer]
        # The last frame's input alone, then all the frames before it.
        now, before = features.copy(), features.copy()
        now[-1] = -now[-1]
        before[:-1] = -before[:-1]
        to_input = moved(net.run(now, folder)[answer][-1], rows[-1])
        to_past = moved(net.run(before, folder)[answer][-1], rows[-1])
        harness.check(to_input > LEAST_MOVE_NATS, f"{label}: the answer does not see its input")
        harness.check(to_past > LEAST_MOVE_NATS, f"{label}: the answer does not see the states")
        harness.check((rows.std(axis=0) > 0).all(), f"{label}: an answer never changes")
        figures = (rows.min(), rows.max(), to_input, to_past)
    return (*figures, softmax_error)


def shown(port):
    return f"{port.name} {'x'.join(str(d) for d in port.shape)}"


def page(nets):
    out = ["# The published nets, as the simulator runs them", "",
           "Generated by `tests/e2e/run_e2e.py vendor_frames --update`; do not edit. Nine headers",
           "that the vendor published in MIT-licensed SDKs, written by the vendor's compiler. Each",
           f"runs {FRAMES} frames of seeded normal noise of spreads "
           f"{', '.join(f'{s:g}' for s in SPREADS)} with its states fed back;",
           "no value is NaN or infinite, and every answer depends on its frame's input and, by the",
           "states, on earlier frames. What the chip answers is published nowhere: this shows that",
           "the reading of the commands in `../target/ISA.md` makes nets that behave as nets do,",
           "not that it is right.", "",
           "| net | compiler | input | states | answer | cmd | weight | data bytes |",
           "|---|---|---|---|---|---|---|---|"]
    for net in nets:
        states = [p for p in net.ports["input"] if p.name in net.states]
        out.append(f"| {net.name} | {net.version} | {shown(net.features[0])} | "
                   f"{', '.join(shown(p) for p in states)} | {shown(net.answers[0])}, "
                   f"{net.ending} | {net.sizes['cmd']} | {net.sizes['weight']} | "
                   f"{net.sizes['data']} |")
    kinds = sorted({kind for net in nets for kind in net.kinds})
    out += ["", "Commands by kind:", "", "| net | all | " + " | ".join(kinds) + " |",
            "|---|---|" + "---|" * len(kinds)]
    for net in nets:
        counts = " | ".join(str(net.kinds[kind] or "") for kind in kinds)
        out.append(f"| {net.name} | {sum(net.kinds.values())} | {counts} |")
    return "\n".join(out) + "\n"


def main(arguments):
    folder = harness.shared("fixtures", "vendor-headers")
    nets = [Net(os.path.join(folder, name)) for name in sorted(os.listdir(folder))
            if name.endswith(".h")]
    harness.check(len(nets) == 9, f"{len(nets)} headers, not nine")
    with harness.scratch() as scratch:
        for net in nets:
            low, high, to_input, to_past, error = check_net(net, scratch)
            sums = f", rows off 1 by at most {error:.4f}" if net.ending == "softmax" else ""
            harness.figure(f"vendor frames: {net.name}: {FRAMES} frames at {len(SPREADS)} spreads "
                           f"finite; {net.ending} {low:.3g}..{high:.3g}; the last answer moves by "
                           f"{to_input:.2g} nats with its input, {to_past:.2g} with its past{sums}")
    text = page(nets)
    if "--update" in arguments:
        with open(PAGE, "w", encoding="utf-8") as f:
            f.write(text)
    with open(PAGE, encoding="utf-8") as f:
        harness.check(f.read() == text, "compiler_core/sim/VENDOR_NETS.md is stale: run "
                      "tests/e2e/run_e2e.py vendor_frames --update")
