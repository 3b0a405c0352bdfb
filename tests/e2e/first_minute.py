"""The first minute with a model: `npuc inspect`, `npuc init`, and what npuc says where a model, an
id or a word stands in the wrong place.

    first_minute [NAME...]

On nets that the suite makes or that tests/oracle recorded, one of each format; then on every model
of the shared folder, as far as it is there: what inspect says of a core is what a compile of init's
config says.
"""

import concurrent.futures
import json
import os
import re
import tarfile

import numpy as np

import graphdef
import harness
import onnxmodel

ORACLE = os.path.join(harness.ROOT, "tests", "oracle")
FORMATS = {".pb": "TF", ".onnx": "ONNX", ".tflite": "TFLITE", ".pt": "PT", ".ptl": "PT",
           ".jit": "PT"}


def recorded(archive, member, path):
    with tarfile.open(os.path.join(ORACLE, *archive)) as tar:
        data = tar.extractfile(member).read()
    with open(path, "wb") as f:
        f.write(data)
    return path


def dense_graph(path):
    """A dense layer and a softmax; the input's shape is not stated, an ArgMax ends it."""
    rng = np.random.default_rng(1)
    g = graphdef.Graph()
    g.node("Placeholder", "x", [], {"dtype": graphdef.DType(np.float32)})
    g.variable("w", rng.standard_normal((20, 8)).astype(np.float32))
    f32 = {"T": graphdef.DType(np.float32)}
    g.node("MatMul", "dense", ["x", "w/read"], f32)
    g.node("Softmax", "probabilities", ["dense"], f32)
    g.const("axis", np.array(1, np.int32))
    g.node("ArgMax", "class", ["probabilities", "axis"], f32)
    with open(path, "wb") as f:
        f.write(g.serialize())
    return path


def conv_onnx(path, dims):
    rng = np.random.default_rng(2)
    with open(path, "wb") as f:
        f.write(onnxmodel.model(
            [onnxmodel.node("Conv", ["x", "w"], ["c"]), onnxmodel.node("Relu", ["c"], ["y"])],
            [("x", dims)], [("y", ["", 4, "", ""])],
            {"w": rng.standard_normal((4, 2, 3, 3)).astype(np.float32)}))
    return path


def inspect(model, *arguments):
    return json.loads(harness.npuc("inspect", model, "--json", *arguments).stdout)


def verdicts(report):
    return {v["family"]: v["verdict"] for v in report["verdicts"]}


def init(model, config, *arguments):
    """What init says, and the config that it wrote."""
    result = harness.npuc("init", model, "-o", config, "--force", "--json", *arguments,
                          expect=None)
    return json.loads(result.stdout)


def compiles(config, folder):
    result = harness.npuc(config, "-o", os.path.join(folder, "out"), expect=None)
    return result.returncode == 0, result


def check_tensorflow(folder):
    model = dense_graph(os.path.join(folder, "model_without_suffix"))
    report = inspect(model)
    harness.check(report["framework"] == "TF", report)
    harness.check([(p["key"], p["type"], p["shape"]) for p in report["inputs"]] ==
                  [("x", "float32", [1, 20])], f"the weight tells the shape: {report['inputs']}")
    harness.check([(p["key"], p["shape"]) for p in report["outputs"]] ==
                  [("probabilities", [1, 8])], report["outputs"])
    harness.check(report["weights"] == 161 and report["macs"] == 160, report)
    harness.check(report["operators"] == {"ArgMax": 1, "Identity": 1, "MatMul": 1, "Softmax": 1},
                  report["operators"])
    harness.check(verdicts(report) == {"GRUS": "compiles", "LEO": "compiles",
                                       "APUS": "needs calibration data",
                                       "integer cores": "needs calibration data"}, report)
    config = os.path.join(folder, "dense.yaml")
    harness.check(init(model, config)["core"] == "GRUS", "GRUS comes first where it compiles")
    ok, result = compiles(config, folder)
    harness.check(ok, result.stderr)
    # The message about an input that INPUT_OPS leaves out proposes the same shape.
    with open(config, encoding="utf-8") as f:
        text = f.read()
    with open(config, "w", encoding="utf-8") as f:
        f.write(text.replace("  x: [1, 20]", "  dense: [1, 8]"))
    harness.npuc(config, "-o", os.path.join(folder, "cut"))
    with open(config, "w", encoding="utf-8") as f:
        f.write(text.replace("  x: [1, 20]", "  w: [20, 8]"))
    harness.check("add 'x: [1, 20]' to INPUT_OPS" in compiles(config, folder)[1].stderr, "shape")
    return model


def with_quant(config, text):
    """Writes init's config with its template of QUANT made true."""
    with open(config, "w", encoding="utf-8") as f:
        f.write(re.sub(r"# QUANT:\n(?:#   .*\n)+",
                       lambda m: re.sub(r"^# ", "", m.group(0), flags=re.M), text))


def check_quantized_in_part(folder):
    """A model that quantizes its input alone: init's template turns all of it back into floats, and
    quantizes them; the core's answers are near onnxruntime's formulas for the float model."""
    rng = np.random.default_rng(5)
    weights = {"w": rng.standard_normal((4, 2, 1, 1)).astype(np.float32),
               "s": np.array(0.05, np.float32), "z": np.array(0, np.int8)}
    model, config = os.path.join(folder, "part.onnx"), os.path.join(folder, "part.yaml")
    nodes = [onnxmodel.node("QuantizeLinear", ["x", "s", "z"], ["q"]),
             onnxmodel.node("DequantizeLinear", ["q", "s", "z"], ["d"]),
             onnxmodel.node("Conv", ["d", "w"], ["y"])]
    with open(model, "wb") as f:
        f.write(onnxmodel.model(nodes, [("x", [1, 2, 6, 6])], [("y", [1, 4, 6, 6])], weights))
    said = init(model, config, "-c", "X2_1204")
    harness.check(said["verdict"] == "needs calibration data", said)
    harness.check("force_float_ir: true" in said["text"], said)
    samples = rng.uniform(-3, 3, (16, 2, 6, 6)).astype(np.float32)
    np.save(os.path.join(folder, "samples.npy"), samples)
    with_quant(config, said["text"])
    ok, result = compiles(config, folder)
    harness.check(ok, result.stderr)
    got = harness.simulate(os.path.join(folder, "out", "part.npuc"), {"x": samples},
                           os.path.join(folder, "part"), ["y"])["y"]
    want = np.einsum("nchw,kc->nkhw", samples, weights["w"][:, :, 0, 0])
    off = np.abs(got.reshape(want.shape) - want).max() / np.abs(want).max()
    harness.check(off < 0.03, f"the net quantized anew is off by {off:.3f} of its largest value")


def check_texts(folder):
    """A classifier whose labels are texts: init leaves them out, and its config compiles."""
    domain = "ai.onnx.ml"
    tree = {"nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [1, 0, 0],
            "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0],
            "nodes_values": [0.5, 0.0, 0.0], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
            "class_treeids": [0, 0, 0], "class_nodeids": [1, 1, 2], "class_ids": [0, 1, 2],
            "class_weights": [0.25, 0.75, 1.0], "classlabels_strings": ["a", "b", "c"]}
    model, config = os.path.join(folder, "texts.onnx"), os.path.join(folder, "texts.yaml")
    nodes = [onnxmodel.node("TreeEnsembleClassifier", ["x"], ["label", "scores"], domain, **tree),
             onnxmodel.node("ZipMap", ["scores"], ["shares"], domain,
                            classlabels_strings=["a", "b", "c"])]
    with open(model, "wb") as f:
        f.write(onnxmodel.model(nodes, [("x", [2, 2])], [("label", [2], 8), ("shares", [2, 3])],
                                domains={domain: 3}))
    said = init(model, config)
    harness.check(said["verdict"] == "compiles" and "OUTPUT_OPS: [shares]" in said["text"] and
                  "'label' gives texts" in said["text"], said)
    ok, result = compiles(config, folder)
    harness.check(ok, result.stderr)
    inputs = {"x": np.array([[9, 0.5], [0, 0.625]], np.float32)}
    got = harness.simulate(os.path.join(folder, "out", "texts.h"), inputs,
                           os.path.join(folder, "texts"), ["shares"])["shares"]
    harness.check(np.array_equal(got.reshape(2, 3), [[0.25, 0.75, 0], [0, 0, 1]]), got)


def check_calibration(model, folder):
    """A float model on an integer core: the template, completed, compiles."""
    config = os.path.join(folder, "integer.yaml")
    said = init(model, config, "-c", "X2_1204")
    harness.check(said["verdict"] == "needs calibration data" and "# QUANT:" in said["text"], said)
    ok, result = compiles(config, folder)
    harness.check(not ok and "NPUC1610" in result.stderr, result.stderr)
    np.save(os.path.join(folder, "samples.npy"),
            np.random.default_rng(3).standard_normal((16, 20)).astype(np.float32))
    with_quant(config, said["text"])
    ok, result = compiles(config, folder)
    harness.check(ok, result.stderr)
    harness.check(re.search(r"^RAM [\d,]+ of [\d,]+ bytes \(\d+%\), flash [\d,]+ bytes, about "
                            r"[\d,]+ cycles a frame.*probabilities [\d.]+ dB.*\nnext: ",
                            result.stdout, re.M), result.stdout)


def check_refused(folder):
    """A model that a core refuses: the reasons in both forms, and no command that must fail."""
    model = os.path.join(folder, "turned.onnx")
    with open(model, "wb") as f:  # a command moves data along six dimensions
        f.write(onnxmodel.model([onnxmodel.node("Transpose", ["x"], ["y"])], [("x", [2] * 7)],
                                [("y", [2] * 7)], {}))
    config = os.path.join(folder, "turned.yaml")
    said = init(model, config, "-c", "X2_1204")
    harness.check(said["verdict"] == "refused" and said["reasons"][0]["op"] == "Transpose" and
                  said["reasons"][0]["fix"] and "# QUANT:" in said["text"], said)
    text = harness.npuc("init", model, "-o", config, "--force", "-c", "X2_1204", expect=1).stdout
    harness.check(said["reasons"][0]["message"] in text and "next: npuc" not in text, text)
    # The power of a negative number is none: random samples have some, those of a user perhaps not.
    with open(model, "wb") as f:
        f.write(onnxmodel.model([onnxmodel.node("Pow", ["x", "z"], ["y"])],
                                [("x", [1, 4]), ("z", [1, 4])], [("y", [1, 4])], {}))
    said = init(model, config, "-c", "X2_1204")
    harness.check(said["verdict"] == "needs calibration data", said)


def check_onnx(folder):
    """An open number of items is one; other open dimensions are the user's to say."""
    report = inspect(conv_onnx(os.path.join(folder, "one.onnx"), ["N", 2, 8, 8]))
    harness.check(report["inputs"][0]["shape"] == [1, 2, 8, 8] and report["notes"], report)
    harness.check(report["macs"] == 4 * 6 * 6 * 2 * 9, report["macs"])
    model = conv_onnx(os.path.join(folder, "open.onnx"), ["N", 2, "H", 8])
    report = inspect(model)
    harness.check(set(verdicts(report).values()) == {"needs shapes"}, report)
    config = os.path.join(folder, "open.yaml")
    said = init(model, config)
    harness.check(len(said["open"]) == 1 and "FILL_IN, 2, FILL_IN, 8" in said["text"], said)
    ok, result = compiles(config, folder)
    harness.check(not ok and "FILL_IN" in result.stderr, result.stderr)
    for shape in ("1,2,8,8", "x=1,2,8,8"):
        harness.check(verdicts(inspect(model, "--input-shape", shape))["GRUS"] == "compiles", shape)
        harness.check(not init(model, config, "--input-shape", shape)["open"], shape)
        harness.check(compiles(config, folder)[0], shape)
    result = harness.npuc("inspect", model, "--input-shape", "y=1", expect=1)
    harness.check("no input of the model" in result.stderr, result.stderr)


def check_torch(folder):
    model = recorded(("recorded", "net_separable_1d.tar.xz"), "net_separable_1d/scripted.pt",
                     os.path.join(folder, "net.bin"))
    report = inspect(model)
    harness.check(report["framework"] == "PT" and report["inputs"][0]["shape"] is None and
                  set(verdicts(report).values()) == {"needs shapes"}, report)
    with tarfile.open(os.path.join(ORACLE, "recorded", "net_separable_1d.tar.xz")) as tar:
        text = tar.extractfile("net_separable_1d/scripted.yaml").read().decode()
    shape = re.search(r"INPUT_OPS:\s+0: \[([\d, ]+)\]", text).group(1).replace(" ", "")
    config = os.path.join(folder, "net.yaml")
    said = init(model, config, "--input-shape", shape)
    harness.check(said["ok"] and not said["open"], said)
    harness.check(compiles(config, folder)[0], said["text"])


def check_tflite(folder):
    model = recorded(("tflite", "recorded", "nets.tar.xz"), "conv_valid_int8/model.tflite",
                     os.path.join(folder, "int8"))
    report = inspect(model)
    harness.check(report["framework"] == "TFLITE" and report["inputs"][0]["type"] == "int8" and
                  verdicts(report)["integer cores"] == "compiles", report)
    config = os.path.join(folder, "int8.yaml")
    said = init(model, config, "-c", "X2_1204")
    harness.check(said["verdict"] == "compiles" and compiles(config, folder)[0], said)


def check_words(folder):
    """What stands in the wrong place is named, with the command that is right."""
    model = conv_onnx(os.path.join(folder, "words.onnx"), [1, 2, 8, 8])
    result = harness.npuc(model, expect=1)
    for part in ("is a model (ONNX)", "npuc inspect", "npuc init"):
        harness.check(part in result.stderr, result.stderr)
    config = os.path.join(folder, "words.yaml")
    harness.npuc("init", model, "-o", config)
    result = harness.npuc("init", model, "-o", config, expect=1)
    harness.check("--force" in result.stderr, result.stderr)
    harness.check(f"npuc {config} -o out" in harness.npuc("init", model, "-o", config,
                                                          "--force").stdout, "the next command")
    result = harness.npuc("init", model, "-o", "-", "-c", "GX8002")
    harness.check("CORENAME: GRUS" in result.stdout, result.stdout)
    harness.check("Usage: npuc run " in harness.npuc("help", "run").stdout, "npuc help run")
    harness.check("no command" in harness.npuc("help", "nothing", expect=2).stderr, "npuc help")
    harness.check("NotFp16Data" in harness.npuc("explain", "NPUC1404").stdout, "npuc explain")
    harness.npuc("explain", "NPUC0", expect=2)
    with open(os.path.join(folder, "noise"), "wb") as f:
        f.write(np.random.default_rng(5).bytes(2000))
    harness.check("of no format" in harness.npuc("inspect", f.name, expect=1).stderr, "noise")
    return config


def check_run(config, folder):
    """--input without a name, and random ones: seeded, so that run and reference take the same."""
    out = os.path.join(folder, "run")
    result = harness.npuc(config, "-o", out)
    harness.check(re.search(r"^RAM [\d,]+ of [\d,]+ bytes .*\nnext: ", result.stdout, re.M),
                  result.stdout)
    header = os.path.join(out, "words.h")
    x = np.random.default_rng(4).standard_normal((1, 2, 8, 8)).astype(np.float32)
    np.save(os.path.join(folder, "in.npy"), x)
    answers = []
    for given in (os.path.join(folder, "in.npy"), "x=" + os.path.join(folder, "in.npy"),
                  "random", "random:1", "random:2"):
        pair = []
        for verb, what in (("run", header), ("reference", config)):
            y = os.path.join(folder, "y")
            result = harness.npuc(verb, what, "--input", given, "--output-dir", y)
            harness.check(("seed" in result.stderr) == given.startswith("random"), result.stderr)
            harness.check("note:" not in result.stderr, f"notes are the compile's: {result.stderr}")
            pair.append(np.load(os.path.join(y, "y.npy")).astype(np.float64))
        harness.check(np.abs(pair[0] - pair[1]).max() < 0.05, f"{given}: run is not reference")
        answers.append(pair[0])
    harness.check(np.array_equal(answers[0], answers[1]), "NAME= changes nothing")
    harness.check(np.array_equal(answers[2], answers[3]), "random has seed 1")
    harness.check(not np.array_equal(answers[3], answers[4]), "another seed, other values")


def published(names):
    """Models of the shared folder; none where it is missing."""
    found = []
    for folder, _, files in sorted(os.walk(os.path.join(harness.SHARED, "models"))):
        found += [os.path.join(folder, f) for f in sorted(files)
                  if os.path.splitext(f)[1] in FORMATS]
    return [m for m in found if not names or os.path.basename(m) in names]


def check_published(model):
    """(model, verdict on the core that init chose) where both commands agree."""
    with harness.scratch() as folder:
        config = os.path.join(folder, "c.yaml")
        result = harness.npuc("init", model, "-o", config, "--json", expect=None)
        said = json.loads(result.stdout)
        if not os.path.exists(config):
            harness.check(said["diagnostics"] and said["diagnostics"][0]["fix"],
                          f"{model}: neither a config nor advice: {result.stdout[:500]}")
            return model, "unreadable"
        ok, compiled = compiles(config, folder)
        verdict = said["verdict"]
        harness.check(ok == (verdict == "compiles"),
                      f"{model}: init says '{verdict}', the compile of its config "
                      f"{'succeeds' if ok else 'fails'}\n{compiled.stderr[-1000:]}")
        if verdict == "needs shapes":
            harness.check("FILL_IN" in compiled.stderr and said["open"], f"{model}: {said}")
        if verdict == "needs calibration data":
            harness.check("NPUC1610" in compiled.stderr, f"{model}: {compiled.stderr}")
        return model, verdict


def main(names):
    if not names:
        with harness.scratch() as folder:
            check_calibration(check_tensorflow(folder), folder)
            check_refused(folder)
            check_onnx(folder)
            check_quantized_in_part(folder)
            check_texts(folder)
            check_torch(folder)
            check_tflite(folder)
            check_run(check_words(folder), folder)
    counts = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for model, verdict in pool.map(check_published, published(names)):
            counts[verdict] = counts.get(verdict, 0) + 1
            if names:
                print(f"{model}: {verdict}")
    if counts:
        harness.figure("first_minute: init's configs of the shared models: " +
                       ", ".join(f"{n} {v}" for v, n in sorted(counts.items())))
