"""Advice followed to the letter: what a diagnostic about an unsupported operator says to write into
INPUT_OPS or OUTPUT_OPS is written there, and the model must compile and compute what is left of it.

    run_e2e.py advice

A chain of Relu, Tanh and an operator that npuc does not have, which stands first, between or last,
in each format whose tensors have names. The config is YAML, or a .cfg, whose user reads in a note
what it calls those keys.
"""

import os
import re

import numpy as np

import graphdef
import harness
import onnxmodel
import tflitemodel

SHAPE = [1, 8]
CHAINS = {"first": ["?", "Relu", "Tanh"], "middle": ["Relu", "?", "Tanh"],
          "last": ["Relu", "Tanh", "?"], "alone": ["?"]}
COMPUTE = {"Relu": lambda x: np.maximum(x, 0), "Tanh": np.tanh}


def tensorflow(ops):
    graph = graphdef.Graph()
    graph.placeholder("t0", SHAPE)
    for i, op in enumerate(ops):
        graph.node("Mystery" if op == "?" else op, f"t{i + 1}", [f"t{i}"],
                   {"T": graphdef.DType(np.float32)})
    return "TF", "model.pb", graph.serialize()


def onnx(ops, prefix=""):
    nodes = [onnxmodel.node("Mystery" if op == "?" else op, [f"{prefix}t{i}"],
                            [f"{prefix}t{i + 1}"], domain="acme" if op == "?" else "")
             for i, op in enumerate(ops)]
    model = onnxmodel.model(nodes, [(f"{prefix}t0", SHAPE)], [(f"{prefix}t{len(ops)}", SHAPE)])
    return "ONNX", "model.onnx", model


def pytorch_onnx(ops):
    """With the names that PyTorch's exporter gives to tensors that have none."""
    return onnx(ops, "onnx::")


def tflite(ops):
    net = tflitemodel.Net("chain")
    net.input("t0", SHAPE)
    for i, op in enumerate(ops):
        net.op({"?": "L2_POOL_2D", "Relu": "RELU", "Tanh": "TANH"}[op], [f"t{i}"], [SHAPE],
               names=[f"t{i + 1}"])
    net.outputs = [f"t{len(ops)}"]
    return "TFLITE", "model.tflite", net.to_bytes()


PREFIX = {pytorch_onnx: "onnx::"}


def compile_with(model, folder, inputs, outputs, expect):
    framework, name, data = model
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data)
    config = os.path.join(folder, "config.yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write(f"CORENAME: GRUS\nNPU_UNIT: NPU32\nFRAMEWORK: {framework}\nMODEL_FILE: {name}\n"
                f"OUTPUT_TYPE: c_code\nOUTPUT_FILE: m.h\nINPUT_OPS: {inputs}\n"
                f"OUTPUT_OPS: {outputs}\n")
    return harness.npuc(config, "-o", folder, expect=expect).stderr


def check_left(model, ops, prefix, inputs, outputs):
    """Compiles what the advice leaves and compares it with the operators between the two."""
    with harness.scratch() as folder:
        compile_with(model, folder, inputs, outputs, 0)
        first, last = (int(re.search(r"t(\d+)", text).group(1)) for text in (inputs, outputs))
        harness.check(first < last, f"nothing is left between {inputs} and {outputs}")
        x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(SHAPE)
        got = harness.simulate(os.path.join(folder, "m.h"), {f"{prefix}t{first}": x},
                               os.path.join(folder, "out"), [f"{prefix}t{last}"])
        got = got[f"{prefix}t{last}"]
        want = x
        for op in ops[first:last]:
            want = COMPUTE[op](want)
        harness.check(np.abs(got - want).max() < 0.01, f"{got} is not {want}")


def check_chain(make, place):
    ops = CHAINS[place]
    model, prefix = make(ops), PREFIX.get(make, "")
    inputs, outputs = f"{{{prefix}t0: {SHAPE}}}", f"[{prefix}t{len(ops)}]"
    with harness.scratch() as folder:
        said = compile_with(model, folder, inputs, outputs, 1)
        # The old advice: the unsupported result as input and as output.
        result = f"{prefix}t{ops.index('?') + 1}"
        alike = compile_with(model, folder, f"{{{result}: {SHAPE}}}", f"[{result}]", 1)
    harness.check("NPUC1123" in alike, f"an output that is an input: {alike}")
    ways = 0
    for key, value in re.findall(r"with (INPUT_OPS|OUTPUT_OPS): (\{.*?\]\}|\[.*?\])", said):
        value = value.replace("[shape]", str(SHAPE))
        cut = (value, outputs) if key == "INPUT_OPS" else (inputs, value)
        check_left(model, ops, prefix, *cut)
        ways += 1
    harness.check(ways == {"middle": 2, "alone": 0}.get(place, 1), f"{place}: {said}")


CFG = """[Parser]
model_type = {model_type}
input_model = {file}
model_name = m
input = {input}
input_shape = {shape}
output = {output}
[Optimizer]
calibration_data = samples.npy
"""
CFG_MAKERS = (tensorflow, onnx, tflite)
CFG_TYPES = {"TF": "TensorFlow", "ONNX": "ONNX", "TFLITE": "TFLite"}
CFG_KEYS = {"INPUT_OPS": "input of [Parser] and input_shape of [Parser]",
            "OUTPUT_OPS": "output of [Parser]"}


def check_cfg(make, place):
    """The same advice for a .cfg, whose keys have other names."""
    ops = CHAINS[place]
    framework, file, data = make(ops)
    with harness.scratch() as folder:
        with open(os.path.join(folder, file), "wb") as f:
            f.write(data)
        np.save(os.path.join(folder, "samples.npy"),
                np.random.RandomState(1).uniform(-1, 1, SHAPE).astype(np.float32))
        config = os.path.join(folder, "job.cfg")

        def compile_between(first, last, expect):
            with open(config, "w", encoding="utf-8") as f:
                f.write(CFG.format(model_type=CFG_TYPES[framework], file=file, input=first,
                                   shape=str(SHAPE).replace(" ", ""), output=last))
            return harness.npuc(config, "-o", folder, expect=expect).stderr

        first, last = "t0", f"t{len(ops)}"
        said = compile_between(first, last, 1)
        for key, value in re.findall(r"with (INPUT_OPS|OUTPUT_OPS): [{[]'(t\d+)'", said):
            harness.check(f"{key} is {CFG_KEYS[key]}" in said, said)
            cut = (value, last) if key == "INPUT_OPS" else (first, value)
            compile_between(*cut, 0)


def main(_):
    count = 0
    for make in CFG_MAKERS:
        for place in CHAINS:
            check_cfg(make, place)
            count += 1
    for make in (tensorflow, onnx, pytorch_onnx, tflite):
        for place in CHAINS:
            check_chain(make, place)
            count += 1
    harness.figure(f"advice: followed to the letter for {count} models")
