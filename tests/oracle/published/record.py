#!/usr/bin/python3
"""Records what onnxruntime and TensorFlow Lite answer for models of any folder.

    record.py --onnx DIR --tflite DIR FOLDER OUT

DIR: node_modules/onnxruntime-node and node_modules/@tensorflow/tfjs-tflite (README.md). FOLDER
holds .onnx and .tflite files. OUT gets them as the shared folder has its published models:
SOURCES.csv, and beside each model two seeded frames and their answers. `run_e2e.py wild --models
OUT` judges npuc by them. An open dimension is taken as 1. Models that an interpreter refuses are
named and left out.
Environment: NPUC_BIN_DIR (default build/bin), whose `npuc inspect` states the inputs.
"""

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path += [os.path.join(ROOT, "tests", "e2e"), os.path.join(ROOT, "tests", "models")]
sys.path.insert(0, os.path.join(HERE, "..", "tflite"))
import harness  # noqa: E402
import record as tflite_record  # noqa: E402, of ../tflite
import wild_judges  # noqa: E402

FRAMES = 2
SEED = 11


class Refused(Exception):
    """An interpreter does not run the model."""


def frames_of(port, random):
    """Seeded values of the stored type, [frames, shape...]."""
    shape = [FRAMES, *port["shape"]]
    if port["dtype"] == "float32":
        return random.uniform(-1, 1, shape).astype(np.float32)
    if port["dtype"] not in ("int8", "uint8", "int16", "int32", "int64"):
        raise Refused(f"an input of type {port['dtype']}")
    info = np.iinfo(port["dtype"])
    least, most = (info.min, info.max) if port["scale"] else (0, 1)
    return random.integers(least, most, shape, endpoint=True).astype(port["dtype"])


def onnx_ports(path):
    said = json.loads(harness.npuc("inspect", "--json", path).stdout)
    return [{"name": port["name"], "shape": [n or 1 for n in port["shape"]],
             "dtype": port["type"], "scale": 0.0, "zero_point": 0}
            for port in said["inputs"] if not port["may_be_left_out"]]


def run_onnx(package, path, ports, frames):
    """([name], [answers of all frames]) of onnxruntime."""
    answers, names = [], []
    for number in range(FRAMES):
        with tempfile.TemporaryDirectory() as folder:
            inputs = []
            for i, (port, values) in enumerate(zip(ports, frames)):
                file = os.path.join(folder, f"input_{i}.bin")
                values[number].tofile(file)
                inputs.append({"name": port["name"], "type": port["dtype"],
                               "shape": port["shape"], "file": file})
            job = json.dumps({"model": path, "inputs": inputs, "folder": folder})
            done = subprocess.run(["node", os.path.join(HERE, "..", "run_onnx.js"), package],
                                  input=job + "\n", capture_output=True, text=True, timeout=300)
            answer = json.loads(done.stdout or "{\"error\": \"no answer\"}")
            if "error" in answer:
                raise Refused(answer["error"])
            names = [port["name"] for port in answer["outputs"]]
            answers.append([np.fromfile(os.path.join(folder, f"output_{k}.bin"), port["type"])
                            .reshape(port["shape"]) for k, port in enumerate(answer["outputs"])])
    return names, [np.stack(of) for of in zip(*answers)]


def record_onnx(package, path):
    ports = onnx_ports(path)
    random = np.random.default_rng(SEED)
    frames = [frames_of(port, random) for port in ports]
    names, answers = run_onnx(package, path, ports, frames)
    outputs = [{"name": name, "scale": 0.0, "zero_point": 0} for name in names]
    return ports, outputs, frames, answers


def record_tflite(interpreter, path):
    ports = wild_judges.tflite_inputs(path)
    random = np.random.default_rng(SEED)
    frames = [frames_of(port, random) for port in ports]
    with open(path, "rb") as f:
        model = f.read()
    try:
        answers = interpreter.run(model, [values.reshape(FRAMES, -1) for values in frames])[1]
    except tflite_record.Refused as refused:
        raise Refused(str(refused)) from refused
    return ports, wild_judges.tflite_outputs(path), frames, answers


def write(out, name, ending, path, recorded):
    ports, outputs, frames, answers = recorded
    stem = os.path.join(out, ending, name)
    os.makedirs(os.path.dirname(stem), exist_ok=True)
    shutil.copyfile(path, f"{stem}.{ending}")
    with open(stem + ".oracle.json", "w", encoding="utf-8") as f:
        json.dump({"inputs": ports, "outputs": outputs}, f, indent=1)
    arrays = {f"in{i}": values for i, values in enumerate(frames)}
    arrays |= {f"out{i}": values for i, values in enumerate(answers)}
    np.savez_compressed(stem + ".oracle.npz", **arrays)


def main():
    parser = argparse.ArgumentParser(prog="record.py")
    parser.add_argument("--onnx", required=True)
    parser.add_argument("--tflite", required=True)
    parser.add_argument("folder")
    parser.add_argument("out")
    options = parser.parse_args()
    interpreter = tflite_record.Interpreter(options.tflite)
    rows = []
    for file in sorted(os.listdir(options.folder)):
        name, ending = os.path.splitext(file)
        path = os.path.abspath(os.path.join(options.folder, file))
        if ending not in (".onnx", ".tflite"):
            continue
        try:
            recorded = (record_onnx(options.onnx, path) if ending == ".onnx"
                        else record_tflite(interpreter, path))
        except (Refused, harness.Failure, subprocess.TimeoutExpired) as error:
            print(f"left out: {file}: {str(error)[:200]}", flush=True)
            continue
        write(options.out, name, ending[1:], path, recorded)
        rows.append([f"{ending[1:]}/{file}", "onnxruntime" if ending == ".onnx" else "TFLite"])
    with open(os.path.join(options.out, "SOURCES.csv"), "w", encoding="utf-8", newline="") as f:
        csv.writer(f).writerows([["file", "oracle"], *rows])
    print(f"{len(rows)} models recorded")


if __name__ == "__main__":
    main()
