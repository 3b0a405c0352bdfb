"""Configs in the form of Compass's aipubuild against the YAML that means the same: the same bytes
from `npuc`, the same cache entry of the service, side inputs uploaded."""

import os

import numpy as np

import harness
import service

YAML = """CORENAME: X2_1204
FRAMEWORK: TFLITE
MODEL_FILE: {model}
OUTPUT_FILE: kws.h
QUANT:
  calibration_data: samples.npy
  calibration_strategy_for_activation: extrema
  quantize_method_for_weight: per_channel_symmetric_restricted_range
  global_calibration: [equalization, bias_correction]
"""
CFG = """; as aipubuild takes it
[Common]
mode = build

[Parser]
model_type = tflite
model_name = kws
input_model = {model}

[Optimizer]
calibration_data = samples.npy
calibration_strategy_for_activation = extrema
quantize_method_for_weight = per_channel_symmetric_restricted_range
global_calibration = equalization, bias_correction

[GBuilder]
target = X2_1204
"""


def contents(folder):
    out = {}
    for name in sorted(os.listdir(folder)):
        if name not in service.NOT_COMPARED:
            with open(os.path.join(folder, name), "rb") as f:
                out[name] = f.read()
    return out


def check_tasks(daemon, folder, model):
    """The service builds: it says so where a .cfg asks for a run, and refuses to write an IR."""
    run = os.path.join(folder, "run.cfg")
    with open(run, "w", encoding="utf-8") as f:
        f.write(CFG.format(model=model).replace("mode = build", "mode = run") +
                "inputs = absent.bin\n")
    said = daemon.remote("compile", run, "-o", os.path.join(folder, "run")).stderr
    harness.check("mode = run changes nothing: the service builds" in said, said)
    parse = os.path.join(folder, "parse.cfg")
    with open(parse, "w", encoding="utf-8") as f:
        f.write(f"[Common]\nmodel_type = tflite\nmodel_name = m\ninput_model = {model}\n")
    refused = daemon.remote("compile", parse, "-o", folder, expect=None)
    harness.check(refused.returncode != 0 and "asks for an IR" in refused.stderr, refused.stderr)


def main(arguments):
    harness.check(not arguments, "cfg takes no arguments")
    model = harness.shared("models", "tflite", "mlperf_tiny", "kws_ref_model_float32.tflite")
    codes = np.load(harness.shared("datasets", "kws01", "inputs_int8.npy"))[:20]
    with harness.scratch() as folder:
        np.save(os.path.join(folder, "samples.npy"),
                (0.58470291 * (codes.astype(np.float32) - 83)).astype(np.float32)[..., None])
        paths = {}
        for name, text in (("job.yaml", YAML), ("job.cfg", CFG)):
            paths[name] = os.path.join(folder, name)
            with open(paths[name], "w", encoding="utf-8") as f:
                f.write(text.format(model=model))
        harness.npuc(paths["job.yaml"], "-o", os.path.join(folder, "yaml"))
        harness.npuc(paths["job.cfg"], "-o", os.path.join(folder, "cfg"))
        wanted, got = contents(os.path.join(folder, "yaml")), contents(os.path.join(folder, "cfg"))
        harness.check(list(wanted) == list(got), f"{list(got)}, not {list(wanted)}")
        for name in wanted:
            harness.check(got[name] == wanted[name], f"{name} of the .cfg differs")
        daemon = service.Daemon(folder)
        try:
            daemon.start()
            hits = []
            for name in ("job.cfg", "job.yaml"):
                out = os.path.join(folder, "remote_" + name)
                job = daemon.json("compile", paths[name], "-o", out)[-1]
                harness.check(job["state"] == "SUCCEEDED", f"{name}: {job}")
                hits.append(job["cache_hit"])
                harness.check(contents(out)["kws.h"] == wanted["kws.h"], f"{name}: another header")
            harness.check(hits == [False, True], f"cache hits of .cfg and YAML: {hits}")
            check_tasks(daemon, folder, model)
            with open(paths["job.cfg"], "a", encoding="utf-8") as f:
                f.write("targt = X1_1204\n")
            refused = daemon.remote("compile", paths["job.cfg"], "-o", folder, expect=None)
            harness.check(refused.returncode != 0 and "did you mean 'target'?" in refused.stderr,
                          f"exit {refused.returncode}: {refused.stderr}")
        finally:
            daemon.stop()
    harness.figure(f"cfg: {len(wanted)} artifacts of a .cfg and of the YAML that means the same "
                   "are equal; the service takes both and answers the second from its cache")
