"""onnxruntime in a node process, and how a recorder keeps cases in a .tar.xz."""

import io
import json
import os
import subprocess
import tarfile
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


class Runtime:
    """onnxruntime in a node process."""

    def __init__(self, package):
        self.process = subprocess.Popen(["node", os.path.join(HERE, "run_onnx.js"), package],
                                        text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, model, inputs):
        """Arrays by output name for one item, arrays by input name."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.onnx")
            with open(path, "wb") as f:
                f.write(model)
            ports = []
            for k, (name, array) in enumerate(inputs.items()):
                file = os.path.join(folder, f"input_{k}.bin")
                np.ascontiguousarray(array).tofile(file)
                ports.append({"name": name, "type": str(array.dtype), "shape": array.shape,
                              "file": file})
            self.process.stdin.write(json.dumps({"model": path, "inputs": ports,
                                                 "folder": folder}) + "\n")
            self.process.stdin.flush()
            answer = json.loads(self.process.stdout.readline())
            if "error" in answer:
                raise RuntimeError(answer["error"])
            return {o["name"]: np.fromfile(os.path.join(folder, f"output_{k}.bin"), o["type"])
                    .reshape(o["shape"]) for k, o in enumerate(answer["outputs"])}


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def write(path, cases):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tarfile.open(path, "w:xz") as tar:
        for name, model, inputs, outputs, facts in cases:
            files = {"case.json": json.dumps(facts, indent=1).encode(), "model.onnx": model}
            files.update({f"input_{k}.npy": npy(a) for k, a in enumerate(inputs)})
            files.update({f"output_{k}.npy": npy(a) for k, a in enumerate(outputs)})
            for file, data in files.items():
                member = tarfile.TarInfo(f"{name}/{file}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))


def check(path, cases):
    """1 where the runtime answers something else now than what was recorded, else 0."""
    recorded = {}
    with tarfile.open(path) as tar:
        for member in tar.getmembers():
            recorded[member.name] = tar.extractfile(member).read()
    wrong = 0
    for name, _, _, outputs, _ in cases:
        for k, array in enumerate(outputs):
            if recorded.get(f"{name}/output_{k}.npy") != npy(array):
                print(f"{name}: differs from what is recorded")
                wrong += 1
    print(f"{len(cases)} nets, {wrong} outputs differ")
    return 1 if wrong else 0
