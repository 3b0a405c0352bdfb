"""Quantized TorchScript models on an integer core and on GRUS, against PyTorch as
tests/oracle/torch_quantized recorded it.

    run_e2e.py torch_quantized [-v] [NAME...]

Each net comes scripted, traced and frozen. X2_1204 keeps the model's scales: a stored result may be
as many steps of its scale off PyTorch's as layers round on the way (the case's `steps`), and most
must be equal. GRUS computes in float what PyTorch rounds: each of those layers may be a step apart
there, which the layers behind it can pass on, and the result itself half a step. A dynamically
quantized net rounds its activations by their own range in PyTorch and not in npuc: on GRUS its
results may be off by what 8 bits of each of its few activations cost, 2 % of the largest.
"""

import collections
import json
import os

import numpy as np

import harness
import recorded_nets

RECORDED = os.path.join(harness.ROOT, "tests", "oracle", "torch_quantized", "recorded",
                        "nets.tar.xz")
FORMS = ("scripted", "traced", "frozen")
CORE = "X2_1204"
LEAST_EQUAL = 0.9
DYNAMIC_ERROR = 0.02


def simulate(core, form, files, facts, folder):
    """Outputs as floats, [items, ...]."""
    with open(os.path.join(folder, "net.pt"), "wb") as f:
        f.write(files[f"{form}.pt"])
    config = os.path.join(folder, "config.yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write(f"CORENAME: {core}\nFRAMEWORK: PT\nMODEL_FILE: net.pt\nOUTPUT_FILE: m.h\n"
                f"OUTPUT_TYPE: c_code\nINPUT_OPS: {{0: {facts['shape']}}}\n")
    harness.npuc(config, "-o", folder)
    x = recorded_nets.arrays(files, "input")[0]
    np.save(os.path.join(folder, "x.npy"), x.reshape((-1,) + x.shape[2:]))
    artifact = os.path.join(folder, "m.npuc" if core == CORE else "m.h")
    out = os.path.join(folder, "out")
    name = json.loads(harness.npuc("inspect", os.path.join(folder, "net.pt"), "--json").stdout)
    harness.npuc("run", artifact, "--input",
                 f"{name['inputs'][0]['name']}={os.path.join(folder, 'x.npy')}",
                 "--output-dir", out)
    count = len(recorded_nets.arrays(files, "output"))
    return [np.load(harness.output_file(out, f"output_{k}")) for k in range(count)]


def check_static(core, facts, got, wanted, steps):
    for array, want, scale in zip(got, wanted, facts["scales"]):
        off = np.abs(array.reshape(want.shape).astype(np.float64) - want) / scale
        if core == CORE:
            found = collections.Counter(np.rint(off).astype(int).ravel().tolist())
            steps.update(found)
            harness.check(max(found) <= facts["steps"], f"{core}: off by steps {dict(found)}")
            if facts["steps"] == 1:
                harness.check(found[0] >= LEAST_EQUAL * off.size, f"{core}: steps {dict(found)}")
        else:
            allowed = 2 * facts["steps"] + 0.5
            harness.check(off.max() <= allowed, f"{core}: off by {off.max():.2f} steps")


def run_case(name, files, steps):
    """Complaints, a line each."""
    facts = json.loads(files["case.json"])
    wanted = recorded_nets.arrays(files, "output")
    complaints = []
    for form in (f for f in FORMS if f"{f}.pt" in files):
        for core in ("GRUS",) if facts["dynamic"] or facts["needs_float"] else (CORE, "GRUS"):
            try:
                with harness.scratch() as folder:
                    got = simulate(core, form, files, facts, folder)
                if not facts["dynamic"]:
                    check_static(core, facts, got, wanted, steps)
                    continue
                error = np.abs(got[0].reshape(wanted[0].shape) - wanted[0]).max()
                allowed = DYNAMIC_ERROR * np.abs(wanted[0]).max()
                harness.check(error <= allowed, f"off by {error:.4g}, allowed {allowed:.4g}")
            except (harness.Failure, OSError, KeyError, ValueError) as error:
                complaints.append(f"{name}, {form}, {core}: {str(error)[-1200:]}")
    return complaints


def main(arguments):
    names = [a for a in arguments if a != "-v"]
    cases = {n: f for n, f in recorded_nets.read(RECORDED).items()
             if not names or any(n.startswith(prefix) for prefix in names)}
    steps = collections.Counter()
    complaints = []
    for name, files in sorted(cases.items()):
        found = run_case(name, files, steps)
        if "-v" in arguments:
            print(f"{name}: {len(found)} complaints", flush=True)
        complaints += found
    for complaint in complaints:
        print(complaint)
    harness.figure(f"torch_quantized: {len(cases)} quantized nets of PyTorch in {len(FORMS)} forms"
                   f"; results on {CORE} {steps[0]} equal, {steps[1]} one step off, "
                   f"{sum(n for k, n in steps.items() if k > 1)} more")
    harness.check(not complaints, f"{len(complaints)} runs do not agree with PyTorch")
