"""SavedModel folders as MODEL_FILE: read, frozen and compiled as they lie.

    run_e2e.py saved_model

A net of dense layers as Keras saves it: each layer a function, variables as handles, a function
that restores them, a checkpoint of LevelDB's table format with shared beginnings of keys and many
blocks. `npuc reference` must give NumPy's outputs, the compile the header of the same net frozen by
hand, to the byte, and so must npuc-remote; `npuc inspect` and `npuc init` take the folder.
"""

import json
import os
import struct

import numpy as np

import graphdef
import harness
import service
from graphdef import DType, field_bytes, field_varint, varint

LAYERS = [(6, 20), (20, 20), (20, 20), (20, 3)]
RESOURCE = DType(20)
FLOAT = {"T": DType(np.float32)}


class Body(graphdef.Graph):
    """The nodes of a function, or of the main graph."""

    def nodes(self, number):
        return b"".join(field_bytes(number, node) for node in self._nodes)

    def call(self, name, function, inputs):
        out = field_bytes(1, name) + field_bytes(2, "StatefulPartitionedCall")
        out += b"".join(field_bytes(3, i) for i in inputs)
        value = field_bytes(10, field_bytes(1, function))
        self._nodes.append(out + field_bytes(5, field_bytes(1, "f") + field_bytes(2, value)))

    def strings(self, name, values):
        tensor = field_varint(1, graphdef.DT_STRING) + b"".join(field_bytes(8, v) for v in values)
        attr = field_bytes(1, "value") + field_bytes(2, field_bytes(8, tensor))
        self._nodes.append(field_bytes(1, name) + field_bytes(2, "Const") + field_bytes(5, attr))


def function(name, arguments, body, results):
    signature = field_bytes(1, name)
    signature += b"".join(field_bytes(2, field_bytes(1, a)) for a in arguments)
    signature += b"".join(field_bytes(3, field_bytes(1, r)) for r in results)
    returned = b"".join(field_bytes(4, field_bytes(1, r) + field_bytes(2, t))
                        for r, t in results.items())
    return field_bytes(1, field_bytes(1, signature) + body.nodes(3) + returned)


def layer(i, last):
    body = Body()
    body.node("ReadVariableOp", "MatMul/ReadVariableOp", ["k"], {"dtype": DType(np.float32)})
    body.node("MatMul", "MatMul", ["x", "MatMul/ReadVariableOp:value:0"], FLOAT)
    body.node("ReadVariableOp", "BiasAdd/ReadVariableOp", ["b"], {"dtype": DType(np.float32)})
    body.node("BiasAdd", "BiasAdd", ["MatMul:product:0", "BiasAdd/ReadVariableOp:value:0"], FLOAT)
    kind, result = ("Softmax", "softmax") if last else ("Relu", "activations")
    body.node(kind, kind, ["BiasAdd:output:0"], FLOAT)
    body.node("Identity", "Identity", [f"{kind}:{result}:0", "^MatMul/ReadVariableOp"], FLOAT)
    return function(f"layer_{i}", ["x", "k", "b"], body, {"identity": "Identity:output:0"})


def saved_model(names):
    main, outer, restore = Body(), Body(), Body()
    main.placeholder("serving_default_x", [-1, LAYERS[0][0]])
    main.node("Placeholder", "saver_filename", [], {"dtype": DType(graphdef.DT_STRING)})
    for name in names:
        main.node("VarHandleOp", name, [], {"dtype": DType(np.float32)})
    main.call("StatefulPartitionedCall", "outer", ["serving_default_x", *names])
    main.call("StatefulPartitionedCall_1", "restore", ["saver_filename", *names])
    arguments = [f"v{i}" for i in range(len(names))]
    value, functions = "x", b""
    for i in range(len(LAYERS)):
        functions += layer(i, i == len(LAYERS) - 1)
        outer.call(f"dense_{i}/StatefulPartitionedCall", f"layer_{i}",
                   [value, arguments[2 * i], arguments[2 * i + 1]])
        value = f"dense_{i}/StatefulPartitionedCall:output:0"
    functions += function("outer", ["x", *arguments], outer, {"identity": value})
    restore.strings("names", [key(name) for name in names])
    restore.strings("slices", ["" for _ in names])
    restore.node("RestoreV2", "RestoreV2", ["file", "names:output:0", "slices:output:0"])
    for i, argument in enumerate(arguments):
        restore.node("Identity", f"Identity_{i}", [f"RestoreV2:tensors:{i}"], FLOAT)
        restore.node("AssignVariableOp", f"Assign_{i}", [argument, f"Identity_{i}:output:0"])
    functions += function("restore", ["file", *arguments], restore, {"file": "file"})
    graph = main.nodes(1) + field_bytes(2, functions) + field_bytes(4, field_varint(1, 1395))

    def tensor_info(name):
        return field_bytes(1, name) + field_varint(2, 1)
    signature = (field_bytes(1, field_bytes(1, "x") +
                             field_bytes(2, tensor_info("serving_default_x:0"))) +
                 field_bytes(2, field_bytes(1, "result") +
                             field_bytes(2, tensor_info("StatefulPartitionedCall:0"))))
    meta = (field_bytes(1, field_bytes(4, "serve")) + field_bytes(2, graph) +
            field_bytes(3, field_bytes(3, "StatefulPartitionedCall_1")) +
            field_bytes(5, field_bytes(1, "serving_default") + field_bytes(2, signature)))
    return field_varint(1, 1) + field_bytes(2, meta)


def key(name):
    return f"layer_with_weights/{name}/.ATTRIBUTES/VARIABLE_VALUE"


def block(entries):
    out, last = b"", b""
    for name, value in entries:
        shared = len(os.path.commonprefix([name, last]))
        out += varint(shared) + varint(len(name) - shared) + varint(len(value))
        out += name[shared:] + value
        last = name
    return out + struct.pack("<II", 0, 1)


def checkpoint(variables):
    """(variables.index, variables.data-00000-of-00001)"""
    data, entries = b"", [(b"", field_varint(1, 1))]
    for name in sorted(variables):
        array = variables[name]
        shape = b"".join(field_bytes(2, field_varint(1, d)) for d in array.shape)
        entries.append((key(name).encode(), field_varint(1, 1) + field_bytes(2, shape) +
                        field_varint(4, len(data)) + field_varint(5, array.nbytes)))
        data += array.tobytes()
    table, handles = b"", []
    for at in range(0, len(entries), 3):
        content = block(entries[at:at + 3])
        handles.append((entries[min(at + 2, len(entries) - 1)][0],
                        varint(len(table)) + varint(len(content))))
        table += content + bytes(5)
    footer = b""
    for content in (block([]), block(handles)):
        footer += varint(len(table)) + varint(len(content))
        table += content + bytes(5)
    return table + footer.ljust(40, b"\0") + struct.pack("<Q", 0xdb4775248b80fb57), data


def frozen(variables):
    """The same net as a GraphDef, with the names that the frozen SavedModel has."""
    g = graphdef.Graph()
    g.placeholder("x", [-1, LAYERS[0][0]])
    value = "x"
    for i in reversed(range(len(LAYERS))):  # names are given from the output on
        for part in ("kernel", "bias"):
            g.const(f"dense_{i}/{part}", variables[f"dense_{i}/{part}"])
    for i in range(len(LAYERS)):
        last = i == len(LAYERS) - 1
        prefix = "" if last else f"StatefulPartitionedCall/dense_{i}/StatefulPartitionedCall/"
        g.node("MatMul", f"{prefix}MatMul", [value, f"dense_{i}/kernel"], FLOAT)
        g.node("BiasAdd", f"{prefix}BiasAdd", [f"{prefix}MatMul", f"dense_{i}/bias"], FLOAT)
        kind = "Softmax" if last else "Relu"
        name = kind if last or i == len(LAYERS) - 2 else prefix + kind
        g.node(kind, name, [f"{prefix}BiasAdd"], FLOAT)
        value = name
    g.node("Identity", "result", [value], FLOAT)
    return g.serialize()


def numpy_outputs(variables, x):
    for i in range(len(LAYERS)):
        x = x @ variables[f"dense_{i}/kernel"].astype(np.float64) + variables[f"dense_{i}/bias"]
        x = np.maximum(x, 0) if i < len(LAYERS) - 1 else np.exp(x) / np.exp(x).sum(-1)[:, None]
    return x


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb" if isinstance(data, bytes) else "w") as f:
        f.write(data)
    return path


def config(folder, name, model):
    return write(os.path.join(folder, name + ".yaml"),
                 f"CORENAME: GRUS\nFRAMEWORK: TF\nMODEL_FILE: {model}\nOUTPUT_FILE: net.h\n"
                 f"INPUT_OPS: {{x: [1, {LAYERS[0][0]}]}}\nOUTPUT_OPS: [result]\n")


def program(path):
    """A header without the lines about the model's file."""
    with open(path, encoding="utf-8") as f:
        return [line for line in f if "model_info" not in line and "pb_md5" not in line]


def check_inspect(folder, model):
    report = json.loads(harness.npuc("inspect", model + "/", "--json").stdout)
    harness.check(report["framework"] == "TF" and
                  [(p["key"], p["shape"]) for p in report["inputs"]] == [("x", [1, 6])] and
                  [p["key"] for p in report["outputs"]] == ["result"], report)
    path = os.path.join(folder, "init.yaml")
    harness.npuc("init", model + "/", "-o", path)
    harness.npuc(path, "-o", os.path.join(folder, "init"))


def check_service(folder, path, wanted):
    daemon = service.Daemon(folder)
    try:
        daemon.start()
        out = os.path.join(folder, "remote")
        job = daemon.json("compile", path, "-o", out)[-1]
        harness.check(job["state"] == "SUCCEEDED", job)
        with open(os.path.join(out, "net.h"), "rb") as f, open(wanted, "rb") as g:
            harness.check(f.read() == g.read(), "npuc-remote: another header")
    finally:
        daemon.stop()


def check_refusals(folder, model):
    os.rename(os.path.join(model, "variables"), os.path.join(folder, "away"))
    said = harness.npuc(os.path.join(folder, "saved.yaml"), expect=1).stderr
    harness.check("its folder no variables/variables.index" in said, said)
    said = harness.npuc(config(folder, "alone", "net/saved_model.pb"), expect=1).stderr
    harness.check("name its folder as MODEL_FILE" in said, said)
    write(os.path.join(folder, "net.h5"), b"\x89HDF\r\n\x1a\n" + bytes(64))
    said = harness.npuc(config(folder, "keras", "net.h5"), expect=1).stderr
    harness.check("keras.models.load_model('FILE').export('FOLDER')" in said, said)


def main(arguments):
    harness.check(not arguments, "saved_model takes no arguments")
    rng = np.random.default_rng(4)
    variables = {}
    for i, (rows, columns) in enumerate(LAYERS):
        kernel = rng.standard_normal((rows, columns)) / np.sqrt(rows)
        variables[f"dense_{i}/kernel"] = kernel.astype(np.float32)
        variables[f"dense_{i}/bias"] = rng.standard_normal(columns).astype(np.float32)
    with harness.scratch() as folder:
        model = os.path.join(folder, "net")
        write(os.path.join(model, "saved_model.pb"), saved_model(list(variables)))
        index, data = checkpoint(variables)
        write(os.path.join(model, "variables", "variables.index"), index)
        write(os.path.join(model, "variables", "variables.data-00000-of-00001"), data)
        saved = config(folder, "saved", "net/")
        x = rng.standard_normal((20, LAYERS[0][0])).astype(np.float32)
        got = harness.simulate(saved, {"x": x}, os.path.join(folder, "y"), ["result"],
                               verb="reference")["result"]
        worst = np.abs(got - numpy_outputs(variables, x)).max()
        harness.check(worst < 1e-6, f"off NumPy by {worst}")
        header = harness.compile_header(saved, os.path.join(folder, "out"), "net.h")
        write(os.path.join(folder, "frozen.pb"), frozen(variables))
        other = harness.compile_header(config(folder, "frozen", "frozen.pb"),
                                       os.path.join(folder, "out2"), "net.h")
        harness.check(program(header) == program(other), "not the header of the frozen net")
        check_inspect(folder, model)
        check_service(folder, saved, header)
        check_refusals(folder, model)
    harness.figure(f"saved_model: a folder with {len(variables)} variables and "
                   f"{len(LAYERS) + 2} functions, {worst:.1e} off NumPy")
