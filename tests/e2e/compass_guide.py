"""The examples of Compass's guide, taken from shared/guides/compass-guide.txt as they stand there,
with real models in place of its own: lines are edited where they name a path, a model, its tensors
and their shapes, and in no other way. The commands run in the guide's order by the guide's names.

    compass_guide [--update]    --update writes client/COMPASS_TRANSCRIPT.md anew

1. aipubuild of the four-section example, mode=run: resnet8 of MLPerf Tiny with images of twice its
   size, RESIZE and RGB2BGR on the NPU. `npuc reference` of the config agrees with NumPy's resizing
   before the plain model; the simulator's output.bin holds the integers whose values are near it;
   TopKMetric is the share of labels that NumPy counts.
2. aipuparse, aipuopt, aipugb, aipurun of the vendor's published MNIST graph: its six digits. The
   built aipu.bin gives the bytes that aipurun gives; --dump_all_tensors has them too.
3. QUANT's dump of three nets: every line of layers.csv is true of its files, the last float tensor
   is `npuc reference`'s, the last integers are those of `npuc run`.
"""

import csv
import json
import os
import re
import subprocess

import numpy as np

import harness

GUIDE = ("guides", "compass-guide.txt")
PAGE = os.path.join(harness.ROOT, "client", "COMPASS_TRANSCRIPT.md")
SEED = 5
# The largest error of a probability: float32 sums in another order.
RESIZE_TOLERANCE = 1e-5
LEAST_SIMILARITY = 0.99


def example(begin, end):
    """The guide's lines from `begin` to `end`; the guide breaks code at pages by fences."""
    with open(harness.shared(*GUIDE), encoding="utf-8") as f:
        text = f.read()
    start = text.index(begin)
    lines = text[start:text.index(end, start) + len(end)].split("\n")
    return [line for line in lines if not line.startswith("```")]


def edited(lines, values, more=()):
    """The lines with other values of some keys; `more` goes behind the line of model_name."""
    known = {line.split("=", 1)[0] for line in lines if "=" in line}
    harness.check(set(values) <= known, f"the guide has no {sorted(set(values) - known)}")
    out = []
    for line in lines:
        key = line.split("=", 1)[0]
        out.append(f"{key}={values[key]}" if key in values and "=" in line else line)
        if key == "model_name":
            out += more
            more = ()
    return "\n".join(out) + "\n"


class Session:
    """Runs the tools in a folder and keeps what they printed."""

    def __init__(self, folder):
        self.folder = folder
        self.page = []

    def note(self, text):
        self.page.append(text + "\n")

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def config(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)
        self.page.append(f"`{name}`:\n\n```ini\n{text.rstrip()}\n```\n")

    def run(self, *command, expect=0):
        result = subprocess.run([harness.program(command[0]), *command[1:]], cwd=self.folder,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                                universal_newlines=True, timeout=harness.TIMEOUT_SECONDS,
                                env={**os.environ, "SOURCE_DATE_EPOCH": harness.EPOCH})
        harness.check(result.returncode == expect, f"{command}: exit {result.returncode}\n"
                      f"{result.stdout}")
        text = result.stdout.replace(self.folder, ".").rstrip()
        # The sizes of reports change with every word of theirs.
        text = re.sub(r"((?:report\.(?:json|html)|compile\.log)) \d+ bytes", r"\1", text)
        self.page.append(f"```\n$ {' '.join(command)}\n{text}\n```\n")
        return result.stdout


def half_pixel_rows(source, target):
    """The matrix of ONNX's linear resizing, half_pixel."""
    rows = np.zeros((target, source))
    for i in range(target):
        x = (i + 0.5) * source / target - 0.5
        low = int(np.floor(x))
        for at, weight in ((low, low + 1 - x), (low + 1, x - low)):
            rows[i, min(max(at, 0), source - 1)] += weight
    return rows


def cosine(a, b):
    a, b = (np.asarray(v, np.float64).ravel() for v in (a, b))
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def smooth_images(count, size):
    """Pictures of few waves: neighbours are alike, as in photographs."""
    random = np.random.default_rng(SEED)
    y, x = np.mgrid[0:size, 0:size] / size
    images = np.zeros((count, size, size, 3))
    for image in images:
        for channel in range(3):
            for _ in range(4):
                fx, fy, phase = random.uniform(-3, 3, 3)
                image[..., channel] += np.sin(2 * np.pi * (fx * x + fy * y) + phase)
    images -= images.min(axis=(1, 2, 3), keepdims=True)
    images *= 255 / images.max(axis=(1, 2, 3), keepdims=True)
    return images.astype(np.float32)


def stored_type(port):
    """What report.json's "u8[1,10]" says of the stored integers."""
    name = port["type"].split("[")[0]
    return np.dtype({"i": "int", "u": "uint"}[name[0]] + name[1:])


def aipubuild(session):
    """Section 4.2's example of aipubuild."""
    model = harness.shared("models", "tflite", "mlperf_tiny", "resnet8_float.tflite")
    images = smooth_images(12, 64)
    np.save(session.path("images.npy"), images)
    np.save(session.path("one.npy"), images[:1])
    half = half_pixel_rows(64, 32)
    small = np.einsum("yi,xj,nijc->nyxc", half, half, images.astype(np.float64))
    small = small[..., ::-1].astype(np.float32)
    plain = session.path("plain.yaml")
    with open(plain, "w", encoding="utf-8") as f:
        f.write(f"CORENAME: X2_1204\nFRAMEWORK: TFLITE\nMODEL_FILE: {model}\nOUTPUT_FILE: p.h\n")
    inspected = json.loads(harness.npuc("inspect", model, "--json").stdout)
    name_in, name_out = inspected["inputs"][0]["name"], inspected["outputs"][0]["name"]
    wanted = harness.simulate(plain, {name_in: small}, session.path("plain"), [name_out],
                              "reference")[name_out]
    labels = wanted.argmax(axis=-1)
    labels[0] = (labels[0] + 1) % wanted.shape[-1]  # one wrong label, so that top-1 is not 1
    np.save(session.path("labels.npy"), labels.astype(np.int64))
    os.symlink(model, session.path("resnet8_float.tflite"))

    config = edited(example("[Common]\nmode=run", "tiling=fps"), {
        "model_name": "resnet8", "output": name_out, "input_model": "./resnet8_float.tflite",
        "input": name_in, "input_shape": "[1,32,32,3]",
        "preprocess_params": "{bilinear,[1,64,64,3]}, {}", "calibration_data": "./images.npy",
        "data": "./images.npy", "label": "./labels.npy", "inputs": "./input.bin",
        "outputs": "./output_resnet8.bin", "calibration_batch_size": "4"},
        more=["model_type=TFLite"])
    session.note("## aipubuild\n\nThe guide's example of section 4.2, edited in paths, names and "
                 "shapes; `model_type` is there because the model is TFLite's.")
    session.config("test.cfg", config)
    # The input as the simulator reads it: the integers that the input stores. A first build says
    # their scale.
    write_build(session, config)
    harness.npuc(session.path("build.cfg"), "-o", session.path("first"))
    with open(session.path("first", "report.json"), encoding="utf-8") as f:
        port = json.load(f)["inputs"][0]
    kind = stored_type(port)
    limits = np.iinfo(kind)
    stored = np.clip(np.rint(images[:1] / port["scale"]) + port["zero_point"], limits.min,
                     limits.max).astype(kind)
    stored.tofile(session.path("input.bin"))
    session.run("aipubuild", "test.cfg")

    reference = harness.simulate(session.path("build.cfg"), {name_in: images},
                                 session.path("float"), [name_out], "reference")[name_out]
    error = np.abs(reference - wanted).max()
    harness.check(error <= RESIZE_TOLERANCE, f"preprocessing in float is {error:g} from NumPy's")
    with open(session.path("report.json"), encoding="utf-8") as f:
        report = json.load(f)
    out = report["outputs"][0]
    got = (np.fromfile(session.path("output_resnet8.bin"), stored_type(out)).astype(np.float64) -
           out["zero_point"]) * out["scale"]
    likeness = cosine(got, wanted[0])
    harness.check(likeness >= LEAST_SIMILARITY, f"output_resnet8.bin: cosine {likeness:.4f}")
    figures = {f["metric"]: f for f in report["metrics"]["figures"]}
    top1 = figures["topk:1"]["float"]
    harness.check(abs(top1 - 11 / 12) < 1e-9, f"TopKMetric in float is {top1}, not 11/12")
    return error, likeness


def write_build(session, config):
    """The same config with mode=build, which npuc takes, too."""
    lines = [line for line in config.replace("mode=run", "mode=build").split("\n")
             if not re.match(r"inputs=|outputs=", line)]
    with open(session.path("build.cfg"), "w", encoding="utf-8") as f:
        f.write("\n".join(lines))


def stages(session):
    """aipuparse, aipuopt, aipugb and aipurun, one after the other."""
    fixture = harness.shared("fixtures", "gxdnn-mnist")
    digits = np.load(os.path.join(fixture, "digits.npy"))
    images = np.load(os.path.join(fixture, "images.npy"))
    os.symlink(os.path.join(fixture, "mnist_with_ckpt.pb"), session.path("mnist.pb"))
    np.save(session.path("dataset_6.npy"), images)
    np.save(session.path("label_6.npy"), digits.astype(np.int64))
    session.note("## aipuparse, aipuopt, aipugb, aipurun\n\nThe guide's examples of these tools on "
                 "the chip vendor's published MNIST graph.")
    session.config("parse.cfg", edited(
        example("[Common]\nmodel_type=tensorflow", "output_dir=./IR_float"),
        {"model_name": "mnist", "input_model": "mnist.pb", "input": "input_x",
         "input_shape": "[1, 784]", "output": "result"}))
    session.run("aipuparse", "-c", "parse.cfg")
    session.config("opt.cfg", edited(
        example("[Common]\ngraph=", "data_loader_workers=4"),
        {"graph": "./IR_float/mnist.txt", "bin": "./IR_float/mnist.bin", "model_name": "mnist",
         "calibration_data": "./dataset_6.npy", "data": "./dataset_6.npy",
         "label": "./label_6.npy", "calibration_batch_size": "2"}))
    session.run("aipuopt", "-c", "opt.cfg")
    session.run("aipugb", "IR_int/mnist.txt", "-w", "IR_int/mnist.bin", "-o", "aipu.bin",
                "--target", "X2_1204", "--tiling", "fps")
    dis = json.loads(harness.npuc("run", session.path("aipu.bin"), "--input", "random", "--json",
                                  "--raw").stdout)
    harness.check(dis["ok"] and len(dis["outputs"]) == 1, f"npuc run of aipu.bin: {dis}")
    answers = []
    for i, image in enumerate(images):
        name = f"digit_{i}.npy"
        np.save(session.path(name), image[None])
        command = ["aipurun", "IR_int/mnist.txt", "-w", "IR_int/mnist.bin", "-i", name, "-o",
                   f"digit_{i}.bin"]
        if i == 0:
            session.run(*command, "--dump_all_tensors")
        else:
            harness.run(harness.program("aipurun"), *[session.path(w) if os.path.exists(
                session.path(w)) or w.endswith(".bin") else w for w in command[1:]])
        out = np.fromfile(session.path(f"digit_{i}.bin"), np.int8)
        answers.append(int(out.argmax()))
    harness.check(answers == [int(d) for d in digits], f"{answers}, not {list(digits)}")
    rows = check_dump(session.path("dump"))
    last = np.load(session.path("dump", rows[-1]["quantized_file"]))
    harness.check(np.array_equal(last.ravel(), np.fromfile(session.path("digit_0.bin"), np.int8)),
                  "the dump's last layer is not the output")
    session.run("aipurun", "IR_int/mnist.txt", "-i", "digit_0.bin", "-o", "x.bin", expect=1)
    session.run("aipuparse", "-c", "opt.cfg", expect=2)
    return answers


def check_dump(folder):
    """The lines of a dump's table, which are true of its files; each layer is near float."""
    with open(os.path.join(folder, "layers.csv"), encoding="utf-8", newline="") as f:
        rows = list(csv.DictReader(f))
    harness.check(len(rows) >= 1, "layers.csv is empty")
    for row in rows:
        stored = np.load(os.path.join(folder, row["quantized_file"]))
        real = np.load(os.path.join(folder, row["float_file"]))
        values = (stored.astype(np.float64) - int(row["zero_point"])) * float(row["scale"])
        harness.check(abs(cosine(values, real) - float(row["cosine"])) < 1e-6, f"cosine of {row}")
        harness.check(float(row["cosine"]) > 0.95, f"layer {row['layer']}: {row['cosine']}")
        worst = np.abs(values - real).max()
        harness.check(abs(worst - float(row["max_abs_error"])) <= 1e-5 * max(1, worst), f"{row}")
    return rows


def dumps(folder):
    """QUANT's dump of three nets: the float tensors are `npuc reference`'s, the last one at least,
    and each layer's integers are near them."""
    random = np.random.default_rng(SEED)
    for net, shape in (("kws_ref_model_float32", (1, 49, 10, 1)), ("resnet8_float", (1, 32, 32, 3)),
                       ("ad01_fp32", (1, 640))):
        place = os.path.join(folder, net)
        os.makedirs(place)
        samples = random.normal(size=(4, *shape[1:])).astype(np.float32)
        np.save(os.path.join(place, "x.npy"), samples)
        model = harness.shared("models", "tflite", "mlperf_tiny", net + ".tflite")
        config = os.path.join(place, "c.yaml")
        with open(config, "w", encoding="utf-8") as f:
            f.write(f"CORENAME: X2_1204\nFRAMEWORK: TFLITE\nMODEL_FILE: {model}\n"
                    "OUTPUT_FILE: m.h\nQUANT: {calibration_data: x.npy, preset: best, dump: true, "
                    "dump_dir: tensors}\n")
        harness.npuc(config, "-o", os.path.join(place, "out"))
        inspected = json.loads(harness.npuc("inspect", model, "--json").stdout)
        name_in, name_out = inspected["inputs"][0]["name"], inspected["outputs"][0]["name"]
        wanted = harness.simulate(config, {name_in: samples[:1]}, os.path.join(place, "float"),
                                  [name_out], "reference")[name_out]
        rows = check_dump(os.path.join(place, "tensors"))
        real = np.load(os.path.join(place, "tensors", rows[-1]["float_file"]))
        harness.check(np.array_equal(real, wanted), f"{net}: the last tensor is not the reference")
        harness.npuc("run", os.path.join(place, "out", "m.npuc"), "--raw", "--input",
                     f"{name_in}={save_stored(place, samples[:1])}", "--output-dir", place)
        got = np.load(harness.output_file(place, name_out))
        last = np.load(os.path.join(place, "tensors", rows[-1]["quantized_file"]))
        harness.check(np.array_equal(got, last), f"{net}: the dump's integers are not the core's")


def save_stored(place, values):
    """The integers that the compiled net's input stores for `values`, as a file."""
    with open(os.path.join(place, "out", "report.json"), encoding="utf-8") as f:
        port = json.load(f)["inputs"][0]
    limits = np.iinfo(stored_type(port))
    stored = np.clip(np.rint(values / port["scale"]) + port["zero_point"], limits.min, limits.max)
    path = os.path.join(place, "stored.npy")
    np.save(path, stored.astype(stored_type(port)))
    return path


def main(arguments):
    harness.check(arguments in ([], ["--update"]), "compass_guide takes --update alone")
    with harness.scratch() as folder:
        session = Session(folder)
        error, likeness = aipubuild(session)
        answers = stages(session)
        dumps(folder)
        page = ("# The Compass guide's examples, run\n\nWritten by `tests/e2e/run_e2e.py "
                "compass_guide --update`; the suite fails where it is not what the tools say now. "
                "`client/COMPASS.md` says what each option does here.\n\n" +
                "\n".join(session.page))
    if arguments:
        with open(PAGE, "w", encoding="utf-8") as f:
            f.write(page)
    with open(PAGE, encoding="utf-8") as f:
        harness.check(f.read() == page, f"{PAGE} is not what the tools say: --update")
    harness.figure(f"compass_guide: preprocessing within {error:.2g} of NumPy, the simulator's "
                   f"output {likeness:.4f} like float, digits {answers}")
