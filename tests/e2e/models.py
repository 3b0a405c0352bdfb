"""Every model of shared/models/tf: compiled for GRUS with COMPRESS off and on, simulated on 100
seeded inputs, and compared with `npuc reference` in float. Audio front ends are cut.

Nets with a NumPy twin below are computed a second time, from the .pb's weights alone, by code that
shares nothing with npuc; the float reference must equal that.
"""

import json
import os
import re

import numpy as np

import graphdef
import harness

ITEMS = 100
SEED = 11
# Of the largest magnitude of an output (1 for probabilities), without COMPRESS: fp16 keeps 11 bits,
# and a recurrent net adds up rounding over its 25 or 28 turns.
LARGEST_ERROR = 0.02
SMALLEST_AGREEMENT = 0.97
# With 8-bit weights. A wrong code, mask or block order gives an agreement near chance.
COMPRESSED_AGREEMENT = 0.80
# Of fully connected nets, by COMPRESS: three times and twice what a NumPy emulation of fp16
# rounding and of the 8-bit codes gives on these inputs (0.003 and 0.084), since the order of sums
# is free.
DNN_LARGEST_ERROR = {False: 0.01, True: 0.17}
DNN_AGREEMENT = {False: 0.99, True: 0.95}

CONFIG = """\
CORENAME: GRUS
NPU_UNIT: NPU32
FRAMEWORK: TF
MODEL_FILE: {model}
OUTPUT_TYPE: c_code
OUTPUT_FILE: model.h
COMPRESS: {compress}
INPUT_OPS:
{inputs}
OUTPUT_OPS: [{output}]
"""


def mfcc(frames):
    """Features of real recordings (a frame each 20 ms), every other where a net takes 25 frames."""
    codes = np.load(harness.shared("datasets", "kws01", "inputs_int8.npy"))
    chosen = np.random.RandomState(SEED).permutation(len(codes))[:ITEMS]
    real = 0.58470291 * (codes[chosen].astype(np.float32) - 83)
    real = real.reshape(ITEMS, 49, 10)[:, ::49 // frames + (49 % frames > 0)]
    return {"Reshape": np.ascontiguousarray(real.reshape(ITEMS, frames * 10), np.float32)}


def pixels(name, **others):
    x = np.random.RandomState(SEED).rand(ITEMS, 784).astype(np.float32)
    return {name: x, **others}


def rows(rank):
    """28 rows of 28 pixels, and dropout switched off: keep everything, divide by one."""
    x = np.random.RandomState(SEED).rand(ITEMS, *[1] * (rank - 2), 784).astype(np.float32)
    return {"X": x, "keep_prob": np.ones(1, np.float32),
            "model/dropout/Floor": np.ones((1, 128), np.float32)}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    x = np.exp(x - x.max(axis=1, keepdims=True))
    return x / x.sum(axis=1, keepdims=True)


def gru(x, gates, gates_bias, candidate, candidate_bias):
    """[items, turns, features] -> the last state, of TensorFlow's GRUCell."""
    h = np.zeros((len(x), candidate.shape[1]))
    for t in range(x.shape[1]):
        r, u = np.split(sigmoid(np.hstack([x[:, t], h]) @ gates + gates_bias), 2, axis=1)
        c = np.tanh(np.hstack([x[:, t], r * h]) @ candidate + candidate_bias)
        h = u * h + (1 - u) * c
    return h


def twin_arm_dnn(inputs, weights):
    x = inputs["Reshape"].astype(np.float64)
    for layer in ("fc1", "fc2", "fc3"):
        x = np.maximum(x @ weights[f"{layer}/W"] + weights[f"{layer}/b"], 0)
    return softmax(x @ weights["final_fc"] + weights["Variable"])


def twin_arm_gru(inputs, weights):
    x = inputs["Reshape"].astype(np.float64).reshape(ITEMS, -1, 10)
    cell = "rnn/multi_rnn_cell/cell_0/gru_cell/"
    h = gru(x, *(weights[cell + n] for n in ("gates/kernel", "gates/bias", "candidate/kernel",
                                             "candidate/bias")))
    return softmax(h @ weights["W_o"] + weights["b_o"])


def twin_arm_lstm(inputs, weights):
    """TensorFlow's LSTMCell with peepholes and a projection."""
    x = inputs["Reshape"].astype(np.float64).reshape(ITEMS, 25, 10)
    w = {n[len("lstm/rnn/lstm_cell/"):]: a for n, a in weights.items()
         if n.startswith("lstm/rnn/lstm_cell/")}
    h = np.zeros((ITEMS, w["projection/kernel"].shape[1]))
    c = np.zeros((ITEMS, w["projection/kernel"].shape[0]))
    for t in range(25):
        gates = np.hstack([x[:, t], h]) @ w["kernel"] + w["bias"]
        i, j, f, o = np.split(gates, 4, axis=1)
        c = (sigmoid(f + 1 + w["w_f_diag"] * c) * c +
             sigmoid(i + w["w_i_diag"] * c) * np.tanh(j))
        h = (sigmoid(o + w["w_o_diag"] * c) * np.tanh(c)) @ w["projection/kernel"]
    return softmax(h @ weights["W_o"] + weights["b_o"])


def twin_rows_gru(inputs, weights):
    x = inputs["X"].astype(np.float64).reshape(ITEMS, 28, 28)
    cell = "rnn/gru_cell/"
    h = gru(x, *(weights[cell + n] for n in ("gates/kernel", "gates/bias", "candidate/kernel",
                                             "candidate/bias")))
    return h @ weights["model/w1"] + weights["model/b1"]


class Model:
    """`largest_error` of the largest magnitude of an output and `agreement` are what is asked for,
    by COMPRESS."""

    def __init__(self, path, inputs, output, twin=None, largest_error=None, agreement=None):
        self.path, self.inputs, self.output, self.twin = path, inputs, output, twin
        self.largest_error = largest_error or {False: LARGEST_ERROR, True: np.inf}
        self.agreement = agreement or {False: SMALLEST_AGREEMENT, True: COMPRESSED_AGREEMENT}
        self.name = re.sub(r"\.pb$", "", os.path.basename(path))


def models():
    kws = "arm_kws/"
    out = "labels_softmax"
    found = [Model(f"{kws}{n}.pb", mfcc(25), out, twin_arm_dnn, DNN_LARGEST_ERROR, DNN_AGREEMENT)
             for n in ("DNN_S", "DNN_M")]
    found += [Model(f"{kws}{n}.pb", mfcc(49), out)
              for n in ("CNN_S", "CNN_M", "DS_CNN_S", "DS_CNN_M")]
    found += [Model(f"{kws}GRU_S.pb", mfcc(25), out, twin_arm_gru),
              Model(f"{kws}GRU_M.pb", mfcc(49), out, twin_arm_gru)]
    found.append(Model(f"{kws}LSTM_S.pb", mfcc(25), out, twin_arm_lstm))
    found += [Model("tf2onnx/ae0.pb", pixels("X"), "output"),
              Model("tf2onnx/fc-layers.pb", pixels("X"), "output"),
              Model("tf2onnx/gru.pb", rows(2), "output", twin_rows_gru),
              Model("tf2onnx/lstm.pb", rows(2), "output"),
              Model("simple_mnist_tf.pb", pixels("Placeholder"), "Softmax")]
    return found


def config_of(model, path, compress):
    shapes = {n: [1, *a.shape[1:]] for n, a in model.inputs.items()}
    return CONFIG.format(model=os.path.abspath(path), compress=str(compress).lower(),
                         inputs="\n".join(f"  {n}: {s}" for n, s in shapes.items()),
                         output=model.output)


def check_twin(model, path, reference):
    with open(path, "rb") as f:
        weights = {n.name: n.tensor() for n in graphdef.read_graph(f.read()) if n.op == "Const"}
    error = float(np.abs(reference - model.twin(model.inputs, weights)).max())
    harness.check(error < 1e-4 * max(1.0, float(np.abs(reference).max())),
                  f"{model.name}: npuc reference is off by {error:.2g} from NumPy")
    return f"; reference against NumPy {error:.1e}"


def compare(model, path, compress):
    with harness.scratch() as folder:
        config = os.path.join(folder, "config.yaml")
        with open(config, "w", encoding="utf-8") as f:
            f.write(config_of(model, path, compress))
        header = harness.compile_header(config, folder, "model.h")
        with open(os.path.join(folder, "report.json"), encoding="utf-8") as f:
            plan = json.load(f)["memory_plan"]
        out = model.output
        simulated = harness.simulate(header, model.inputs, os.path.join(folder, "sim"), [out])[out]
        reference = harness.simulate(config, model.inputs, os.path.join(folder, "ref"), [out],
                                     verb="reference")[out]
    simulated, reference = simulated.reshape(ITEMS, -1), reference.reshape(ITEMS, -1)
    harness.check(np.isfinite(simulated).all(), f"{model.name}: an output is not finite")
    twin = check_twin(model, path, reference) if model.twin and not compress else ""
    error = np.abs(simulated - reference)
    agreement = float((simulated.argmax(axis=1) == reference.argmax(axis=1)).mean())
    harness.figure(f"{model.name}, COMPRESS {compress}: {ITEMS} inputs, error against the float "
                   f"model: largest {error.max():.5f}, mean {error.mean():.6f}; same top-1 "
                   f"{agreement:.0%}{twin}")
    arena, bound = plan["arena_bytes"], plan["liveness_bound_bytes"]
    harness.figure(f"{model.name}, COMPRESS {compress}: data_content {arena} bytes, liveness bound "
                   f"{bound} ({plan['method']})")
    harness.check(arena == bound, f"{model.name}: data_content is above its liveness bound")
    largest = max(1.0, float(np.abs(reference).max()))
    most = model.largest_error[compress]
    harness.check(error.max() <= most * largest,
                  f"{model.name}: the largest error is above {most} of {largest:.3g}")
    least = model.agreement[compress]
    harness.check(agreement >= least, f"{model.name}: top-1 agreement is below {least:.0%}")


def main(arguments):
    """Arguments: names of models, all where there are none."""
    chosen = [m for m in models() if not arguments or m.name in arguments]
    harness.check(chosen, f"no model is named so; there are {[m.name for m in models()]}")
    folder = harness.shared("models", "tf")
    on_disk = {f for _, _, files in os.walk(folder) for f in files if f.endswith(".pb")}
    listed = {os.path.basename(m.path) for m in models()}
    harness.check(on_disk == listed, f"models without a line here: {sorted(on_disk ^ listed)}")
    for model in chosen:
        for compress in (False, True):
            compare(model, harness.shared("models", "tf", model.path), compress)
