#!/usr/bin/python3
"""Records what TensorFlow Lite answers for the nets of nets.py, float and quantized.

    record.py --package DIR [NAME...]           writes recorded/nets.tar.xz (all nets only)
    record.py --package DIR --published SHARED  writes recorded/published.tar.xz: what the models of
                                                the shared folder answer to seeded inputs
    record.py --package DIR --check [--published SHARED]    runs what is recorded again, live

DIR: node_modules/@tensorflow/tfjs-tflite after `npm install --ignore-scripts
@tensorflow/tfjs-tflite@0.0.1-alpha.10`; node runs it. See README.md.
"""

import argparse
import glob
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "models"))
sys.path.insert(0, HERE)
import nets  # noqa: E402
import recorded_nets  # noqa: E402
import tflitemodel  # noqa: E402

RECORDED = os.path.join(HERE, "recorded", "nets.tar.xz")
PUBLISHED = os.path.join(HERE, "recorded", "published.tar.xz")
PUBLISHED_ITEMS = 8
ITEMS = 4


class Refused(Exception):
    """The interpreter cannot run the model."""


class Interpreter:
    """TensorFlow Lite in a node process; a new one after a model that aborts it."""

    def __init__(self, package):
        self.package = package
        self.process = None

    def run(self, model, inputs):
        """(stated inputs and outputs, output arrays [items, ...]) of raw arrays [items, ...]."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.tflite")
            with open(path, "wb") as f:
                f.write(model)
            files = [os.path.join(folder, f"input_{k}.bin") for k in range(len(inputs))]
            for file, array in zip(files, inputs):
                np.ascontiguousarray(array).tofile(file)
            stated = self._ask({"model": path, "inputs": files, "folder": folder})
            outputs = []
            for k, port in enumerate(stated["outputs"]):
                if port["type"] == "unknown":
                    raise Refused(f"output {k} has a type that the interpreter does not hand out")
                raw = np.fromfile(os.path.join(folder, f"output_{k}.bin"), port["type"])
                shape = [int(n) for n in port["shape"].split(",") if n]
                outputs.append(raw.reshape([-1] + shape))
            return stated, outputs

    def stated(self, model):
        """Inputs and outputs alone: a run without data stops before it infers."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.tflite")
            with open(path, "wb") as f:
                f.write(model)
            return self._ask({"model": path, "inputs": None, "folder": folder})

    def _ask(self, job):
        if self.process is None:
            self.process = subprocess.Popen(
                ["node", os.path.join(HERE, "run_tflite.js"), self.package], text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            self.process = None
            raise Refused("it aborted")
        answer = json.loads(line)
        if "error" in answer:
            self.process.kill()  # its heap is not to be trusted
            self.process = None
            raise Refused(answer["error"])
        return answer


def float_inputs(maker):
    low, high = getattr(maker, "low", -2.0), getattr(maker, "high", 2.0)
    rng = np.random.default_rng(nets.hash_name(maker.net.name) + 1)
    items = getattr(maker, "items", ITEMS)
    return [rng.uniform(low, high, [items] + maker.net.tensors[n]["shape"]).astype(np.float32)
            for n in maker.net.inputs]


def ranges_of(tflite, net, inputs):
    """Lowest and highest value of every activation, from the float net with all as outputs."""
    names = [n for op in net.ops for n in op["outputs"]]
    _, outputs = tflite.run(net.to_bytes(names), inputs)
    found = {n: (float(a.min()), float(a.max())) for n, a in zip(names, outputs)}
    found.update({n: (float(a.min()), float(a.max())) for n, a in zip(net.inputs, inputs)})
    return found


def to_stored(net, name, array):
    t = net.tensors[name]
    info = np.iinfo(t["type"])
    scale, zero = np.float32(t["quant"]["scale"][0]), t["quant"]["zero_point"][0]
    return np.clip(np.rint(array / scale) + zero, info.min, info.max).astype(t["type"])


def make_cases(tflite, only):
    for maker in nets.all_nets():
        net = maker.net
        if only and net.name not in only:
            continue
        inputs = float_inputs(maker)
        variants = [(net, inputs)]
        if getattr(maker, "stored", False):
            variants = [(net, [to_stored(net, n, a) for n, a in zip(net.inputs, inputs)])]
        if maker.quantized:
            ranges = ranges_of(tflite, net, inputs)
            for dtype in maker.quantized:
                q = net.quantized(ranges, dtype)
                variants.append((q, [to_stored(q, n, a) for n, a in zip(net.inputs, inputs)]))
        for variant, arrays in variants:
            model = variant.to_bytes()
            try:
                _, outputs = tflite.run(model, arrays)
            except Refused as error:
                print(f"{variant.name}: left out, the interpreter says: {error}")
                continue
            quant = {n: variant.tensors[n]["quant"] for n in variant.inputs + variant.outputs}
            yield variant.name, model, arrays, outputs, {
                "inputs": variant.inputs, "outputs": variant.outputs,
                "shapes": {n: variant.tensors[n]["shape"] for n in variant.inputs},
                "quant": quant, "ops": sorted({op["code"] for op in variant.ops})}


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def published_cases(tflite, shared):
    """The models of the shared folder; only inputs and outputs are recorded."""
    root = os.path.join(shared, "models", "tflite")
    keywords = np.load(os.path.join(shared, "datasets", "kws01", "inputs_int8.npy"))
    for path in sorted(glob.glob(os.path.join(root, "*", "*.tflite"))):
        with open(path, "rb") as f:
            model = f.read()
        name = os.path.relpath(path, root)
        rng = np.random.default_rng(nets.hash_name(name))
        arrays = []
        for port in tflite.stated(model)["inputs"]:
            shape = [PUBLISHED_ITEMS] + [int(n) for n in port["shape"].split(",")]
            words = keywords[:PUBLISHED_ITEMS].reshape(PUBLISHED_ITEMS, -1)
            is_keywords = words.shape[1] == np.prod(shape[1:])
            if port["type"] == "float32":
                array = rng.uniform(-1, 1, shape)
                if is_keywords:
                    array = (words.astype(np.float32) - 83) * np.float32(0.58470291)
            else:
                info = np.iinfo(port["type"])
                array = words if is_keywords else rng.integers(info.min, info.max + 1, shape)
            arrays.append(array.reshape(shape).astype(port["type"]))
        # TensorFlow Lite rounds the operands of 8-bit weights as they come; npuc computes in float.
        # So it gets such a model with its weights as floats.
        stated, outputs = tflite.run(tflitemodel.float_weights(path) or model, arrays)
        layers, traced = tflitemodel.all_results(path)
        if layers:
            _, results = tflite.run(traced, [a[:1] for a in arrays])
            outputs += results
        yield name.replace("/", "__"), None, arrays, outputs, {
            "model": name, "layers": layers, "inputs": [p["name"] for p in stated["inputs"]],
            "outputs": [p["name"] for p in stated["outputs"]],
            "shapes": {p["name"]: [int(n) for n in p["shape"].split(",")]
                       for p in stated["inputs"]}, "ops": [name]}


def write(path, cases):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tarfile.open(path, "w:xz") as tar:
        for name, model, inputs, outputs, facts in cases:
            files = {"case.json": json.dumps(facts, indent=1).encode()}
            if model is not None:
                files["model.tflite"] = model
            files.update({f"input_{k}.npy": npy(a) for k, a in enumerate(inputs)})
            files.update({f"output_{k}.npy": npy(a) for k, a in enumerate(outputs)})
            for file, data in files.items():
                member = tarfile.TarInfo(f"{name}/{file}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
            print(f"{name}: {', '.join(facts['ops'])}")


def check(tflite, shared):
    wrong = 0
    cases = recorded_nets.read(PUBLISHED if shared else RECORDED)
    for name, files in cases.items():
        if shared:
            facts = json.loads(files["case.json"])
            path = os.path.join(shared, "models", "tflite", facts["model"])
            with open(path, "rb") as f:
                files["model.tflite"] = tflitemodel.float_weights(path) or f.read()
        _, outputs = tflite.run(files["model.tflite"], recorded_nets.arrays(files, "input"))
        same = all(np.array_equal(a, b)
                   for a, b in zip(outputs, recorded_nets.arrays(files, "output")))
        wrong += not same
        if not same:
            print(f"{name}: differs from what is recorded")
    print(f"{len(cases)} nets, {wrong} differ")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--package", required=True)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--published", metavar="SHARED")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    tflite = Interpreter(arguments.package)
    if arguments.check:
        return check(tflite, arguments.published)
    if arguments.published:
        write(PUBLISHED, list(published_cases(tflite, arguments.published)))
        return 0
    cases = list(make_cases(tflite, arguments.names))
    if not arguments.names:
        write(RECORDED, cases)
    return 0


if __name__ == "__main__":
    sys.exit(main())
