"""Three cores give the bits of one, in fewer cycles.

    cores [--nets N] [NAME...]

Compiles each net for X2_1204 and for X2_1204MP3, which has three such cores, with CORES 1 and 2,
OPTIMIZE: size and plain weights, too; runs all on the same seeded inputs and demands equal outputs,
byte for byte: the published int8 nets, MobileNetV1-0.25 with random weights, and random quantized
nets. The cycles must fall to the stated share of one core's. In the headers' command
streams, read here after target/INTEGER_ISA.md, the commands of each phase are put into another
order between the cores: outputs must stay. Streams whose barriers are taken out, or whose commands
are of a core that there is not, must be refused. That the nets are right at all is other suites'.
"""

import argparse
import os
import re

import numpy as np

import graphdef
import harness
import quantized_nets
import quantized_writers
from coded_weights import array
from dead_channels import outputs_of, random_inputs, report_of, type_of

SEED = 27
# name: (inputs, most of one core's cycles). The goal is 0.4 (tests/bench/RESULTS.md). Each core
# reads a layer's weights or its map anew, which is most of what kws moves.
NETS = {"vww_96_int8": (20, 0.4), "resnet8_int8": (20, 0.4), "kws_ref_model_int8": (100, 0.48),
        "ad01_int8": (100, 0.37)}
MOBILENET_SHARE = 0.4
CORE_SHIFT, BARRIER = 10, 1 << 13
VARIANTS = {"one": ("X2_1204", ""), "three": ("X2_1204MP3", ""),
            "one_of_three": ("X2_1204MP3", "CORES: 1\n"), "two": ("X2_1204MP3", "CORES: 2\n"),
            "size": ("X2_1204MP3", "OPTIMIZE: size\n"),
            "plain": ("X2_1204MP3", "CODE_WEIGHTS: false\n"),
            "apart": ("X2_1204MP3", "MEMORY_PLAN: compatible\n")}


def build(config, folder, names=tuple(VARIANTS)):
    """The folder of each variant's compile, by name; None where the net is refused."""
    folders = {}
    for name in names:
        core, lines = VARIANTS[name]
        folders[name] = os.path.join(folder, name)
        os.makedirs(folders[name])
        path = os.path.join(folders[name], "net.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"CORENAME: {core}\n{config}{lines}")
        code, said = harness.attempt(path, "-o", folders[name], timeout=120)
        if code == 1 and name == names[0]:
            return None
        harness.check(code == 0, f"{name}: {said}")
    return folders


def commands_of(stream):
    """The commands of a stream, as bytes."""
    commands, at = [], 0
    while at < len(stream):
        end = at + 4 + 4 * (int.from_bytes(stream[at + 2:at + 4], "little"))
        commands.append(bytearray(stream[at:end]))
        at = end
    return commands


def header_of(command):
    return int.from_bytes(command[:4], "little")


def set_header(command, bits, value):
    command[:4] = (header_of(command) & ~bits | value).to_bytes(4, "little")


def core_of(command):
    return header_of(command) >> CORE_SHIFT & 7


def phases_of(commands):
    phases = []
    for command in commands:
        if not phases or header_of(command) & BARRIER:
            phases.append([])
        phases[-1].append(command)
    return phases


def write_stream(source, phases, path):
    """The header `source` with other commands: barriers are where phases begin."""
    commands = [command for phase in phases for command in phase]
    for command in commands:
        set_header(command, BARRIER | 1 << 8, 0)
    for phase in phases[1:]:
        set_header(phase[0], BARRIER, BARRIER)
    set_header(commands[-1], 1 << 8, 1 << 8)
    body = ",".join(f"0x{byte:02x}" for byte in b"".join(commands))
    with open(source, encoding="utf-8") as f:
        text = f.read()
    text, count = re.subn(r"(cmd_content\[\d+\][^{]*\{)[^}]*\}", rf"\g<1>{body}}}", text)
    harness.check(count == 1, f"{source} has no commands")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def run_header(path, inputs):
    out = path + ".out"
    arguments = [a for name, file in inputs.items() for a in ("--input", f"{name}={file}")]
    code, said = harness.attempt("run", path, "--raw", *arguments, "--output-dir", out, timeout=120)
    if code != 0:
        return None, said
    found = {}
    for name in sorted(os.listdir(out)):
        with open(os.path.join(out, name), "rb") as f:
            found[name] = f.read()
    return found, said


def check_streams(name, folder, inputs, expected):
    """Other orders between cores give the same; races and cores that are not there are refused."""
    header = os.path.join(folder, "net.h")
    with open(header, encoding="utf-8") as f:
        stream = array(f.read(), "cmd_content")
    phases = phases_of(commands_of(stream))
    shared = [i for i, phase in enumerate(phases) if len({core_of(c) for c in phase}) > 1]
    if not shared:
        return
    turned = [sorted(phase, key=core_of, reverse=True) for phase in phases]
    path = os.path.join(folder, "turned.h")
    write_stream(header, turned, path)
    found, said = run_header(path, inputs)
    harness.check(found == expected, f"{name}: the order between cores matters: {said}")
    for i in shared:
        if i + 1 == len(phases):
            continue
        phases = phases_of(commands_of(stream))
        joined = phases[:i] + [phases[i] + phases[i + 1]] + phases[i + 2:]
        write_stream(header, joined, path)
        found, said = run_header(path, inputs)
        harness.check(found is None and "run side by side" in said or found == expected,
                      f"{name}: without the barrier of phase {i + 1}: {said}")
        break
    phases = phases_of(commands_of(stream))
    set_header(phases[-1][-1], 7 << CORE_SHIFT, 3 << CORE_SHIFT)
    write_stream(header, phases, path)
    found, said = run_header(path, inputs)
    harness.check(found is None and "it is of core 3; X2_1204MP3 has 3" in said, f"{name}: {said}")


def check_report(name, folder):
    """report.json counts what the stream and `npuc run --profile` have."""
    report = report_of(folder)
    frame = report["per_frame"]
    with open(os.path.join(folder, "net.h"), encoding="utf-8") as f:
        commands = commands_of(array(f.read(), "cmd_content"))
    harness.check(frame["commands"] == len(commands), f"{name}: {frame['commands']} commands")
    harness.check(frame["phases"] == len(phases_of(commands)), f"{name}: phases")
    harness.check([c["core"] for c in frame["cores"]] == sorted({core_of(c) for c in commands}),
                  f"{name}: {frame['cores']}")
    harness.check(all(c["busy_cycles"] <= frame["cycles"] for c in frame["cores"]), f"{name}: busy")
    harness.check(sum(n["cycles"] for n in report["nodes"]) == frame["cycles"], f"{name}: sum")
    listing = harness.npuc("dis", os.path.join(folder, "net.h")).stdout
    found = [int(core) for core in re.findall(r"^\d{6}  .* core=(\d)", listing, re.MULTILINE)]
    harness.check(found == [core_of(c) for c in commands], f"{name}: npuc dis shows other cores")
    return frame


def compare(name, config, folder, items, most):
    folders = build(config, folder)
    reports = {key: report_of(path) for key, path in folders.items()}
    inputs = random_inputs(reports["one"], items, folder, True)
    outputs = {key: outputs_of(path, inputs, True) for key, path in folders.items()}
    for key, found in outputs.items():
        harness.check(found == outputs["one"], f"{name}: {key} gives other outputs")
    cycles = {key: report["per_frame"]["cycles"] for key, report in reports.items()}
    harness.check(cycles["one_of_three"] == cycles["one"], f"{name}: CORES: 1 is {cycles}")
    harness.check(cycles["three"] <= cycles["two"] <= cycles["one"], f"{name}: {cycles}")
    frame = check_report(name, folders["three"])
    check_report(name, folders["plain"])
    check_streams(name, folders["three"], inputs, outputs["one"])
    check_streams(name, folders["plain"], inputs, outputs["one"])
    share = cycles["three"] / cycles["one"]
    ram = {key: sum(r["sizes_bytes"][k] for k in ("data_content", "input", "output"))
           for key, r in reports.items()}
    busy = ", ".join(f"{100 * core['utilisation']:.0f} %" for core in frame["cores"])
    harness.figure(f"{name}, three cores: {cycles['three']} cycles of {cycles['one']} "
                   f"({share:.3f}), two {cycles['two'] / cycles['one']:.3f}, OPTIMIZE size "
                   f"{cycles['size'] / cycles['one']:.3f}; busy {busy}; RAM {ram['three']}, one "
                   f"core {ram['one']}; outputs of {items} inputs equal in {len(folders)} builds")
    harness.check(share <= most, f"{name}: {share:.3f} of one core's cycles, at most {most}")


def published(name, items, most):
    model = harness.shared("models", "tflite", "mlperf_tiny", f"{name}.tflite")
    with harness.scratch() as folder:
        compare(name, f"FRAMEWORK: TFLITE\nMODEL_FILE: {model}\nOUTPUT_FILE: net.h\n", folder,
                items, most)


def mobilenet(side):
    """MobileNetV1-0.25 with random weights, as a TensorFlow graph."""
    random = np.random.default_rng(SEED)
    graph = graphdef.Graph()
    graph.placeholder("x", [1, side, side, 3])
    attrs = {"T": graphdef.DType(np.float32)}
    last = "x"

    def layer(name, op, shape, stride):
        nonlocal last
        fan = shape[0] * shape[1] * (1 if op.startswith("Depth") else shape[2])
        channels = shape[2] if op.startswith("Depth") else shape[3]
        graph.const(f"{name}/w", random.normal(0, (2 / fan) ** 0.5, shape).astype(np.float32))
        graph.const(f"{name}/b", random.normal(0, 0.1, channels).astype(np.float32))
        graph.node(op, f"{name}/c", [last, f"{name}/w"],
                   {**attrs, "strides": [1, stride, stride, 1], "padding": b"SAME",
                    "data_format": b"NHWC"})
        graph.node("BiasAdd", f"{name}/s", [f"{name}/c", f"{name}/b"], attrs)
        graph.node("Relu6", f"{name}/r", [f"{name}/s"], attrs)
        last = f"{name}/r"

    layer("conv", "Conv2D", (3, 3, 3, 8), 2)
    channels = 8
    for i, (out, stride) in enumerate([(16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2)] +
                                      [(128, 1)] * 5 + [(256, 2), (256, 1)]):
        layer(f"dw{i}", "DepthwiseConv2dNative", (3, 3, channels, 1), stride)
        layer(f"pw{i}", "Conv2D", (1, 1, channels, out), 1)
        channels = out
    graph.const("axes", np.array([1, 2], np.int32))
    graph.node("Mean", "mean", [last, "axes"],
               {**attrs, "Tidx": graphdef.DType(np.int32), "keep_dims": False})
    graph.const("fc/w", random.normal(0, 0.06, (256, 1000)).astype(np.float32))
    graph.node("MatMul", "y", ["mean", "fc/w"], attrs)
    return graph.serialize()


def mobilenets():
    for side in (224, 96):
        with harness.scratch() as folder:
            model = os.path.join(folder, "net.pb")
            with open(model, "wb") as f:
                f.write(mobilenet(side))
            samples = os.path.join(folder, "samples.npy")
            np.save(samples, np.random.default_rng(SEED).normal(0, 1, (2, side, side, 3))
                    .astype(np.float32))
            config = (f"FRAMEWORK: TF\nMODEL_FILE: {model}\nOUTPUT_FILE: net.h\n"
                      f"INPUT_OPS: {{x: [1, {side}, {side}, 3]}}\nOUTPUT_OPS: [y]\n"
                      f"QUANT: {{preset: fast, calibration_data: {samples}}}\n")
            compare(f"MobileNetV1-0.25 of {side} x {side}", config, folder, 2,
                    MOBILENET_SHARE if side == 224 else 0.5)


def listing_of(folder):
    """What `npuc dis` says of the commands, below the line with the model's name and time."""
    return harness.npuc("dis", os.path.join(folder, "net.npuc")).stdout.splitlines()[1:]


def manual_tiles():
    """featuremap_* and CORES: what is asked for is done and said."""
    model = harness.shared("models", "tflite", "mlperf_tiny", "resnet8_int8.tflite")
    base = f"FRAMEWORK: TFLITE\nMODEL_FILE: {model}\nOUTPUT_FILE: net.h\n"
    with harness.scratch() as folder:

        def compiled(name, core, lines):
            inside = os.path.join(folder, name)
            os.makedirs(inside)
            path = os.path.join(inside, "net.yaml")
            with open(path, "w", encoding="utf-8") as f:
                f.write(f"CORENAME: {core}\n{base}{lines}")
            return inside, *harness.attempt(path, "-o", inside, timeout=60)

        plain, _, _ = compiled("plain", "X2_1204MP3", "")
        tiled, code, said = compiled(
            "tiled", "X2_1204MP3", "QUANT: {featuremap_tiling_param: '[(1,2,4,1)]'}\n")
        harness.check(code == 0 and "2 have as many parts as featuremap_tiling_param" in said, said)
        parts = [node.get("parts") for node in report_of(tiled)["nodes"]]
        harness.check(parts[1:3] == [4, 4], f"parts {parts}")
        all_tiled, code, said = compiled(
            "all", "X2_1204MP3", "QUANT: {featuremap_splits_item_y: 2, "
            "featuremap_splits_overlap_rate: 20}\n")
        harness.check(code == 0 and "and not " in said, said)
        inputs = random_inputs(report_of(plain), 5, folder, True)
        expected = outputs_of(plain, inputs, True)
        for other in (tiled, all_tiled):
            harness.check(outputs_of(other, inputs, True) == expected, "tiles change outputs")
        _, code, said = compiled("alone", "X2_1204",
                                 "QUANT: {featuremap_tiling_param: '[(1,2,4,1)]'}\n")
        harness.check(code == 0 and "featuremap_tiling_param in QUANT changes nothing: core "
                      "X2_1204 is one core" in said, said)
        # One core is given the bytes that it has without the keys.
        for i, lines in enumerate(("featuremap_tiling_param: '[(1,2,4,1)]'",
                                   "featuremap_splits_item_y: 2", "featuremap_splits_item_x: 2",
                                   "featuremap_splits_overlap_rate: 20")):
            for core, more in (("X2_1204", ""), ("X2_1204MP3", "CORES: 1\n")):
                alone, code, said = compiled(f"alone_{core}_{i}", core,
                                             f"{more}QUANT: {{{lines}}}\n")
                bare, _, _ = compiled(f"bare_{core}_{i}", core, more)
                key = lines.split(":")[0]
                harness.check(code == 0 and f"{key} in QUANT changes nothing" in said, said)
                harness.check(listing_of(alone) == listing_of(bare),
                              f"{core}: {key} changes nothing, and the commands differ")
        _, code, said = compiled("columns", "X2_1204MP3",
                                 "QUANT: {featuremap_tiling_param: '[(1,2,4,2)]'}\n")
        harness.check(code == 0 and "parts by columns are not made" in said, said)
        harness.check("QUANT changes nothing" not in said, said)
        _, code, said = compiled("many", "X2_1204MP3", "CORES: 4\n")
        harness.check(code == 1 and "CORES is 4; core X2_1204MP3 has 3" in said, said)


def random_nets(count):
    """How many of so many seeds' nets compile, and how many commands of them are on other cores
    than the first."""
    compiled = elsewhere = 0
    forms = list(quantized_nets.FORMS)
    with harness.scratch() as folder:
        builders = [quantized_nets.Builder(s, forms[s % len(forms)]) for s in range(count)]
        for builder, (model, _) in zip(builders, quantized_writers.write(builders, folder)):
            framework = "TFLITE" if builder.is_tflite else "ONNX"
            config = f"FRAMEWORK: {framework}\nMODEL_FILE: {model}\nOUTPUT_FILE: net.h\n"
            folders = build(config, os.path.join(folder, f"seed_{builder.seed}"),
                            ("one", "three", "size"))
            if folders is None:
                continue  # refused, which random_quantized judges
            inside = folders["one"]
            inputs = {}
            for port in report_of(inside)["inputs"]:
                data = next(t.data for t in builder.inputs if t.name == port["name"])
                inputs[port["name"]] = os.path.join(inside, port["name"] + ".npy")
                np.save(inputs[port["name"]], data.astype(type_of(port)[0]))
            expected = outputs_of(inside, inputs, True)
            name = f"seed {builder.seed}"
            for key in ("three", "size"):
                harness.check(outputs_of(folders[key], inputs, True) == expected,
                              f"{name}: {key} differs")
            harness.check(check_report(name, folders["three"])["cycles"] <=
                          report_of(inside)["per_frame"]["cycles"], f"{name}: more cycles")
            check_streams(name, folders["three"], inputs, expected)
            with open(os.path.join(folders["three"], "net.h"), encoding="utf-8") as f:
                commands = commands_of(array(f.read(), "cmd_content"))
            compiled, elsewhere = compiled + 1, elsewhere + sum(core_of(c) > 0 for c in commands)
    return compiled, elsewhere


def main(arguments):
    parser = argparse.ArgumentParser(prog="run_e2e.py cores")
    parser.add_argument("--nets", type=int, default=60)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args(arguments)
    for name, (items, most) in NETS.items():
        if not options.names or name in options.names:
            published(name, items, most)
    if options.names:
        return
    mobilenets()
    manual_tiles()
    compiled, elsewhere = random_nets(options.nets)
    harness.figure(f"three cores: {compiled} random quantized nets equal, {elsewhere} of their "
                   "commands on the second and third core")
    harness.check(compiled > options.nets // 2 and elsewhere > compiled,
                  f"{compiled} nets, {elsewhere} commands")
