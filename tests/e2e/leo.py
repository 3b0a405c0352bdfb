"""LEO: the models of shared/models as raw NPUB files, read by a reader in Python and simulated.

    run_e2e.py leo [NAME...]

Truths: the frame of the file as published (compiler_core/spec/gxnpuc.md), read by a reader of this
suite's own; the code books and the widths of compiler_core/target/ISA.md, "LEO", computed here
from the .pb's weights by NumPy and compared with the file's, value by value; forward passes of
fully connected nets in NumPy with the weights that the file holds; `npuc reference` in float.
"""

import json
import os
import statistics
import struct

import numpy as np

import graphdef
import harness
import models

ITEMS = models.ITEMS
# With the weights of the file in a float forward pass: what fp16 rounding of activations costs, the
# same bound as models.DNN_LARGEST_ERROR has without COMPRESS.
LARGEST_ERROR = 0.01
DENSE = {"DNN_S": ["fc1/W", "fc2/W", "fc3/W", "final_fc"],
         "DNN_M": ["fc1/W", "fc2/W", "fc3/W", "final_fc"]}
HALVES = {"float16": np.float16, "float32": np.float32}
# Bytes of a command by opcode, header included, links apart (ISA.md).
COMMAND_BYTES = {0x01: 44, 0x40: 48, 0x41: 60, 0x42: 48, 0x43: 24}
FOLLOWS = 1 << 17
MASKED = 1 << 31
BLOCK = 32

CONFIG = """\
CORENAME: LEO
NPU_UNIT: {unit}
FRAMEWORK: TF
MODEL_FILE: {model}
OUTPUT_TYPE: {form}
OUTPUT_FILE: {file}
INPUT_OPS:
{inputs}
OUTPUT_OPS: [{output}]
{more}
"""


class Npub:
    """A raw file, read strictly."""

    def __init__(self, path):
        with open(path, "rb") as f:
            data = f.read()
        harness.check(data[:4] == b"NPUB" and data[-4:] == b"\xff" * 4, f"{path}: its ends")
        (length,) = struct.unpack(">I", data[4:8])
        self.head = json.loads(data[8:8 + length])
        harness.check(data[8 + length] == 0, f"{path}: no zero byte behind the JSON")
        rest = data[9 + length:-4]
        sizes = [self.head[f"{n}_length"] for n in ("npu_content", "cpu_prepared", "ops_content")]
        harness.check(len(rest) == sum(sizes), f"{path}: {len(rest)} bytes, lengths {sizes}")
        npu = rest[:sizes[0]]
        self.commands = npu[:self.head["cmd_content_length"]]
        self.weights = npu[self.head["cmd_content_length"]:]
        harness.check(len(self.weights) == self.head["weight_content_length"], f"{path}: weights")
        for ports in (self.head["inputs"], self.head["outputs"]):
            at = 0
            for port in ports:
                harness.check(port["address"] == at, f"{path}: {port}")
                at += int(np.prod(port["shape"])) * HALVES[port["type"]]().itemsize

    def products(self):
        """(words of the payload) of each fully connected command."""
        at = 0
        while at < len(self.commands):
            (header,) = struct.unpack_from("<I", self.commands, at)
            size = COMMAND_BYTES[header & 0xff]
            linked = 0 if header & FOLLOWS else 4
            if header & 0xff == 0x40:
                yield struct.unpack_from("<11I", self.commands, at + 4 + linked)
            at += size + linked
        harness.check(at == len(self.commands), "the commands do not end where the content does")

    def matrix(self, words):
        """The weights [K, N] that a fully connected command reads, as floats."""
        n, k = words[5] & 0xffff, words[5] >> 16
        form = words[3]
        codes = words[1] & 0x0fffffff
        blocks = [(kb, nb) for kb in range(0, k, BLOCK) for nb in range(0, n, BLOCK)]
        out = np.zeros((k, n), np.float32)
        if words[4] == 0:
            values = float16(np.frombuffer(self.weights, "<u2", k * n, codes), (form >> 8) or 5)
            at = 0
            for kb, nb in blocks:
                rows, columns = min(BLOCK, k - kb), min(BLOCK, n - nb)
                part = values[at:at + rows * columns].reshape(rows, columns)
                out[kb:kb + rows, nb:nb + columns] = part
                at += rows * columns
            return out
        count = len(blocks) * BLOCK * BLOCK
        harness.check(words[10] == MASKED | count and words[9] == 0, "mask bits; min and step")
        mask = np.unpackbits(np.frombuffer(self.weights, np.uint8, count // 8,
                                           words[4] & 0x0fffffff)).astype(bool)
        book = np.frombuffer(self.weights, "<f2", 1 << form, codes).astype(np.float32)
        bits = np.unpackbits(np.frombuffer(self.weights, np.uint8,
                                           (int(mask.sum()) * form + 7) // 8, codes + (2 << form)))
        bits = bits[:int(mask.sum()) * form].reshape(-1, form)
        flat = np.zeros(count, np.float32)
        flat[mask] = book[bits @ (1 << np.arange(form)[::-1])]
        for (kb, nb), part in zip(blocks, flat.reshape(-1, BLOCK, BLOCK)):
            rows, columns = min(BLOCK, k - kb), min(BLOCK, n - nb)
            out[kb:kb + rows, nb:nb + columns] = part[:rows, :columns]
        return out


def float16(codes, exponent_bits):
    """16-bit floats with so many exponent bits, as IEEE 754 would have them; finite ones alone."""
    fraction_bits = 15 - exponent_bits
    magnitude = (codes & 0x7fff).astype(np.int64)
    exponent = magnitude >> fraction_bits
    fraction = magnitude & ((1 << fraction_bits) - 1)
    whole = np.where(exponent > 0, fraction + (1 << fraction_bits), fraction)
    scale = np.maximum(exponent, 1) - ((1 << (exponent_bits - 1)) - 1) - fraction_bits
    return np.where(codes & 0x8000, -1.0, 1.0) * whole * 2.0**scale


def rounded(weights, exponent_bits):
    """The nearest such float, of two the even one."""
    fraction_bits = 15 - exponent_bits
    bias = (1 << (exponent_bits - 1)) - 1
    exponent = np.floor(np.log2(np.maximum(np.abs(weights.astype(np.float64)), 2.0**-60)))
    unit = 2.0**(np.maximum(exponent, 1 - bias) - fraction_bits)
    return np.round(weights / unit) * unit


def book_of(kind, bits, weights):
    """The values of ISA.md's books, in float: the file's are these in fp16."""
    low, high = min(float(weights.min()), 0.0), max(float(weights.max()), 0.0)
    last = (1 << bits) - 1
    if kind == "LINEAR":
        step = (high - low) / last
        half_step = float(np.float16(step))
        half_low = float(np.float16(-round(-low / step) * step))
        values = [float(np.float16(half_low + float(np.float16(c * half_step))))
                  for c in range(last + 1)]
        values[int(np.argmin(np.abs(values)))] = 0.0
        return np.array(values)
    normal = statistics.NormalDist()
    first = normal.cdf(-2)
    middle, half = (low + high) / 2, (high - low) / 2
    values = [middle + half * normal.inv_cdf(first + i * (1 - 2 * first) / (last - 1)) / 2
              for i in range(last)]
    return np.array(sorted([0.0, *np.float16(np.float32(values)).astype(float)]))


def nearest(book, weights):
    return book[np.argmin(np.abs(weights.reshape(-1, 1).astype(np.float64) - book), axis=1)] \
        .reshape(weights.shape)


def weights_of(path):
    with open(path, "rb") as f:
        return {n.name: n.tensor() for n in graphdef.read_graph(f.read()) if n.op == "Const"}


def compile_model(model, path, folder, more, form="raw", unit="NPU64"):
    """(artifact, report, config) of one compile."""
    os.makedirs(folder, exist_ok=True)
    file = {"raw": "net.npu", "json": "net.json", "c_code": "net.h"}[form]
    config = os.path.join(folder, "config.yaml")
    shapes = {n: [1, *a.shape[1:]] for n, a in model.inputs.items()}
    with open(config, "w", encoding="utf-8") as f:
        f.write(CONFIG.format(unit=unit, model=os.path.abspath(path), form=form, file=file,
                              inputs="\n".join(f"  {n}: {s}" for n, s in shapes.items()),
                              output=model.output, more=more))
    if form == "c_code":
        harness.compile_header(config, folder, file)
    else:
        harness.npuc(config, "-o", folder)
    with open(os.path.join(folder, "report.json"), encoding="utf-8") as f:
        report = json.load(f)
    return os.path.join(folder, file), report, config


def simulated(model, artifact, folder):
    out = harness.simulate(artifact, model.inputs, folder, [model.output])[model.output]
    return out.reshape(ITEMS, -1)


def check_plain(model, path):
    """fp16: every model against float; the four artifacts of a compile give the same outputs."""
    with harness.scratch() as folder:
        artifact, report, config = compile_model(model, path, os.path.join(folder, "raw"), "")
        outputs = simulated(model, artifact, os.path.join(folder, "run"))
        reference = harness.simulate(config, model.inputs, os.path.join(folder, "ref"),
                                     [model.output], verb="reference")[model.output]
        reference = reference.reshape(ITEMS, -1)
        Npub(artifact)
        others = [os.path.join(folder, "raw", "net.npuc")]
        for form in ("json", "c_code"):
            others.append(compile_model(model, path, os.path.join(folder, form), "", form)[0])
        for other in others if model.name in DENSE else others[:1]:
            harness.check((simulated(model, other, os.path.join(folder, "other")) == outputs).all(),
                          f"{model.name}: {other} gives other outputs than the raw file")
    error = float(np.abs(outputs - reference).max())
    agreement = float((outputs.argmax(axis=1) == reference.argmax(axis=1)).mean())
    cycles = report["per_frame"]["cycles"]
    harness.figure(f"leo, {model.name}, fp16: {ITEMS} inputs, largest error against float "
                   f"{error:.5f}, same top-1 {agreement:.0%}; {cycles} cycles")
    largest = max(1.0, float(np.abs(reference).max()))
    harness.check(error <= model.largest_error[False] * largest, f"{model.name}: error {error}")
    harness.check(agreement >= model.agreement[False], f"{model.name}: agreement {agreement}")


def forward(model, matrices, weights):
    """The fully connected nets of arm_kws."""
    x = model.inputs["Reshape"].astype(np.float64)
    for matrix, bias in zip(matrices, ("fc1/b", "fc2/b", "fc3/b", "Variable")):
        x = x @ matrix + weights[bias]
        if bias != "Variable":
            x = np.maximum(x, 0)
    return models.softmax(x)


def check_weights(model, path, more, expected, label):
    """One compile of a fully connected net: its file's weights are `expected` of the model's, and
    the simulator multiplies by them."""
    weights = weights_of(path)
    with harness.scratch() as folder:
        artifact, report, _ = compile_model(model, path, folder, more)
        file = Npub(artifact)
        outputs = simulated(model, artifact, os.path.join(folder, "run"))
    matrices, parts = [], list(file.products())
    figures = {w["name"]: w for w in report["weights"]}
    for name in DENSE[model.name]:
        k, n = weights[name].shape
        stored = np.zeros((k, n))
        column = row = 0
        while row < k:  # parts of a weight that is too large for one command
            part = file.matrix(parts.pop(0))
            stored[row:row + part.shape[0], column:column + part.shape[1]] = part
            column += part.shape[1]
            if column == n:
                row, column = row + part.shape[0], 0
        wanted = expected(weights[name])
        harness.check(np.array_equal(stored, wanted) or
                      np.abs(stored - wanted).max() <= 2.0**-11 * np.abs(wanted).max(),
                      f"{model.name}, {label}: {name} is stored as other values than ISA.md says")
        share = float((stored == wanted).mean())
        harness.check(share > 0.99, f"{model.name}, {label}: {share:.1%} of {name} is as expected")
        errors = stored - weights[name]
        rms = float(np.sqrt((errors**2).mean()))
        harness.check(abs(figures[name]["rms_error"] - rms) <= 1e-6 * max(rms, 1e-9) + 1e-9,
                      f"{model.name}, {label}: report.json says rms "
                      f"{figures[name]['rms_error']} of {name}, NumPy {rms}")
        matrices.append(stored)
    harness.check(not parts, f"{model.name}: {len(parts)} products more than weights")
    error = float(np.abs(outputs - forward(model, matrices, weights)).max())
    float_error = float(np.abs(outputs - forward(model, [weights[n] for n in DENSE[model.name]],
                                                 weights)).max())
    size = report["sizes_bytes"]["weight_content"]
    rms = figures["fc1/W"]["rms_error"]
    harness.figure(f"leo, {model.name}, {label}: {size} bytes of weights, rms error of fc1 "
                   f"{rms:.2e}; largest error against NumPy with these weights {error:.5f}, "
                   f"against float {float_error:.5f}")
    harness.check(error <= LARGEST_ERROR, f"{model.name}, {label}: error {error}")
    return size, rms


def check_books(model, path):
    sizes = {}
    for kind in ("LINEAR", "GAUSSIAN"):
        for bits in range(4, 9):
            more = f"COMPRESS: true\nCOMPRESS_QUANT_BITS: {bits}\nCOMPRESS_TYPE: {kind}"
            sizes[kind, bits] = check_weights(
                model, path, more, lambda w, k=kind, b=bits: nearest(book_of(k, b, w), w),
                f"{kind} of {bits} bits")
    for kind in ("LINEAR", "GAUSSIAN"):
        for bits in range(4, 8):
            harness.check(sizes[kind, bits][0] < sizes[kind, bits + 1][0],
                          f"{model.name}: {bits} bits take no less memory than {bits + 1}")
            harness.check(sizes[kind, bits][1] > sizes[kind, bits + 1][1],
                          f"{model.name}: {bits} bits have no larger error than {bits + 1}")


def check_widths(model, path):
    for exponent in (3, 4, 6):
        more = f"FLOAT16: true\nFLOAT16_EXP_BITS: {exponent}"
        check_weights(model, path, more, lambda w, e=exponent: rounded(w, e),
                      f"FLOAT16 with {exponent} exponent bits")


def check_units(model, path):
    """A unit's multipliers are in the estimate; its commands are the same."""
    cycles, files = [], set()
    for unit, macs in (("NPU16", 16), ("NPU32", 32), ("NPU64", 64)):
        with harness.scratch() as folder:
            artifact, report, _ = compile_model(model, path, folder, "", unit=unit)
            harness.check(report["cycle_model"]["macs_per_cycle"] == macs, f"{unit}: {macs}")
            files.add(Npub(artifact).commands)
            cycles.append(report["per_frame"]["cycles"])
    harness.check(cycles[0] > cycles[1] > cycles[2] and len(files) == 1, f"units: {cycles}")
    harness.figure(f"leo, {model.name}: cycles on NPU16, NPU32, NPU64: {cycles}")


def check_vendor_like():
    """The nets rebuilt from published headers, some with states: LEO's bits are GRUS's."""
    folder = harness.shared("models", "vendor_like")
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".yaml"):
            continue
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            text = f.read().replace("MODEL_FILE: ", f"MODEL_FILE: {folder}/")
        outputs = {}
        with harness.scratch() as scratch:
            for core in ("GRUS", "LEO"):
                lines = [line for line in text.splitlines()
                         if not line.startswith(("CORENAME", "NPU_UNIT", "OUTPUT_TYPE",
                                                 "COMPRESS", "CONV2D_COMPRESS", "WEIGHT_CACHE"))]
                out = os.path.join(scratch, core)
                os.makedirs(out)
                config = os.path.join(out, "net.yaml")
                with open(config, "w", encoding="utf-8") as f:
                    f.write("\n".join([f"CORENAME: {core}", "NPU_UNIT: NPU32", *lines, ""]))
                harness.npuc(config, "-o", out)
                with open(os.path.join(out, "report.json"), encoding="utf-8") as f:
                    report = json.load(f)
                random = np.random.RandomState(7)
                inputs = {}
                for port in report["inputs"]:
                    shape = [int(d) for d in port["type"].split("[")[1].rstrip("]").split(",") if d]
                    inputs[port["name"]] = random.randn(*shape).astype(np.float32)
                names = [o["name"] for o in report["outputs"]]
                artifact = next(os.path.join(out, f) for f in os.listdir(out)
                                if f.endswith(".npuc"))
                outputs[core] = harness.simulate(artifact, inputs, os.path.join(out, "run"), names)
        for output, value in outputs["GRUS"].items():
            harness.check(np.array_equal(value, outputs["LEO"][output], equal_nan=True),
                          f"{name}: output {output} of LEO differs from GRUS's")
        harness.figure(f"leo, {name}: {len(outputs['LEO'])} outputs, the bits of GRUS")


def main(arguments):
    chosen = [m for m in models.models() if not arguments or m.name in arguments]
    harness.check(chosen, "no model is named so")
    for model in chosen:
        path = harness.shared("models", "tf", model.path)
        check_plain(model, path)
        if model.name in DENSE:
            check_books(model, path)
            check_widths(model, path)
        if model.name == "CNN_S":  # most of its cycles are multiply-adds
            check_units(model, path)
    if not arguments:
        check_vendor_like()
