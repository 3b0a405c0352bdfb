"""`npuc evaluate`: each metric of the published int8 keyword net and of its float original, over
labelled data, against the same figures computed in NumPy from what `npuc run` and `npuc reference`
answer.
"""

import json
import math
import os

import numpy as np

import harness

ITEMS = 64
FLOAT_MODEL = "mlperf_tiny/kws_ref_model_float32"
INT8_MODEL = "mlperf_tiny/kws_ref_model_int8"
INPUT_SCALE, INPUT_ZERO = 0.58470291, 83


def write_config(folder, name, core, model):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"CORENAME: {core}\nFRAMEWORK: TFLITE\nOUTPUT_FILE: m.h\n"
                f"MODEL_FILE: {harness.shared('models', 'tflite', model + '.tflite')}\n")
    return path


def evaluate(config, artifact, source, *arguments, **options):
    result = harness.npuc("evaluate", config, artifact, "--input", source, *arguments, "--json",
                          **options)
    return json.loads(result.stdout)


def numpy_figures(wanted, got, labels):
    """Both columns of each metric, by NumPy alone."""
    w, g = wanted.astype(np.float64), got.astype(np.float64)
    error = ((g - w)**2).sum()

    def top(scores, k):
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return float((order == labels[:, None]).any(axis=1).mean())

    return {"cosine": (1.0, float((w * g).sum() / np.sqrt((w**2).sum() * (g**2).sum()))),
            "mse": (0.0, float(error / w.size)),
            "sqnr": (None, float(10 * np.log10((w**2).sum() / error))),
            "topk": (top(wanted, 1), top(got, 1)),
            "topk:3": (top(wanted, 3), top(got, 3))}


def check_figures(report, expected):
    found = {m["metric"]: (m["float"], m["artifact"]) for m in report["metrics"]}
    harness.check(set(found) == set(expected), f"metrics {sorted(found)}")
    for name, pair in expected.items():
        for value, want in zip(found[name], pair):
            same = value is None and want is None or (
                value is not None and want is not None and
                math.isclose(value, want, rel_tol=1e-5, abs_tol=1e-7))
            harness.check(same, f"{name}: npuc says {found[name]}, NumPy {pair}")
    return found


def check_compiled(folder, x, label, metrics, labels):
    """QUANT's data, label and metric: the figures in report.json, of a float model quantized here,
    are NumPy's of what `npuc run` and `npuc reference` answer."""
    config = write_config(folder, "measured.yaml", "X2_1204", FLOAT_MODEL)
    with open(config, "a", encoding="utf-8") as f:
        f.write(f"QUANT: {{calibration_data: {x}, calibration_strategy_for_activation: extrema, "
                f"data: {x}, label: {label}, metric: {json.dumps(metrics)}}}\n")
    out = os.path.join(folder, "measured")
    harness.npuc(config, "-o", out)
    with open(os.path.join(out, "report.json"), encoding="utf-8") as f:
        report = json.load(f)
    name, output = report["inputs"][0]["name"], report["outputs"][0]["name"]
    items = {name: np.load(x)}
    wanted = harness.simulate(config, items, os.path.join(out, "r"), [output],
                              verb="reference")[output]
    got = harness.simulate(os.path.join(out, "m.npuc"), items, os.path.join(out, "s"),
                           [output])[output]
    found = report["metrics"]
    harness.check((found["source"], found["by"], found["items"]) == ("data", "simulator", ITEMS),
                  f"measured by {found}")
    figures = [{**f, "artifact": f["quantized"]} for f in found["figures"]]
    check_figures({"metrics": figures}, numpy_figures(wanted, got, labels))


def check_refusals(config, artifact, source, label):
    for arguments, text in (
            (["--metric", "top"], "none of cosine, mse"),
            (["--metric", "topk"], "needs --label"),
            (["--metric", "auc", "--label", label], "one score and one label"),
            (["--metric", "wer", "--label", label], "labels [items, words]"),
            (["--output", "nothing"], "no output 'nothing'")):
        report = evaluate(config, artifact, source, *arguments, expect=1)
        harness.check(any(text in d["message"] for d in report["diagnostics"]),
                      f"{arguments}: {report['diagnostics']}")


def main(_arguments):
    codes = np.load(harness.shared("datasets", "kws01", "inputs_int8.npy"))[:ITEMS]
    labels = np.load(harness.shared("datasets", "kws01", "labels.npy"))[:ITEMS]
    real = (INPUT_SCALE * (codes.astype(np.float32) - INPUT_ZERO)).astype(np.float32)[..., None]
    with harness.scratch() as folder:
        float_config = write_config(folder, "float.yaml", "X2_1204", FLOAT_MODEL)
        int8_config = write_config(folder, "int8.yaml", "X2_1204", INT8_MODEL)
        harness.npuc(int8_config, "-o", folder)
        artifact = os.path.join(folder, "m.h")  # a header of an integer core is read as well
        x, label = (os.path.join(folder, n) for n in ("x.npy", "y.npy"))
        np.save(x, real)
        np.save(label, labels)
        ports = json.load(open(os.path.join(folder, "report.json"), encoding="utf-8"))
        name, output = ports["inputs"][0]["name"], ports["outputs"][0]["name"]
        wanted = harness.simulate(int8_config, {name: real}, os.path.join(folder, "r"), [output],
                                  verb="reference")[output]
        got = harness.simulate(artifact, {name: real}, os.path.join(folder, "s"), [output])[output]
        metrics = ["cosine", "mse", "sqnr", "topk", "topk:3"]
        arguments = [a for m in metrics for a in ("--metric", m)] + ["--label", label]
        report = evaluate(int8_config, artifact, f"{name}={x}", *arguments)
        found = check_figures(report, numpy_figures(wanted, got, labels))
        check_compiled(folder, x, label, metrics, labels)
        check_refusals(int8_config, artifact, f"{name}={x}", label)
        harness.check(os.path.exists(float_config), "no config")
    harness.figure(f"evaluate, kws int8 on {ITEMS} labelled items: {len(metrics)} metrics equal "
                   f"NumPy's, in report.json of the float model quantized as well; "
                   f"top-1 {found['topk'][1]:.3f} (float {found['topk'][0]:.3f}), "
                   f"SQNR {found['sqnr'][1]:.1f} dB")
