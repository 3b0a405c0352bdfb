"""Published 8-bit models on the integer cores: bit-equal to an independent emulation of TFLite.

    int8_models [NAME...]   NAME: a part of the model's file name

Each model is compiled for X2_1204 and simulated on stored values; int8_emulation.py computes the
same in NumPy from the .tflite file. kws_ref_model_int8 runs on the 700 labelled inputs of
datasets/kws01, the others on seeded ones. The uint8 models of models/wild run on their recorded
inputs, and the emulation is held against what TensorFlow Lite answered: its weights have zero
points, so that a weight less its own takes nine bits.
"""

import os
import sys

import numpy as np

import harness
import int8_emulation

MODELS = ["mlperf_tiny/kws_ref_model_int8", "mlperf_tiny/resnet8_int8", "mlperf_tiny/ad01_int8",
          "arm_kws/cnn_s_quantized", "arm_kws/dnn_s_quantized", "arm_kws/ds_cnn_s_quantized"]
# Of models/wild, with TensorFlow Lite's own outputs: so many steps the emulation may be off them.
# TensorFlow Lite's x86 kernels round once where its reference kernels, and so the emulation, round
# twice; the sums of the second net's residuals pass such steps on.
RECORDED = {"tfls_mnv1_025_u8": 1, "tfls_automl_labeler": 3}
CORE = "X2_1204"
SEEDED_ITEMS = 20


def first_integers(model):
    """The tensor that the model's input becomes: its own, or what QUANTIZE makes of it."""
    tensor = model.tensors[model.inputs[0]]
    for kind, inputs, outputs, _ in model.ops:
        if kind == "QUANTIZE" and inputs[0] == model.inputs[0]:
            return model.tensors[outputs[0]]
    return tensor


def stored_inputs(name, model):
    tensor = first_integers(model)
    if name.endswith("kws_ref_model_int8"):
        return np.load(harness.shared("datasets", "kws01", "inputs_int8.npy"))[..., None]
    random = np.random.default_rng(len(name))
    return random.integers(-128, 128, [SEEDED_ITEMS] + tensor.shape[1:]).astype(np.int8)


def check_recorded(name):
    path = harness.shared("models", "wild", "tflite", f"{name}.tflite")
    recorded = np.load(harness.shared("models", "wild", "tflite", f"{name}.oracle.npz"))
    model = int8_emulation.Model(path)
    inputs = np.concatenate(list(recorded["in0"]))
    expected = model.run(inputs)[model.outputs[0]]
    answered = recorded["out0"].reshape(expected.shape).astype(np.int64)
    steps = np.abs(expected - answered)
    text = (f"{name}: the emulation is off TensorFlow Lite in {int((steps > 0).sum())} of "
            f"{steps.size} stored outputs, by {steps.max()} steps at most")
    harness.figure(text)
    harness.check(steps.max() <= RECORDED[name], text)
    with harness.scratch() as folder:
        found = simulate(name, path, inputs, folder).reshape(expected.shape)
    differing = int((found != expected).sum())
    text = f"{name}: {len(inputs)} items, {differing} of {expected.size} stored outputs differ"
    harness.figure(text)
    harness.check(differing == 0, text)


def simulate(name, path, inputs, folder):
    """Stored outputs of the compiled model, by name."""
    config = os.path.join(folder, "config.yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write(f"CORENAME: {CORE}\nFRAMEWORK: TFLITE\nMODEL_FILE: {path}\nOUTPUT_FILE: m.h\n")
    harness.npuc(config, "-o", folder)
    source = os.path.join(folder, "x.npy")
    np.save(source, inputs)
    out = os.path.join(folder, "out")
    model = int8_emulation.Model(path)
    port = model.tensors[model.inputs[0]].name
    harness.npuc("run", os.path.join(folder, "m.npuc"), "--input", f"{port}={source}",
                 "--output-dir", out, "--raw")
    files = os.listdir(out)
    harness.check(len(files) == 1, f"{name}: outputs {files}")
    return np.load(os.path.join(out, files[0]))


def check_model(name):
    path = harness.shared("models", "tflite", f"{name}.tflite")
    model = int8_emulation.Model(path)
    inputs = stored_inputs(name, model)
    expected = model.run(inputs)[model.outputs[0]]
    with harness.scratch() as folder:
        found = simulate(name, path, inputs, folder).reshape(expected.shape)
    differing = int((found != expected).sum())
    text = f"{name}: {len(inputs)} items, {differing} of {expected.size} stored outputs differ"
    if name.endswith("kws_ref_model_int8"):
        labels = np.load(harness.shared("datasets", "kws01", "labels.npy"))
        right, reference = (int((a.argmax(-1) == labels).sum()) for a in (found, expected))
        text += f", {right} of {len(labels)} right (TFLite's arithmetic: {reference})"
        harness.check(abs(right - reference) <= 1, text)
    harness.figure(text)
    harness.check(differing == 0, text)


def main(arguments):
    names = [m for m in MODELS if not arguments or any(a in m for a in arguments)]
    recorded = [m for m in RECORDED if not arguments or any(a in m for a in arguments)]
    harness.check(names or recorded, f"no model is called {arguments}")
    for name in names:
        check_model(name)
    for name in recorded:
        check_recorded(name)


if __name__ == "__main__":
    main(sys.argv[1:])
