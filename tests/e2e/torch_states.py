"""TorchScript models that keep their state in attributes, against PyTorch over 50 frames.

    run_e2e.py torch_states

`streaming` is a module of tests/oracle/torch_states: a buffer that is written in place, an
attribute that is empty before the first call, a list of tensors, a flag; its answers are a dict.
`silero` is the published voice detector of the shared folder. npuc makes inputs and outputs of the
states and feeds them back; GRUS and the float reference must answer as PyTorch did.
"""

import json
import os

import numpy as np

import harness

FOLDER = os.path.join(harness.ROOT, "tests", "oracle", "torch_states")
SILERO = os.path.join(harness.SHARED, "models", "torchscript", "silero_vad.jit")
FRAMES = 50
# name: (model, input's shape, CONST_INPUTS, the core's largest error, what init may warn of)
MODELS = {
    "streaming": (os.path.join(FOLDER, "streaming.pt"), [1, 6], {}, 0.004),
    "silero": (SILERO, [1, 512], {1: 16000}, 0.01),
}


def frames(name):
    """[FRAMES, shape...] of multiples of 1/1024, which fp16 holds: noise that grows and fades."""
    shape = MODELS[name][1]
    random = np.random.RandomState(len(name))
    loudness = 0.25 + 0.5 * np.sin(np.arange(FRAMES) / 5) ** 2
    values = random.uniform(-1, 1, (FRAMES, *shape)) * loudness.reshape(-1, *[1] * len(shape))
    return (np.round(values * 1024) / 1024).astype(np.float32)


def check(name, recorded):
    model, shape, constants, allowed = MODELS[name]
    with harness.scratch() as folder:
        config = {"CORENAME": "GRUS", "FRAMEWORK": "PT", "MODEL_FILE": model,
                  "OUTPUT_FILE": "net.h", "INPUT_OPS": {0: shape}}
        if constants:
            config["CONST_INPUTS"] = constants
        path = os.path.join(folder, "net.yaml")
        with open(path, "w", encoding="utf-8") as f:
            # JSON's keys are texts, and a config counts inputs.
            f.write("\n".join(f"{k}: {{{', '.join(f'{i}: {x}' for i, x in v.items())}}}"
                              if isinstance(v, dict) else f"{k}: {v}" for k, v in config.items()))
        said = harness.npuc(path, "-o", folder).stderr
        harness.check("NPUC1192" in said, f"{name}: nothing is said of the first call: {said}")
        given = os.path.join(folder, "x.npy")
        np.save(given, frames(name))
        worst = {}
        for verb, artifact in (("reference", path), ("run", os.path.join(folder, "net.h"))):
            out = os.path.join(folder, verb)
            harness.npuc(verb, artifact, "--input", f"x={given}", "-o", out)
            got = [np.load(os.path.join(out, f"output_{k}.npy")).reshape(FRAMES, -1)
                   for k in range(len(recorded))]
            worst[verb] = max(float(np.abs(g - np.asarray(r)).max())
                              for g, r in zip(got, recorded))
        harness.check(worst["reference"] < 1e-4, f"{name}: the reference is off by {worst}")
        harness.check(worst["run"] < allowed, f"{name}: GRUS is off by {worst}")
        return f"{name} {worst['reference']:.1e}, on GRUS {worst['run']:.4f}"


def main(arguments):
    harness.check(not arguments, "torch_states takes no arguments")
    with open(os.path.join(FOLDER, "recorded.json"), encoding="utf-8") as f:
        recorded = json.load(f)
    said = [check(name, recorded[name]) for name in MODELS if os.path.exists(MODELS[name][0])]
    harness.figure(f"torch_states: largest errors over {FRAMES} frames: " + "; ".join(said))
