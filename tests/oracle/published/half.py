#!/usr/bin/python3
"""How far onnxruntime itself is from its answers where every number is rounded to fp16.

    half.py --onnx DIR MODEL.onnx...

DIR: node_modules/onnxruntime-node (README.md). Weights, inputs and the result of every operator of
the model are rounded to fp16 and back by casts; onnxruntime computes what is between in float32.
Beside the model lie its recorded answers (record.py). Printed: the largest difference of an output,
as a part of its largest value. No core that stores fp16 can promise to be nearer. Needs
python3-onnx (Debian) besides.
"""

import argparse
import json
import os
import tempfile

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.shape_inference

import record


def rounded(model):
    """The model with two casts behind each result and fp16's weights."""
    graph = model.graph
    outputs = {output.name for output in graph.output}
    inferred = onnx.shape_inference.infer_shapes(model).graph
    types = {value.name: value.type.tensor_type.elem_type
             for value in [*inferred.value_info, *graph.input, *graph.output]}
    for weight in graph.initializer:
        if weight.data_type == onnx.TensorProto.FLOAT:
            values = onnx.numpy_helper.to_array(weight).astype(np.float16).astype(np.float32)
            weight.CopyFrom(onnx.numpy_helper.from_array(values, weight.name))
    nodes, names = [], {}

    def cast(name):
        if types.get(name) != onnx.TensorProto.FLOAT or name in outputs:
            return
        for start, end, to in ((name, name + "_half", onnx.TensorProto.FLOAT16),
                               (name + "_half", name + "_rounded", onnx.TensorProto.FLOAT)):
            nodes.append(onnx.helper.make_node("Cast", [start], [end], to=to))
        names[name] = name + "_rounded"

    for value in graph.input:
        cast(value.name)
    for node in graph.node:
        for i, name in enumerate(node.input):
            node.input[i] = names.get(name, name)
        nodes.append(node)
        for name in node.output:
            cast(name)
    del graph.node[:]
    graph.node.extend(nodes)
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--onnx", required=True)
    parser.add_argument("models", nargs="+")
    options = parser.parse_args()
    for path in options.models:
        stem = os.path.splitext(path)[0]
        with open(stem + ".oracle.json", encoding="utf-8") as f:
            ports = json.load(f)["inputs"]
        recorded = np.load(stem + ".oracle.npz")
        frames = [recorded[f"in{i}"] for i in range(len(ports))]
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "rounded.onnx")
            onnx.save(rounded(onnx.load(path)), file)
            _, answers = record.run_onnx(os.path.abspath(options.onnx), file, ports, frames)
        # As wild_judges has it: by frame and output.
        worst = max(float(np.abs(got - want).max() / max(np.abs(want).max(), 1e-6))
                    for i, answer in enumerate(answers)
                    for got, want in zip(answer, recorded[f"out{i}"]))
        print(f"{os.path.basename(path)}: {worst:.4f} of the largest value")


if __name__ == "__main__":
    main()
