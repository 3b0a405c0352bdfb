"""Two builds by different compilers give the same bytes: every artifact of nets on the float, the
fixed-point and the integer cores, quantized here in several ways, and of operators that front ends
take apart into several (an order of nodes that C++ leaves open shows there).

    same_bytes [OTHER]   OTHER: folder of the other build's programs (default build/dev/bin: clang,
                         with sanitizers)

Skipped where there is no other build, or one that is older than the compiler's sources.
"""

import os
import sys

import harness  # puts tests/models on the path, so first
import guide_nets
import onnx_backend
import onnxmodel
import quantizing
import recorded_nets
import tflite
import torch_nets

ITEMS = 24  # the other build may be slow
QUANTIZED = {"auto": {"calibration_strategy_for_activation": "auto", **quantizing.PER_CHANNEL},
             "wide": {"weight_bits": 16, "activation_bits": 16, "bias_bits": 48},
             "adaround": {"weight_bits": 4, "global_calibration": "adaround",
                          **quantizing.PER_CHANNEL},
             "mixed": {"weight_bits": 4, "mixed_precision_auto_search": "'1,0.01,L'"}}
# Recurrent layers and formulas, whose operators become several nodes each.
ONNX_CASES = ("elu", "gru_batchwise", "gru_defaults", "gru_with_initial_bias", "hardswish",
              "instancenorm_example", "leakyrelu", "lstm_batchwise", "lstm_with_peepholes", "mish",
              "prelu_example", "simple_rnn_batchwise", "softplus")
TFLITE_NETS = ("leaky_relu", "lstm", "lstm_time_major", "prelu", "unary_elu")
TORCH_NETS = ("net_gru_vad", "net_lstm_wake_word")
TFLITE_CONFIG = ("CORENAME: GRUS\nNPU_UNIT: NPU32\nFRAMEWORK: TFLITE\nMODEL_FILE: model.tflite\n"
                 "OUTPUT_TYPE: c_code\nOUTPUT_FILE: model.h\n")
RUN_TIME = ("x", "X")  # of an ONNX case; its other operands are weights
TIMEOUT_SECONDS = 300


def compare(config, folder, programs):
    """Compiles by both; the number of files, all equal."""
    written = []
    for i, program in enumerate(programs):
        out = os.path.join(folder, f"build{i}")
        harness.run(program, config, "-o", out, timeout=TIMEOUT_SECONDS)
        written.append(quantizing.artifacts(out))
    first, second = written
    harness.check(set(first) == set(second), f"{config}: {sorted(first)}, {sorted(second)}")
    for name, content in first.items():
        harness.check(content == second[name], f"{config}: {name} differs between the builds")
    return len(first)


def write(folder, files):
    os.makedirs(folder)
    for name, content in files.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(content)


def onnx_configs(folder):
    for name in ONNX_CASES:
        case = onnx_backend.Case(harness.shared("suites", "onnx_backend", "node", f"test_{name}"))
        fixed = {n: a for n, a in case.inputs.items() if n not in RUN_TIME}
        inside = os.path.join(folder, f"onnx_{name}")
        write(inside, {"model.onnx": onnxmodel.with_initializers(case.data, fixed),
                       "config.yaml": onnx_backend.config_of(list(case.expected)).encode()})
        yield os.path.join(inside, "config.yaml")


def tflite_configs(folder):
    nets = recorded_nets.read(os.path.join(tflite.RECORDED, "nets.tar.xz"))
    for name in TFLITE_NETS:
        inside = os.path.join(folder, f"tflite_{name}")
        write(inside, {"model.tflite": nets[name]["model.tflite"],
                       "config.yaml": TFLITE_CONFIG.encode()})
        yield os.path.join(inside, "config.yaml")


def torch_configs(folder):
    for name in TORCH_NETS:
        net, = torch_nets.read_nets(os.path.join(torch_nets.RECORDED, f"{name}.tar.xz"))
        inside = os.path.join(folder, name)
        os.makedirs(inside)
        net.unpack(inside)
        yield os.path.join(inside, "scripted.yaml")


def main(arguments):
    other = os.path.join(arguments[0] if arguments else
                         os.path.join(harness.ROOT, "build", "dev", "bin"), "npuc")
    if not os.access(other, os.X_OK):
        print(f"skipped: there is no {other}")
        sys.exit(harness.SKIPPED)
    sources = os.path.join(harness.ROOT, "compiler_core")
    newest = max(os.path.getmtime(os.path.join(folder, name))
                 for folder, _, names in os.walk(sources) for name in names
                 if not name.endswith(".md"))
    if os.path.getmtime(other) < newest:
        print(f"skipped: {other} is older than the sources; build it by cmake --build build/dev")
        sys.exit(harness.SKIPPED)
    programs = [harness.program("npuc"), other]
    files = nets = 0
    with harness.scratch() as folder:
        configs = [os.path.join(harness.SAMPLE, "config.yaml")]
        for net in guide_nets.guide_nets():
            model, config = (os.path.join(folder, f"{net.name}.{e}") for e in ("pb", "yaml"))
            with open(model, "wb") as f:
                f.write(net.graph.serialize())
            with open(config, "w", encoding="utf-8") as f:
                f.write(net.config(model, True) + "\nLAYER_ERROR_FRAMES: 3\n")
            configs.append(config)
        if os.path.isdir(harness.SHARED):
            net = quantizing.Net("kws", folder, ITEMS)
            configs += [net.config(tag, quant) for tag, quant in QUANTIZED.items()]
            configs += onnx_configs(folder)
        configs += [*tflite_configs(folder), *torch_configs(folder)]
        for i, config in enumerate(configs):
            out = os.path.join(folder, f"out{i}")
            os.makedirs(out)
            files += compare(config, out, programs)
            nets += 1
    harness.figure(f"same_bytes: {files} artifacts of {nets} compiles are the same bytes by "
                   f"{programs[0]} and {other}")
