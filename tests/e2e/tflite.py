"""TFLite models against TensorFlow Lite itself, as tests/oracle/tflite recorded it.

    run_e2e.py tflite [-v] [NAME...]

`npuc reference` of every recorded net and of the shared folder's models. Float results: 1e-5 of the
largest value, ten roundings of float32. Quantized results: one step of the result's own scale for
each operator; whole nets print how many results are equal, one step off, and more, since one step
inside of a net may become several at its end. The nets of STORED also run on X2_1204, whose stored
values must be TensorFlow Lite's own. The keyword net's accuracy on the 700 samples of
kws01, which is the dataset's own measure, must be within one sample of TensorFlow Lite's.
"""

import collections
import concurrent.futures
import functools
import json
import os

import numpy as np

import harness
import recorded_nets
import tflitemodel

RECORDED = os.path.join(harness.ROOT, "tests", "oracle", "tflite", "recorded")
FLOAT_TOLERANCE = 1e-5
# TensorFlow Lite's accuracy on the 700 of kws01, by tests/oracle/tflite/record.py's interpreter.
KEYWORDS_RIGHT = 628
WHOLE_NETS = ("net_",)
STORED = ("svdf_int8", "svdf_rank2_int8", "dilation_group_int8", "space_to_batch_int8",
          "batch_to_space_int8", "squared_difference_same_int8", "squared_difference_row_int8",
          "log_softmax_int8")


def reference(model, inputs, outputs, folder, cut=False):
    """npuc's answers by output name; inputs are real values. cut: the graph between these alone."""
    config = os.path.join(folder, "net.yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write("CORENAME: GRUS\nFRAMEWORK: TFLITE\nOUTPUT_FILE: net.h\n"
                f"MODEL_FILE: {os.path.abspath(model)}\n")
        if cut:
            f.write("INPUT_OPS:\n" + "".join(f"  {json.dumps(n)}: {list(a.shape)}\n"
                                             for n, a in inputs.items()))
            f.write(f"OUTPUT_OPS: {json.dumps(outputs)}\n")
    return harness.simulate(config, inputs, os.path.join(folder, "out"), outputs, "reference")


def real(array, quant):
    """Stored integers as the values that they stand for."""
    if not quant:
        return array.astype(np.float32)
    return ((array.astype(np.float64) - quant["zero_point"][0]) *
            np.float32(quant["scale"][0])).astype(np.float32)


def steps_off(got, want, quant):
    scale = np.float64(np.float32(quant["scale"][0]))
    stored = np.rint(got.astype(np.float64) / scale) + quant["zero_point"][0]
    return np.abs(stored - want)


def flat_items(array, shape):
    """[items, ...] as npuc takes it: items along the tensor's first dimension."""
    if not shape:
        return array
    return array.reshape([-1] + list(shape[1:]))


class Result:
    def __init__(self, name):
        self.name = name
        self.detail = ""
        self.failed = False
        self.steps = collections.Counter()  # quantized: how many results are so many steps off
        self.error = 0.0                    # float: largest error as a part of what is allowed


def compare(result, got, want, quant):
    got = got.reshape(want.shape)
    if quant:
        off = steps_off(got, want, quant).ravel()
        result.steps.update(off.astype(int).tolist())
        limit = None if result.name.startswith(WHOLE_NETS) else 1
        harness.check(limit is None or off.max(initial=0) <= limit,
                      f"off by {off.max(initial=0):.0f} steps at {int(off.argmax())}")
        return
    allowed = FLOAT_TOLERANCE * max(1.0, float(np.abs(want).max(initial=0)))
    result.error = max(result.error, float(np.abs(got - want).max(initial=0)) / allowed)
    harness.check(result.error <= 1, f"off by {result.error * allowed:.3g}, allowed {allowed:.3g}")


def compare_stored(facts, files, model, folder):
    """The integers that X2_1204 gives, which must be those recorded."""
    config = os.path.join(folder, "stored.yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write("CORENAME: X2_1204\nFRAMEWORK: TFLITE\nOUTPUT_FILE: stored.h\n"
                f"MODEL_FILE: {os.path.abspath(model)}\n")
    harness.npuc(config, "-o", folder)
    arguments = []
    for name, array in zip(facts["inputs"], recorded_nets.arrays(files, "input")):
        path = os.path.join(folder, f"{name}.npy")
        np.save(path, flat_items(array, facts["shapes"][name]))
        arguments += ["--input", f"{name}={path}"]
    out = os.path.join(folder, "stored")
    harness.npuc("run", os.path.join(folder, "stored.npuc"), *arguments, "--raw",
                 "--output-dir", out)
    for name, want in zip(facts["outputs"], recorded_nets.arrays(files, "output")):
        got = np.load(harness.output_file(out, name)).reshape(want.shape)
        harness.check(np.array_equal(got, want), f"{name}: X2_1204 stores other values")


def run_case(name, files):
    result = Result(name)
    try:
        facts = json.loads(files["case.json"])
        with harness.scratch() as folder:
            model = os.path.join(folder, "model.tflite")
            with open(model, "wb") as f:
                f.write(files["model.tflite"])
            inputs = {n: flat_items(real(a, facts["quant"][n]), facts["shapes"][n])
                      for n, a in zip(facts["inputs"], recorded_nets.arrays(files, "input"))}
            got = reference(model, inputs, facts["outputs"], folder)
            for output, want in zip(facts["outputs"], recorded_nets.arrays(files, "output")):
                compare(result, got[output], want, facts["quant"][output])
            if name in STORED:
                compare_stored(facts, files, model, folder)
    except (harness.Failure, OSError, KeyError, ValueError) as error:
        result.failed, result.detail = True, str(error)[-1500:]
    return result


def check_recorded(names, verbose):
    cases = {n: f for n, f in recorded_nets.read(os.path.join(RECORDED, "nets.tar.xz")).items()
             if not names or any(n.startswith(prefix) for prefix in names)}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda item: run_case(*item), sorted(cases.items())))
    steps = sum((r.steps for r in results), collections.Counter())
    for r in results:
        if r.failed or verbose or r.name.startswith(WHOLE_NETS):
            harness.figure(f"tflite {r.name}: {'FAILED ' if r.failed else ''}"
                           f"{dict(r.steps) or f'{r.error:.2f} of allowed'} {r.detail}")
    failed = sum(r.failed for r in results)
    harness.figure(f"tflite nets: {len(results) - failed} agree with TensorFlow Lite, {failed} do "
                   f"not; quantized results {steps[0]} equal, {steps[1]} one step off, "
                   f"{sum(n for k, n in steps.items() if k > 1)} more")
    return failed


@functools.lru_cache(maxsize=4)
def tensors_of(model):
    return tflitemodel.read(model)["subgraphs"][0]["tensors"]


def quant_of(model, name):
    """The scale and zero point of a tensor: npuc's own reading is not asked."""
    for tensor in tensors_of(model):
        if tensor.get("name") == name and "scale" in tensor.get("quantization", {}):
            q = tensor["quantization"]
            return {"scale": q["scale"], "zero_point": q.get("zero_point", [0])}
    return None


def compare_layers(facts, files, model, inputs):
    """Every layer alone, on what TensorFlow Lite gave the layer: (results equal, one step off,
    more). So one layer's steps do not add up with another's."""
    values = {n: real(a[:1], q).reshape(facts["shapes"][n])
              for n, (a, q) in inputs.items()}
    traced = recorded_nets.arrays(files, "output")[len(facts["outputs"]):]
    counts = [0, 0, 0]
    for (name, operands), want in zip(facts["layers"], traced):
        quant = quant_of(model, name)
        with harness.scratch() as folder:
            operands = {n: values[n] for n in operands}
            got = reference(model, operands, [name], folder, cut=True)[name]
        values[name] = real(want[0], quant)
        off = steps_off(got.reshape(want[0].shape), want[0], quant) if quant else np.zeros(1)
        for k, hit in enumerate((off == 0, off == 1, off > 1)):
            counts[k] += int(hit.sum())
    harness.figure(f"tflite {facts['model']}, {len(facts['layers'])} layers each on TensorFlow "
                   f"Lite's own operands: {counts[0]} equal, {counts[1]} one step off, "
                   f"{counts[2]} more")
    harness.check(counts[2] == 0, f"{counts[2]} results are more than one step off")


def check_published(verbose):
    failed = 0
    published = recorded_nets.read(os.path.join(RECORDED, "published.tar.xz"))
    for name, files in sorted(published.items()):
        facts = json.loads(files["case.json"])
        model = harness.shared("models", "tflite", facts["model"])
        quant = {n: quant_of(model, n) for n in facts["inputs"] + facts["outputs"]}
        result = Result("net_" + name)
        try:
            with harness.scratch() as folder:
                given = dict(zip(facts["inputs"], recorded_nets.arrays(files, "input")))
                inputs = {n: flat_items(real(a, quant[n]), facts["shapes"][n])
                          for n, a in given.items()}
                got = reference(model, inputs, facts["outputs"], folder)
                for output, want in zip(facts["outputs"], recorded_nets.arrays(files, "output")):
                    compare(result, got[output], want, quant[output])
            if facts["layers"]:
                compare_layers(facts, files, model,
                               {n: (a, quant[n]) for n, a in given.items()})
        except (harness.Failure, OSError, KeyError, ValueError) as error:
            result.detail = str(error)[-1500:]
            failed += 1
        measured = dict(result.steps) or f"{result.error:.2f} of allowed"
        harness.figure(f"tflite {facts['model']}: {measured}"
                       f"{' FAILED ' if result.detail else ''}{result.detail}")
    return failed


def keyword_accuracy():
    """Quantized keyword net over the 700 samples: right answers by npuc reference."""
    model = harness.shared("models", "tflite", "mlperf_tiny", "kws_ref_model_int8.tflite")
    samples = np.load(harness.shared("datasets", "kws01", "inputs_int8.npy"))
    labels = np.load(harness.shared("datasets", "kws01", "labels.npy"))
    quant = quant_of(model, "input_1")
    with harness.scratch() as folder:
        got = reference(model, {"input_1": real(samples, quant).reshape(-1, 49, 10, 1)},
                        ["Identity"], folder)["Identity"]
    right = int((got.reshape(len(labels), -1).argmax(1) == labels).sum())
    harness.figure(f"tflite kws01: {right} of {len(labels)} right, {right / len(labels):.2%}"
                   f", TensorFlow Lite {KEYWORDS_RIGHT}")
    harness.check(abs(right - KEYWORDS_RIGHT) <= 1, f"{right} right, not {KEYWORDS_RIGHT}")


def main(arguments):
    verbose = "-v" in arguments
    names = [a for a in arguments if a != "-v"]
    failed = check_recorded(names, verbose)
    if not names:
        failed += check_published(verbose)
        keyword_accuracy()
    harness.check(failed == 0, f"{failed} nets differ from TensorFlow Lite")
