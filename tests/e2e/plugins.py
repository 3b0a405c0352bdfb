"""Operators that PLUGINS declares: client/PLUGINS.md works as written, and what it says holds.

    run_e2e.py plugins

The page's files are compiled as they stand there. Results on the simulator are compared with NumPy;
a job with a declaration through npucd gives the bytes of npuc, and another declaration is another
cache key. Operators and subgraphs of TensorFlow, TFLite, Caffe and MXNet, and a quantized net, are
compiled as well.
"""

import json
import os
import re
import struct

import numpy as np

import caffemodel
import graphdef
import harness
import onnxmodel
import service
import tflitemodel

PAGE = os.path.join(harness.ROOT, "client", "PLUGINS.md")
X = np.linspace(-2, 2, 32, dtype=np.float32).reshape(1, 32)
# Rounding to fp16 after each of a few operators, on values of at most 4.
TOLERANCE = 4 * 8 * harness.FP16_UNIT
WEIGHT = np.linspace(-0.5, 0.5, 32 * 8, dtype=np.float32).reshape(32, 8)


def page_files(folder):
    """Writes the files of the page's blocks and returns their names."""
    with open(PAGE, encoding="utf-8") as f:
        blocks = re.findall(r"^```yaml (\S+)\n(.*?)^```$", f.read(), re.M | re.S)
    for name, text in blocks:
        write(folder, name, text)
    return [name for name, _ in blocks]


def write(folder, name, data):
    path = os.path.join(folder, name)
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())
    return path


def onnx_abs(**attributes):
    nodes = [onnxmodel.node("Abs", ["x"], ["a"], domain="acme", **attributes),
             onnxmodel.node("MatMul", ["a", "w"], ["y"])]
    return onnxmodel.model(nodes, [("x", [1, 32])], [("y", [1, 8])], {"w": WEIGHT})


def onnx_relus():
    nodes = [onnxmodel.node("Relu", ["x"], ["relu_0"]), onnxmodel.node("Neg", ["x"], ["neg_0"]),
             onnxmodel.node("Relu", ["neg_0"], ["relu_1"]),
             onnxmodel.node("Add", ["relu_0", "relu_1"], ["add_0"]),
             onnxmodel.node("MatMul", ["add_0", "w"], ["y"])]
    return onnxmodel.model(nodes, [("x", [1, 32])], [("y", [1, 8])], {"w": WEIGHT})


def run(folder, config, want, what, output="y", x=X):
    """Compiles a config and compares the simulator with what is wanted; returns the listing."""
    out = os.path.join(folder, "out_" + what)
    listing = harness.npuc(os.path.join(folder, config), "-o", out, "-v").stdout
    found = harness.simulate(os.path.join(out, "net.npuc"), {"x": x}, os.path.join(out, "sim"),
                             [output])[output]
    worst = float(np.abs(found.reshape(want.shape) - want).max())
    harness.check(worst <= TOLERANCE, f"{what}: off by {worst}")
    return listing


def tutorial(folder):
    names = page_files(folder)
    harness.check(names == ["abs.yaml", "net.yaml", "pattern.yaml", "named.yaml", "checked.yaml",
                            "elementwise.yaml"],
                  f"the page has other files: {names}")
    write(folder, "net.onnx", onnx_abs())
    without = harness.npuc(write(folder, "none.yaml", text_of(folder, "net.yaml").replace(
        "PLUGINS: [abs.yaml]\n", "")), "-o", os.path.join(folder, "none"), expect=1).stderr
    harness.check("NPUC1110" in without and "acme" in without, without)
    run(folder, "net.yaml", np.abs(X) @ WEIGHT, "abs")
    write(folder, "net.onnx", onnx_abs(scale=0.5))
    run(folder, "net.yaml", 0.5 * np.abs(X) @ WEIGHT, "abs_scale")
    write(folder, "net.onnx", onnx_relus())
    for name in ("pattern", "named"):
        config = text_of(folder, "net.yaml").replace("abs.yaml", f"{name}.yaml")
        write(folder, f"{name}_net.yaml", config)
        listing = run(folder, f"{name}_net.yaml", np.abs(X) @ WEIGHT, name)
        harness.check("Relu" not in listing, f"{name}: nodes of the subgraph are left:\n{listing}")
    plain = run(folder, "none.yaml", np.abs(X) @ WEIGHT, "plain")
    harness.check("Relu" in plain, f"the model without a declaration has other nodes:\n{plain}")


def text_of(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as f:
        return f.read()


def through_the_daemon(folder):
    """The bytes of npuc; a declaration that changes is another result."""
    write(folder, "net.onnx", onnx_abs())
    config = os.path.join(folder, "net.yaml")
    with service.daemon(folder) as server:
        for text in (text_of(folder, "abs.yaml"),
                     text_of(folder, "abs.yaml").replace("Maximum(x, -x)", "(x * 2)")):
            write(folder, "abs.yaml", text)
            headers = []
            for name, command in (("local", harness.npuc), ("remote", server.remote)):
                out = os.path.join(folder, name)
                command(*(() if command is harness.npuc else ("compile",)), config, "-o", out)
                with open(os.path.join(out, "net.h"), "rb") as f:
                    headers.append(f.read())
            harness.check(headers[0] == headers[1], "npuc-remote gave other bytes than npuc")
        hits = [job.get("cacheHit", False) for job in server.json("list")]
        harness.check(len(hits) == 2 and not any(hits), f"jobs: {hits}")
        hostile = text_of(folder, "abs.yaml").replace("(x * 2)", "acme.Abs(x)")
        write(folder, "abs.yaml", hostile)
        refused = server.remote("compile", config, "-o", os.path.join(folder, "no"), expect=None)
        harness.check(refused.returncode not in (0, 70) and "NPUC1007" in refused.stderr,
                      f"exit {refused.returncode}: {refused.stderr}")


DECLARED = """operators:
  - op: AcmeGate
    operands: [x]
    attributes:
      slope: {type: float, default: 0.25}
      powers: {type: ints, default: [2, 1]}
    formula: |
      y = x * Sigmoid(x * slope) * Size(x, axis=1) / 32
    results: [y]
  - op: Relu
    overrides: true
    frameworks: [TF, CAFFE]
    operands: [x]
    formula: y = Maximum(x, 0.5)
    results: [y]
  - op: RELU
    overrides: true
    frameworks: [TFLITE]
    operands: [x]
    formula: y = Maximum(x, 0.5)
    results: [y]
  - op: Halves
    pattern_nodes: [[a, %(tanh)s], [b, %(add)s]]
    pattern_edges: [[a, b]]
    operands: {x: a:0, c: b:1}
    formula: y = x / 2 + c
    results: [y]
"""


def gate(x, slope):
    return x / (1 + np.exp(-x * slope))


def expected(slope, c):
    """What the three nets compute: gate, the declared Relu, then the halves."""
    return np.maximum(gate(X, slope), 0.5) / 2 + c


def flexbuffer_map(slope):
    """{"slope": slope} as a map of FlexBuffers: key, keys' vector, values' vector, root."""
    data = b"slope\0"
    data += b"\0" * (-len(data) % 4)
    keys = len(data) + 4
    data += struct.pack("<I", 1) + struct.pack("<I", keys)  # one key, its offset
    data += struct.pack("<III", len(data) - keys, 4, 1)  # the keys' offset and width; the count
    data += struct.pack("<f", slope)
    value_at = len(data) - 4
    data += bytes([(3 << 2) | 2])  # the value's type: a float of 4 bytes
    data += b"\0" * 3
    root = len(data) - value_at
    return data + struct.pack("<I", root) + bytes([(9 << 2) | 2, 4])  # a map; width 4


def frameworks(folder):
    c = np.linspace(-1, 1, 32, dtype=np.float32)
    # TensorFlow
    t = {"T": graphdef.DType(np.float32)}
    graph = graphdef.Graph()
    graph.placeholder("x", [1, 32])
    graph.const("c", c)
    graph.node("AcmeGate", "g", ["x"], {**t, "slope": 0.5})
    graph.node("Relu", "r", ["g"], t)
    graph.node("Tanh", "t", ["r"], t)
    graph.node("Add", "y", ["t", "c"], t)
    write(folder, "net.pb", graph.serialize())
    write(folder, "tf_ops.yaml", DECLARED % {"tanh": "Tanh", "add": "Add"})
    write(folder, "tf.yaml", config("TF", "net.pb", "tf_ops.yaml") +
          "INPUT_OPS: {x: [1, 32]}\nOUTPUT_OPS: [y]\n")
    run(folder, "tf.yaml", expected(0.5, c), "tf")
    # TFLite: options as FlexBuffers, and an operator without any.
    for slope, options in ((0.5, flexbuffer_map(0.5)), (0.25, None)):
        net = tflitemodel.Net("net")
        net.input("x", [1, 32])
        net.const("c", c)
        gate_op = net.op("AcmeGate", ["x"], [[1, 32]], custom=options)
        relu = net.op("RELU", [gate_op], [[1, 32]])
        tanh = net.op("TANH", [relu], [[1, 32]])
        net.op("ADD", [tanh, "c"], [[1, 32]], names=["y"])
        net.output("y")
        write(folder, "net.tflite", net.to_bytes())
        write(folder, "lite_ops.yaml", DECLARED % {"tanh": "TANH", "add": "ADD"})
        write(folder, "lite.yaml", config("TFLITE", "net.tflite", "lite_ops.yaml"))
        run(folder, "lite.yaml", expected(slope, c), f"tflite_{slope}")
    # Caffe: the parameters of a layer that Caffe does not have cannot be read.
    text = ('name: "net" layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 '
            'dim: 32 } } } layer { name: "c" type: "Input" top: "c" input_param { shape { dim: 1 '
            'dim: 32 } } }'
            'layer { name: "g" type: "AcmeGate" bottom: "x" top: "g" }'
            'layer { name: "r" type: "ReLU" bottom: "g" top: "g" }'
            'layer { name: "t" type: "TanH" bottom: "g" top: "t" }'
            'layer { name: "y" type: "Eltwise" bottom: "t" bottom: "c" top: "y" }')
    write(folder, "net.prototxt", text)
    write(folder, "net.caffemodel", caffemodel.weights({}))
    write(folder, "caffe_ops.yaml", DECLARED.replace("op: Relu\n", "op: ReLU\n") %
          {"tanh": "TanH", "add": "Eltwise"})
    write(folder, "caffe.yaml", config("CAFFE", "net.caffemodel", "caffe_ops.yaml") +
          "PROTOTXT: net.prototxt\n")
    out = os.path.join(folder, "out_caffe")
    harness.npuc(os.path.join(folder, "caffe.yaml"), "-o", out)
    found = harness.simulate(os.path.join(out, "net.npuc"), {"x": X, "c": c[None]},
                             os.path.join(out, "sim"), ["y"])["y"]
    worst = float(np.abs(found - expected(0.25, c)).max())
    harness.check(worst <= TOLERANCE, f"caffe: off by {worst}")


def mxnet(folder):
    """The same net as a symbol and its parameters, by MXNet's NDArray files of version 2."""
    c = np.linspace(-1, 1, 32, dtype=np.float32)
    nodes = [("null", "x", {}, []), ("null", "c", {}, []), ("AcmeGate", "g", {"slope": "0.5"}, [0]),
             ("relu", "r", {}, [2]), ("tanh", "t", {}, [3]), ("broadcast_add", "y", {}, [4, 1])]
    write(folder, "net-symbol.json", json.dumps({
        "nodes": [{"op": op, "name": name, "attrs": attrs, "inputs": [[i, 0, 0] for i in inputs]}
                  for op, name, attrs, inputs in nodes],
        "arg_nodes": [0, 1], "heads": [[5, 0, 0]]}))
    array = struct.pack("<IiIqqiii", 0xF993FAC9, 0, 2, 1, 32, 1, 0, 0) + c.tobytes()
    write(folder, "net-0000.params", struct.pack("<QQQ", 0x112, 0, 1) + array +
          struct.pack("<QQ", 1, 5) + b"arg:c")
    declared = DECLARED.replace("op: Relu\n", "op: relu\n").replace("[TF, CAFFE]", "[MXNET]")
    write(folder, "mxnet_ops.yaml", declared % {"tanh": "tanh", "add": "broadcast_add"})
    write(folder, "mxnet.yaml", config("MXNET", "net-symbol.json", "mxnet_ops.yaml") +
          "WEIGHTS_FILE: net-0000.params\nINPUT_OPS: {x: [1, 32]}\n")
    run(folder, "mxnet.yaml", expected(0.5, c), "mxnet")


def config(framework, model, plugins):
    return (f"CORENAME: GRUS\nNPU_UNIT: NPU32\nFRAMEWORK: {framework}\nMODEL_FILE: {model}\n"
            f"OUTPUT_TYPE: c_code\nOUTPUT_FILE: net.h\nPLUGINS: {plugins}\n")


def quantized(folder):
    """A declared operator on an integer core, by a config and by a .cfg: the same bytes."""
    write(folder, "net.onnx", onnx_abs())
    np.save(os.path.join(folder, "samples.npy"),
            np.random.default_rng(1).uniform(-2, 2, (16, 1, 32)).astype(np.float32))
    write(folder, "abs.yaml", [text for name, text in re.findall(
        r"^```yaml (\S+)\n(.*?)^```$", open(PAGE, encoding="utf-8").read(), re.M | re.S)
        if name == "abs.yaml"][0])
    write(folder, "int.yaml", "CORENAME: X2_1204\nFRAMEWORK: ONNX\nMODEL_FILE: net.onnx\n"
          "OUTPUT_FILE: net.h\nPLUGINS: abs.yaml\nQUANT: {calibration_data: samples.npy}\n")
    write(folder, "int.cfg", "[Common]\nmode = build\n[Parser]\nmodel_type = onnx\n"
          "model_name = net\ninput_model = net.onnx\nplugins = abs.yaml\n[Optimizer]\n"
          "calibration_data = samples.npy\n[GBuilder]\ntarget = X2_1204\n")
    headers = []
    for name in ("int.yaml", "int.cfg"):
        out = os.path.join(folder, "out_" + name)
        harness.npuc(os.path.join(folder, name), "-o", out)
        with open(os.path.join(out, "net.npuc"), "rb") as f:
            headers.append(f.read())
    harness.check(headers[0] == headers[1], "a .cfg with plugins gave other bytes")
    out = os.path.join(folder, "out_int.yaml")
    found = harness.simulate(os.path.join(out, "net.npuc"), {"x": X}, os.path.join(out, "sim"),
                             ["y"])["y"]
    worst = float(np.abs(found - np.abs(X) @ WEIGHT).max())
    harness.check(worst <= 0.15, f"quantized: off by {worst}")


def refused(folder):
    """What the model does not allow is said with the declaration's place."""
    write(folder, "net.onnx", onnx_relus())
    cases = (
        ("start_nodes: [relu_9]\n    end_nodes: [add_0]\n    operands: {x: relu_9:0}",
         "start_nodes names 'relu_9'"),
        ("start_nodes: [relu_0]\n    end_nodes: [y]\n    operands: {x: relu_0:0}",
         "is none of the formula's"),
        ("start_nodes: [neg_0]\n    end_nodes: [relu_1]\n    operands: {x: [neg_0:0, neg_0:1]}",
         "operand 1 of 'neg_0' is not there"),
        ("start_nodes: [x]\n    end_nodes: [relu_1]\n    operands: {x: neg_0:0}",
         "start_nodes names 'x'"),
    )
    for text, found in cases:
        write(folder, "bad.yaml", "operators:\n  - op: Bad\n    " + text +
              "\n    formula: y = x\n    results: [y]\n")
        write(folder, "bad_net.yaml", config("ONNX", "net.onnx", "bad.yaml"))
        said = harness.npuc(os.path.join(folder, "bad_net.yaml"), "-o", os.path.join(folder, "no"),
                            expect=1).stderr
        harness.check("bad.yaml:2" in said and found in said, said)
    write(folder, "relu.yaml", "operators:\n  - {op: Relu, operands: [x], formula: y = x, results: "
          "[y]}\n")
    write(folder, "relu_net.yaml", config("ONNX", "net.onnx", "relu.yaml"))
    said = harness.npuc(os.path.join(folder, "relu_net.yaml"), "-o", os.path.join(folder, "no"),
                        expect=1).stderr
    harness.check("overrides: true" in said, said)


def main(_):
    with harness.scratch() as folder:
        tutorial(folder)
        through_the_daemon(folder)
    with harness.scratch() as folder:
        frameworks(folder)
        mxnet(folder)
        quantized(folder)
        refused(folder)
