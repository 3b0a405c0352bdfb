#!/usr/bin/python3
"""Records what onnxruntime answers for the quantized nets of nets.py.

    record.py --package DIR [NAME...]   writes recorded/nets.tar.xz (all nets only)
    record.py --package DIR --check     runs what is recorded again, live

DIR: node_modules/onnxruntime-node after `npm install --ignore-scripts onnxruntime-node@1.30`; node
runs it. See README.md.
"""

import argparse
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(1, os.path.dirname(HERE))
import nets  # noqa: E402
from runtime import Runtime, check, write  # noqa: E402

RECORDED = os.path.join(HERE, "recorded", "nets.tar.xz")
ITEMS = 6


def to_stored(array, params):
    info = np.iinfo(params["dtype"])
    q = np.rint(array / np.float32(params["scale"])) + params["zero_point"]
    return np.clip(q, info.min, info.max).astype(params["dtype"])


def make_case(runtime, net):
    rng = np.random.default_rng(nets.seed_of(net.name) + 1)
    inputs = {n: rng.uniform(low, high, (ITEMS,) + shape).astype(np.float32)
              for n, (shape, low, high) in net.inputs.items()}
    items = [{n: a[i] for n, a in inputs.items()} for i in range(ITEMS)]
    measured = [n for n in net.marked if n not in net.inputs]
    floats = [runtime.run(net.float_model(measured), item) for item in items]
    ranges = {n: (min(f[n].min() for f in floats), max(f[n].max() for f in floats))
              for n in measured}
    ranges.update({n: (low, high) for n, (_, low, high) in net.inputs.items()})
    model, params = net.quantized_model({n: (float(a), float(b)) for n, (a, b) in ranges.items()})
    stored = {n: to_stored(a, params[n]) if n in params else a for n, a in inputs.items()}
    if net.integer_ports:
        inputs = stored
    answers = [runtime.run(model, {n: a[i] for n, a in inputs.items()}) for i in range(ITEMS)]
    names = list(answers[0])
    quant = {n: params[o] for n, o in zip(names, net.outputs)}
    outputs = []
    for n in names:
        real = np.stack([a[n] for a in answers])
        outputs.append(real if net.integer_ports else to_stored(real, quant[n]))
    facts = {"inputs": list(inputs), "outputs": names, "unread": net.unread, "quant": quant,
             "steps": net.steps,
             "ops": sorted({kind for kind, _, _, _ in net.nodes})}
    return net.name, model, [stored[n] for n in inputs], outputs, facts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--package", required=True)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    runtime = Runtime(arguments.package)
    cases = [make_case(runtime, net) for net in nets.all_nets()
             if not arguments.names or net.name in arguments.names]
    if arguments.check:
        return check(RECORDED, cases)
    print(f"{len(cases)} nets")
    if not arguments.names:
        write(RECORDED, cases)
    return 0


if __name__ == "__main__":
    sys.exit(main())
