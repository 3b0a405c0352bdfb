"""ARM's published keyword nets DNN_S and DNN_M, cut behind their audio front end: compiled for
GRUS, simulated, and compared with `npuc reference` and with a NumPy forward pass of the .pb.
"""

import os

import numpy as np

import graphdef
import harness

ITEMS = 100
SEED = 7
FEATURES = 250  # 25 frames of 10 MFCCs
# Of probabilities, by COMPRESS. Three times and twice what a NumPy emulation of fp16 rounding and
# of the 8-bit codes gives on these inputs (0.003 and 0.084), since the order of sums is free.
LARGEST_ERROR = {False: 0.01, True: 0.17}
SMALLEST_AGREEMENT = {False: 0.99, True: 0.95}

CONFIG = """\
CORENAME: GRUS
NPU_UNIT: NPU32
FRAMEWORK: TF
MODEL_FILE: {model}
OUTPUT_TYPE: c_code
OUTPUT_FILE: model.h
COMPRESS: {compress}
INPUT_OPS:
  Reshape: [1, 250]
OUTPUT_OPS: [labels_softmax]
"""


def inputs():
    """Features of real recordings: the nets take a frame each 40 ms, the data have one each 20."""
    codes = np.load(harness.shared("datasets", "kws01", "inputs_int8.npy"))
    chosen = np.random.RandomState(SEED).permutation(len(codes))[:ITEMS]
    real = 0.58470291 * (codes[chosen].astype(np.float32) - 83)
    return np.ascontiguousarray(real.reshape(ITEMS, 49, 10)[:, ::2].reshape(ITEMS, FEATURES),
                                dtype=np.float32)


def forward(model, x):
    """The net in float64, from the graph file alone."""
    with open(model, "rb") as f:
        weights = {n.name: n.tensor() for n in graphdef.read_graph(f.read()) if n.op == "Const"}
    x = x.astype(np.float64)
    for layer in ("fc1", "fc2", "fc3"):
        x = np.maximum(x @ weights[f"{layer}/W"] + weights[f"{layer}/b"], 0)
    x = x @ weights["final_fc"] + weights["Variable"]
    x = np.exp(x - x.max(axis=1, keepdims=True))
    return x / x.sum(axis=1, keepdims=True)


def compare(name, model, x, compress):
    name_out = "labels_softmax"
    with harness.scratch() as folder:
        config = os.path.join(folder, "config.yaml")
        with open(config, "w", encoding="utf-8") as f:
            f.write(CONFIG.format(model=os.path.abspath(model), compress=str(compress).lower()))
        header = harness.compile_header(config, folder, "model.h")
        simulated = harness.simulate(header, {"Reshape": x}, os.path.join(folder, "sim"),
                                     [name_out])[name_out]
        reference = harness.simulate(config, {"Reshape": x}, os.path.join(folder, "ref"),
                                     [name_out], verb="reference")[name_out]
    simulated, reference = simulated.reshape(ITEMS, -1), reference.reshape(ITEMS, -1)
    truth = forward(model, x)
    reference_error = float(np.abs(reference - truth).max())
    harness.check(reference_error < 1e-4,
                  f"{name}: npuc reference is off by {reference_error:.2g} from NumPy")
    error = np.abs(simulated - reference)
    agreement = float((simulated.argmax(axis=1) == reference.argmax(axis=1)).mean())
    harness.figure(f"{name}, COMPRESS {compress}: {ITEMS} inputs, error against the float model: "
                   f"largest {error.max():.5f}, mean {error.mean():.6f}; same top-1 "
                   f"{agreement:.0%}; reference against NumPy {reference_error:.1e}")
    harness.check(error.max() <= LARGEST_ERROR[compress],
                  f"{name}: the largest error is above {LARGEST_ERROR[compress]}")
    harness.check(agreement >= SMALLEST_AGREEMENT[compress],
                  f"{name}: top-1 agreement is below {SMALLEST_AGREEMENT[compress]:.0%}")


def main(arguments):
    x = inputs()
    for name in ("DNN_S", "DNN_M"):
        model = harness.shared("models", "tf", "arm_kws", f"{name}.pb")
        for compress in (False, True):
            compare(name, model, x, compress)
