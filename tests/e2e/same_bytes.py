"""Two builds by different compilers give the same bytes: every artifact of nets on the float, the
fixed-point and the integer cores, quantized here in several ways.

    same_bytes [OTHER]   OTHER: folder of the other build's programs (default build/dev/bin: clang,
                         with sanitizers)

Skipped where there is no other build, or one that is older than the compiler's sources.
"""

import os
import sys

import harness  # puts tests/models on the path, so first
import guide_nets
import quantizing

ITEMS = 24  # the other build may be slow
QUANTIZED = {"auto": {"calibration_strategy_for_activation": "auto", **quantizing.PER_CHANNEL},
             "wide": {"weight_bits": 16, "activation_bits": 16, "bias_bits": 48},
             "adaround": {"weight_bits": 4, "global_calibration": "adaround",
                          **quantizing.PER_CHANNEL},
             "mixed": {"weight_bits": 4, "mixed_precision_auto_search": "'1,0.01,L'"}}
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
        for i, config in enumerate(configs):
            out = os.path.join(folder, f"out{i}")
            os.makedirs(out)
            files += compare(config, out, programs)
            nets += 1
    harness.figure(f"same_bytes: {files} artifacts of {nets} compiles are the same bytes by "
                   f"{programs[0]} and {other}")
