"""KEEP_STATES: recurrent layers that go on from call to call, against NumPy and longer runs.

    run_e2e.py kept_states

An ONNX LSTM, GRU and RNN of random weights are compiled for a few steps a call; over CALLS calls,
states fed back by the tools, their answers must be those of one layer in NumPy that runs through
all steps. So must the published log model in TorchScript (models/wild) be, whose answer to all
steps at once comes from `npuc reference`, which `wild` compares with PyTorch's.
"""

import os

import numpy as np

import harness
from onnxmodel import model, node

STEPS, CALLS, IN, UNITS = 3, 5, 4, 6
LOG_MODEL = os.path.join(harness.SHARED, "models", "wild", "pt", "deeplog_lstm.pt")
LOG_SIZE = 1
REFERENCE_TOLERANCE = 1e-5
# Results within -1 and 1 of a dozen roundings a step to 2^-11.
GRUS_TOLERANCE = 0.01


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def numpy_layer(kind, x, w, r, bias):
    """The layer by ONNX's formulas over x [steps, 1, IN] from zeros: [steps, UNITS]."""
    h, c, answers = np.zeros(UNITS), np.zeros(UNITS), []
    w_bias, r_bias = np.split(bias, 2)
    for step in x[:, 0]:
        of_x, of_h = w @ step + w_bias, r @ h + r_bias
        if kind == "RNN":
            h = np.tanh(of_x + of_h)
        elif kind == "GRU":
            z, reset = (sigmoid(of_x[k:k + UNITS] + of_h[k:k + UNITS]) for k in (0, UNITS))
            fresh = np.tanh(of_x[2 * UNITS:] + reset * of_h[2 * UNITS:])
            h = (1 - z) * fresh + z * h
        else:
            i, o, f, g = np.split(of_x + of_h, 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
        answers.append(h)
    return np.array(answers)


def run(folder, config, artifact, inputs, output):
    """{verb: the answers of all calls}."""
    path = os.path.join(folder, "x.npy")
    np.save(path, inputs.astype(np.float32))
    found = {}
    for verb, what in (("reference", config), ("run", artifact)):
        out = os.path.join(folder, verb)
        harness.npuc(verb, what, "--input", path if output is None else f"x={path}", "-o", out)
        names = [n for n in os.listdir(out) if not n.endswith("_out.npy")]
        harness.check(len(names) == 1, f"outputs {os.listdir(out)}")
        found[verb] = np.load(os.path.join(out, names[0]))
    return found


def check_onnx(kind, gates):
    random = np.random.RandomState(gates)
    w = random.uniform(-1, 1, (gates * UNITS, IN))
    r = random.uniform(-1, 1, (gates * UNITS, UNITS))
    bias = random.uniform(-0.5, 0.5, 2 * gates * UNITS)
    weights = {"w": w[None].astype(np.float32), "r": r[None].astype(np.float32),
               "b": bias[None].astype(np.float32)}
    more = {"linear_before_reset": 1} if kind == "GRU" else {}
    net = model([node(kind, ["x", "w", "r", "b"], ["y"], hidden_size=UNITS, **more)],
                [("x", [STEPS, 1, IN])], [("y", [STEPS, 1, 1, UNITS])], weights)
    x = random.uniform(-1, 1, (CALLS * STEPS, 1, IN)).astype(np.float32)
    wanted = numpy_layer(kind, x, *(weights[k][0].astype(np.float64) for k in "wrb"))
    with harness.scratch() as folder:
        with open(os.path.join(folder, "net.onnx"), "wb") as f:
            f.write(net)
        config = os.path.join(folder, "net.yaml")
        with open(config, "w", encoding="utf-8") as f:
            f.write("CORENAME: GRUS\nFRAMEWORK: ONNX\nMODEL_FILE: net.onnx\nOUTPUT_FILE: net.h\n"
                    "KEEP_STATES: [y]\n")
        header = harness.compile_header(config, os.path.join(folder, "out"), "net.h")
        with open(header, encoding="utf-8") as f:
            text = f.read()
        harness.check("y_h_out" in text, f"{kind}: the header has no state")
        found = run(folder, config, header, x.reshape(CALLS, STEPS, 1, IN), "y")
    errors = {verb: float(np.abs(got.reshape(wanted.shape) - wanted).max())
              for verb, got in found.items()}
    harness.check(errors["reference"] < REFERENCE_TOLERANCE, f"{kind}: off by {errors}")
    harness.check(errors["run"] < GRUS_TOLERANCE, f"{kind}: GRUS is off by {errors}")
    return errors["run"]


def check_torch(folder):
    """The last answer of CALLS calls, and that to all steps in one call of the float reference."""
    random = np.random.RandomState(9)
    x = random.uniform(-1, 1, (1, CALLS * STEPS, LOG_SIZE)).astype(np.float32)
    answers = {}
    for kept, steps in ((True, STEPS), (False, CALLS * STEPS)):
        config = os.path.join(folder, f"{steps}.yaml")
        with open(config, "w", encoding="utf-8") as f:
            f.write(f"CORENAME: GRUS\nFRAMEWORK: PT\nMODEL_FILE: {LOG_MODEL}\nOUTPUT_FILE: net.h\n"
                    f"INPUT_OPS: {{0: [1, {steps}, {LOG_SIZE}]}}\n"
                    + ("KEEP_STATES: ['*']\n" if kept else ""))
        out = os.path.join(folder, f"out_{steps}")
        header = harness.compile_header(config, out, "net.h")
        given = x.reshape(-1, 1, steps, LOG_SIZE)
        answers[kept] = {verb: got.reshape(len(given), -1)[-1]
                         for verb, got in run(folder, config, header, given, None).items()}
    size = np.abs(answers[False]["reference"]).max()
    errors = {verb: float(np.abs(answers[True][verb] - answers[False]["reference"]).max() / size)
              for verb in ("reference", "run")}
    harness.check(errors["reference"] < REFERENCE_TOLERANCE, f"the log model: off by {errors}")
    harness.check(errors["run"] < GRUS_TOLERANCE, f"the log model: GRUS is off by {errors}")
    return errors["run"]


def main(arguments):
    harness.check(not arguments, "kept_states takes no arguments")
    worst = {kind: check_onnx(kind, gates)
             for kind, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4))}
    if os.path.exists(LOG_MODEL):
        with harness.scratch() as folder:
            worst["deeplog"] = check_torch(folder)
    harness.figure(f"kept_states: over {CALLS} calls of {STEPS} steps GRUS is off by at most "
                   + ", ".join(f"{error:.4f} ({kind})" for kind, error in worst.items()))
