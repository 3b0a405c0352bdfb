"""Nets on the fixed-point core APUS: quantized here by `npuc`, the header as C, its Q values, and
the simulator against the float reference.

    apus [NAME...]   NAME: fsmn, kws

The Q of a tensor is right where every value seen fits 16 bits at it, and one would not at the next
(or the tensor is smaller than that in one direction only through its state's other half).
"""

import json
import os
import re

import numpy as np

import harness  # puts tests/models on the path, so first
import guide_nets
import headers

FRAMES = 50
CALIBRATION_FRAMES = 200
SEED = 5
KWS_ITEMS = 200
# Errors of outputs are told in units of their own resolution 2^-Q. Half a unit is the rounding of
# the output itself; the median is at most one. A net amplifies the rounding of its first layers
# where an item lies between two answers, so the largest error is held against how far the float
# model itself moves when nothing but its inputs is rounded to their Q: as many times that as there
# are layers that round, and one unit.
LARGEST_MEDIAN = 1.0


def check_q(name, q, arrays):
    """`arrays`: everything that the tensor held in calibration."""
    greatest = max(float(np.abs(a).max()) for a in arrays)
    harness.check(greatest * 2.0**q < 32768, f"{name}_Q {q}: {greatest} does not fit 16 bits")
    harness.check(greatest * 2.0**(q + 1) > 32767, f"{name}_Q {q}: {greatest} would fit {q + 1}")


def compile_apus(folder, config_text, samples):
    for name, array in samples.items():
        np.save(os.path.join(folder, f"calibration_{name}.npy"), array)
    files = ", ".join(f"{n}: calibration_{n}.npy" for n in samples)
    config = os.path.join(folder, "apus.yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write(config_text + f"QUANT:\n  calibration_data: {{{files}}}\n")
    harness.npuc(config, "-o", folder)
    header = os.path.join(folder, "model.h")
    return config, header, headers.check_header(header, fixed_point=True)[2]


def check_quant_file(folder, config, config_text):
    """-q writes the quantization file and no header; a compile from it needs no data and gives the
    same bytes."""
    out = os.path.join(folder, "q")
    harness.npuc(config, "-q", "-o", out)
    harness.check(sorted(os.listdir(out)) == ["opt_template.json", "statistics.json"],
                  f"npuc -q wrote {sorted(os.listdir(out))}")
    again = os.path.join(folder, "again.yaml")
    with open(again, "w", encoding="utf-8") as f:
        f.write(config_text + "QUANT: {statistic_file: q/statistics.json}\n")
    harness.npuc(again, "-o", os.path.join(folder, "again"))
    contents = []
    for path in (os.path.join(folder, "model.h"), os.path.join(folder, "again", "model.h")):
        with open(path, "rb") as f:
            contents.append(f.read())
    harness.check(contents[0] == contents[1], "a compile from the quantization file differs")


def rounding_layers(folder):
    with open(os.path.join(folder, "report.json"), encoding="utf-8") as f:
        return sum(1 for layer in json.load(f)["layers"] if layer["cycles"] > 0)


def compare(net, simulated, reference, rounded, q, layers):
    """`rounded`: of the float model on inputs rounded to their Q. (largest, median) in units."""
    worst, medians = 0.0, []
    for name, want in reference.items():
        unit = 2.0**-q[re.sub(r"\W", "_", name).upper()]
        harness.check(np.abs(want).max() > 4 * unit, f"{net}: {name} is all but zero")
        got, moved = (a[name].reshape(want.shape).astype(np.float64) for a in (simulated, rounded))
        error = np.abs(got - want) / unit
        allowed = 1 + layers * float(np.abs(moved - want).max()) / unit
        harness.check(error.max() <= allowed, f"{net}: {name} is {error.max():.2f} units of 2^-Q "
                      f"off, {allowed:.2f} allowed")
        medians.append(float(np.median(error)))
        worst = max(worst, float(error.max()))
    harness.check(max(medians) <= LARGEST_MEDIAN, f"{net}: medians of {medians} units")
    return worst, max(medians)


def to_q(array, q):
    return (np.rint(array * 2.0**q) / 2.0**q).astype(np.float32)


def fsmn():
    net = next(n for n in guide_nets.guide_nets() if n.name == "fsmn")
    random = np.random.RandomState(SEED)
    feats = random.randn(CALIBRATION_FRAMES, 1, 64).astype(np.float32)
    with harness.scratch() as folder:
        model = os.path.join(folder, "model.pb")
        with open(model, "wb") as f:
            f.write(net.graph.serialize())
        text = net.config(model).replace("CORENAME: GRUS\nNPU_UNIT: NPU32\n", "CORENAME: APUS\n")
        text = re.sub(r"^(FP16_OUT_OPS|COMPRESS):.*\n", "", text, flags=re.M)
        # Every frame of a run is a calibration sample, with the states that it met.
        states = {n: np.zeros(net.inputs[n]) for n in net.states.values()}
        samples = {n: [] for n in net.inputs}
        outputs = {n: [] for n in net.outputs}
        for t in range(CALIBRATION_FRAMES):
            frame = {"Feats": feats[t:t + 1].astype(np.float64), **states}
            for name, value in frame.items():
                samples[name].append(value)
            result = net.forward(frame)
            for name in net.outputs:
                outputs[name].append(result[name])
            states = {i: result[o] for o, i in net.states.items()}
        samples = {n: np.concatenate(v).astype(np.float32) for n, v in samples.items()}
        config, header, q = compile_apus(folder, text, samples)
        for name in net.inputs:
            state = [o for o, i in net.states.items() if i == name]
            check_q(name.upper(), q[name.upper()],
                    [samples[name]] + [np.concatenate(outputs[o]) for o in state])
            for o in state:
                harness.check(q[name.upper()] == q[o.upper()], f"{name} and {o} differ in Q")
        for name in net.outputs:
            if name not in net.states:
                check_q(name.upper(), q[name.upper()], [np.concatenate(outputs[name])])
        frames = {"Feats": feats[:FRAMES]}
        simulated = harness.simulate(header, frames, os.path.join(folder, "sim"), net.outputs)
        reference = harness.simulate(config, frames, os.path.join(folder, "ref"), net.outputs,
                                     verb="reference")
        truth = {n: np.concatenate(outputs[n][:FRAMES]) for n in net.outputs}
        for name in net.outputs:
            off = np.abs(reference[name].reshape(truth[name].shape) - truth[name]).max()
            harness.check(off < 1e-4, f"npuc reference of {name} is {off} off NumPy")
        rounded = harness.simulate(config, {"Feats": to_q(feats[:FRAMES], q["FEATS"])},
                                   os.path.join(folder, "rounded"), net.outputs, verb="reference")
        worst, median = compare("fsmn", simulated, truth, rounded, q,
                                rounding_layers(folder))
        check_quant_file(folder, config, text)
    harness.figure(f"APUS, fsmn: {FRAMES} frames, states fed back: off float by {median:.2f} "
                   f"units of 2^-Q in the median, {worst:.2f} at most; Q {q}")


def kws():
    codes = np.load(harness.shared("datasets", "kws01", "inputs_int8.npy"))
    labels = np.load(harness.shared("datasets", "kws01", "labels.npy"))
    real = (0.58470291 * (codes.astype(np.float32) - 83)).astype(np.float32)[..., None]
    half = len(real) // 2
    model = harness.shared("models", "tflite", "mlperf_tiny", "kws_ref_model_float32.tflite")
    text = f"CORENAME: APUS\nFRAMEWORK: TFLITE\nMODEL_FILE: {model}\nOUTPUT_FILE: model.h\n"
    with harness.scratch() as folder:
        np.save(os.path.join(folder, "samples.npy"), real[:half])
        config = os.path.join(folder, "apus.yaml")
        with open(config, "w", encoding="utf-8") as f:
            f.write(text + "QUANT: {calibration_data: samples.npy}\n")
        harness.npuc(config, "-o", folder)
        header = os.path.join(folder, "model.h")
        q = headers.check_header(header, fixed_point=True)[2]
        with open(os.path.join(folder, "report.json"), encoding="utf-8") as f:
            report = json.load(f)
        name, output = report["inputs"][0]["name"], report["outputs"][0]["name"]
        check_q(name, q[re.sub(r"\W", "_", name).upper()], [real[:half]])
        x = {name: real[half:half + KWS_ITEMS]}
        simulated = harness.simulate(header, x, os.path.join(folder, "sim"), [output])
        reference = harness.simulate(config, x, os.path.join(folder, "ref"), [output],
                                     verb="reference")
        fine = {name: to_q(x[name], next(iter(q.values())))}
        rounded = harness.simulate(config, fine, os.path.join(folder, "rounded"), [output],
                                   verb="reference")
        worst, median = compare("kws", simulated, reference, rounded, q,
                                rounding_layers(folder))
        right, wanted = (int((a[output].argmax(-1) == labels[half:half + KWS_ITEMS]).sum())
                         for a in (simulated, reference))
        harness.check(abs(right - wanted) <= 1, f"{right} right, the float model {wanted}")
        check_quant_file(folder, config, text)
    harness.figure(f"APUS, kws: {KWS_ITEMS} items it was not calibrated on: off float by "
                   f"{median:.2f} units of 2^-Q in the median, {worst:.2f} at most; {right} right "
                   f"(float {wanted}); Q {q}")


def main(arguments):
    nets = {"fsmn": fsmn, "kws": kws}
    harness.check(all(a in nets for a in arguments), f"nets are {list(nets)}")
    for name in arguments or nets:
        nets[name]()
