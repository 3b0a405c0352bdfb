#!/usr/bin/python3
"""Records what onnxruntime answers for the nets of nets.py.

    record.py --package DIR [NAME...]   writes recorded/nets.tar.xz (all nets only)
    record.py --package DIR --check     runs what is recorded again, live

DIR: node_modules/onnxruntime-node after `npm install --ignore-scripts onnxruntime-node@1.30`; node
runs it. See README.md.
"""

import argparse
import os
import sys
import zlib

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ORACLE = os.path.dirname(HERE)
sys.path[:0] = [HERE, ORACLE, os.path.join(os.path.dirname(ORACLE), "models")]
import nets  # noqa: E402
from runtime import Runtime, check, write  # noqa: E402

RECORDED = os.path.join(HERE, "recorded", "nets.tar.xz")
CANDIDATES = 64  # rows of which those are taken that keep apart from where a label turns


def seeded_inputs(case, rows):
    random = np.random.RandomState(zlib.crc32(case.name.encode()))
    return {name: nets.eighths(random, *[rows if d == "rows" else d for d in shape], size=2)
            .astype(np.float32) for name, shape in case.inputs.items()}


def chosen_inputs(runtime, case):
    if case.apart is None:
        return seeded_inputs(case, nets.ROWS)
    inputs = seeded_inputs(case, CANDIDATES)
    name, share = case.apart
    answer = np.abs(runtime.run(case.build(CANDIDATES), inputs)[name])
    rows = np.flatnonzero(answer.min(1) > share * answer.max())[:nets.ROWS]
    if len(rows) < nets.ROWS:
        raise RuntimeError(f"{case.name}: only {len(rows)} rows keep apart")
    return {name: array[rows] for name, array in inputs.items()}


def make_case(runtime, case):
    facts = {"inputs": list(case.inputs), "outputs": case.outputs, "refused": case.refused,
             "keys": case.keys or {}, "float_only": case.float_only, "tolerance": case.tolerance}
    build = case.asked or case.build
    if case.refused:  # a model all the same: the runtime takes it
        inputs, outputs = seeded_inputs(case, nets.ROWS), []
        runtime.run(build(nets.ROWS), inputs)
    else:
        inputs = chosen_inputs(runtime, case)
        answer = runtime.run(build(nets.ROWS), inputs)
        outputs = [answer[name] for name in case.outputs]
    return case.name, case.build(nets.ROWS), list(inputs.values()), outputs, facts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--package", required=True)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    runtime = Runtime(arguments.package)
    cases = []
    for case in nets.all_cases():
        if arguments.names and case.name not in arguments.names:
            continue
        try:
            cases.append(make_case(runtime, case))
        except RuntimeError as error:
            print(f"{case.name}: {error}")
            return 1
    if arguments.check:
        return check(RECORDED, cases)
    print(f"{len(cases)} nets")
    if not arguments.names:
        write(RECORDED, cases)
    return 0


if __name__ == "__main__":
    sys.exit(main())
