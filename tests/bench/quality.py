#!/usr/bin/python3
"""RAM, bytes, commands and cycles of the programs that npuc makes of every model at hand.

    quality.py [--json FILE] [--against FILE [--page FILE]] [NAME...]
    quality.py --reference

Compiles each model of ../shared/models on GRUS and on Z2_0901 (those of vendor_like by their own
configs), and reads report.json: RAM (data and the structs of inputs and outputs), bytes of commands
and weights, commands, estimated cycles, elements, multiply-adds. What a core refuses is left out.
--json keeps the figures. --against prints a table of every net whose figures differ from kept ones,
the totals of those compiled both times, and what got worse, which is exit 1; --page writes that as
Markdown, and behind it what --reference prints: the published int8 nets on REF128, a core of 128
multipliers, beside what Arm's Vela 5.1.0 reports for an Ethos-U55-128 (accelerator config
ethos-u55-128, Sram_Only; recorded here, since Vela is not run), and by OPTIMIZE speed and size.
Figures are counted, not timed: they are the same on every machine. Environment: NPUC_BIN_DIR
(default build/bin), NPUC_SHARED (default ../shared; 77 where it is missing).
"""

import argparse
import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path += [os.path.join(ROOT, "tests", "models"), os.path.join(ROOT, "tests", "e2e")]
import harness  # noqa: E402
import models  # noqa: E402
import wild  # noqa: E402

CORES = ("GRUS", "Z2_0901")
FIGURES = ("ram", "flash", "commands", "cycles", "elements", "macs")
FRAMEWORKS = {".tflite": "TFLITE", ".onnx": "ONNX", ".pt": "PT", ".ptl": "PT", ".jit": "PT"}
TIMEOUT_SECONDS = 300
HEAD = """# What npuc makes of the models, before and after

Written by `quality.py --against FILE --page FILE [NAME...]`; FILE holds the figures of an earlier
build. RAM is data and the structs of inputs and outputs. Only nets whose figures differ have a
line. The earlier build is 333aac5, of before QUALITY's goals were set; what it refuses has no line.
Where cycles of the same integer commands rise, the estimate changed: the cores state an array of
multipliers now (`array` in `compiler_core/target/README.md`), and before all were busy. They fall
by up to 64 a command where it is fetched while the one before it runs (decision 17). Bytes rise
where weights of uint8 less their zero point need 9 bits: they are exact now, in 16.
"""
REFERENCE_HEAD = """## Beside Vela

The published int8 nets on REF128 (`compiler_core/target/README.md`), and what Arm's Vela 5.1.0
reports for an Ethos-U55-128. Cycles are estimates on both sides, by models that differ: utilisation
says what the arrays leave idle, not which chip is faster. Dead channels are left out here, so that
multiply-adds of vww are half of Vela's.
"""
# Vela's report of a net: its SRAM, optimised for performance and for size, bytes of flash, and
# the share of its multipliers' cycles in use, percent (None: not recorded).
VELA = {"kws_ref_model_int8": (16000, 16000, 31056, 23.8),
        "resnet8_int8": (49152, 35840, 79200, 51.1),
        "vww_96_int8": (73728, 49152, 75984, 27.8),
        "ad01_int8": (768, 768, 201184, None)}


def simple_config(path, core):
    framework = FRAMEWORKS[os.path.splitext(path)[1]]
    return f"CORENAME: {core}\nFRAMEWORK: {framework}\nMODEL_FILE: {path}\nOUTPUT_FILE: net.h\n"


def tf_configs(folder):
    for model in models.models():
        path = os.path.join(folder, "tf", model.path)
        yield f"tf/{model.name}", "GRUS", models.config_of(model, path, True)


def wild_configs(scratch):
    root = harness.shared("models", "wild")
    with open(os.path.join(root, "SOURCES.csv"), encoding="utf-8", newline="") as f:
        rows = list(wild.csv.DictReader(f))
    for row in rows:
        model = wild.Model(root, row)
        for core, run in (("GRUS", "GRUS"), ("Z2_0901", "X2_1204")):
            inside = os.path.join(scratch, f"{model.name}_{core}")
            os.makedirs(inside)
            with open(wild.config_of(model, run, inside), encoding="utf-8") as f:
                yield f"wild/{model.name}", core, f.read().replace("X2_1204", core)


def vendor_configs(folder):
    inside = os.path.join(folder, "vendor_like")
    for name in sorted(os.listdir(inside)):
        if not name.endswith(".yaml"):
            continue
        with open(os.path.join(inside, name), encoding="utf-8") as f:
            text = f.read().replace("MODEL_FILE: ", f"MODEL_FILE: {inside}/")
        yield f"vendor_like/{name[:-5]}", "GRUS", text


def tflite_configs(folder):
    for below, _, files in sorted(os.walk(os.path.join(folder, "tflite"))):
        for name in sorted(files):
            path = os.path.join(below, name)
            for core in CORES:
                yield f"tflite/{name[:-7]}", core, simple_config(path, core)


def subjects(scratch):
    """(name, core, config) of every model, each on every core that may take it."""
    folder = harness.shared("models")
    yield from tf_configs(folder)
    yield from tflite_configs(folder)
    yield from vendor_configs(folder)
    yield from wild_configs(scratch)


def measure(config, folder):
    """The figures of one compile; None where it is refused."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "quality.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(config)
    code, said = harness.attempt(path, "-o", os.path.join(folder, "out"), timeout=TIMEOUT_SECONDS)
    if code == 1:
        return None
    harness.check(code == 0, f"{folder}: exit {code}: {said[-500:]}")
    with open(os.path.join(folder, "out", "report.json"), encoding="utf-8") as f:
        report = json.load(f)
    sizes, frame = report["sizes_bytes"], report["per_frame"]
    return {"ram": sizes["data_content"] + sizes["input"] + sizes["output"],
            "flash": sizes["cmd_content"] + sizes["weight_content"],
            "commands": frame["commands"], "cycles": frame["cycles"],
            "elements": frame["elements"], "macs": frame["macs"]}


def measure_all(names):
    found = {}
    with harness.scratch() as scratch:
        for i, (name, core, config) in enumerate(subjects(scratch)):
            if names and not any(n in name for n in names):
                continue
            figures = measure(config, os.path.join(scratch, str(i)))
            if figures is not None:
                found[f"{name} {core}"] = figures
    return found


def change(before, after):
    return f"{after:,}" if before == after else f"{before:,} -> {after:,}"


def table(before, after):
    """Lines of Markdown, and what got worse."""
    both = sorted(set(before) & set(after))
    differ = [n for n in both if before[n] != after[n]]
    lines = ["| net | RAM | bytes of commands and weights | commands | cycles | elements | "
             "multiply-adds |", "|---|---|---|---|---|---|---|"]
    for name in differ:
        cells = [change(before[name][k], after[name][k]) for k in FIGURES]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    sums = [change(sum(before[n][k] for n in both), sum(after[n][k] for n in both))
            for k in FIGURES]
    lines.append(f"| all {len(both)} | {' | '.join(sums)} |")
    worse = [f"{n}: {k} {change(before[n][k], after[n][k])}" for n in differ for k in FIGURES
             if after[n][k] > before[n][k]]
    worse += [f"{n}: refused now" for n in sorted(set(before) - set(after))]
    return lines, worse


def reference():
    """Lines of Markdown: the nets of VELA on REF128 and by Vela."""
    lines = ["| net | RAM | Vela: performance / size | bytes of commands and weights | Vela | "
             "cycles | utilisation | Vela |", "|---|---|---|---|---|---|---|---|"]
    for name, (fast, small, flash, percent) in VELA.items():
        path = harness.shared("models", "tflite", "mlperf_tiny", f"{name}.tflite")
        with harness.scratch() as folder:
            found = measure(simple_config(path, "REF128"), folder)
            with open(os.path.join(folder, "out", "report.json"), encoding="utf-8") as f:
                share = json.load(f)["per_frame"]["utilisation"]
        lines.append(f"| {name} | {found['ram']:,} | {fast:,} / {small:,} | {found['flash']:,} | "
                     f"{flash:,} | {found['cycles']:,} | {100 * share:.1f} % | "
                     f"{'' if percent is None else f'{percent} %'} |")
    return lines


SIZE_HEAD = """## OPTIMIZE: size

The published int8 nets with layers in stripes of rows, beside Vela optimising for size. SRAM_LIMIT
is what the design aimed at. Multiply-adds grow where stripes compute rows twice; outputs are the
same bits.
"""
LIMITS = {"resnet8_int8": 20480, "vww_96_int8": 28672}


def by_size():
    """Lines of Markdown: the nets of VELA by speed, by size, and within LIMITS."""
    lines = ["| net | core | settings | RAM | Vela | cycles | multiply-adds | commands |",
             "|---|---|---|---|---|---|---|---|"]
    for name, (_, small, _, _) in VELA.items():
        path = harness.shared("models", "tflite", "mlperf_tiny", f"{name}.tflite")
        for core in ("REF128", "Z2_0901"):
            plain = None
            settings = ["OPTIMIZE: speed", "OPTIMIZE: size"]
            if name in LIMITS:
                settings.append(f"OPTIMIZE: size\nSRAM_LIMIT: {LIMITS[name]}")
            for keys in settings:
                with harness.scratch() as folder:
                    found = measure(simple_config(path, core) + keys + "\n", folder)
                plain = plain or found
                more = 100 * (found["cycles"] / plain["cycles"] - 1)
                cells = [name, core, keys.replace("\n", ", "), f"{found['ram']:,}", f"{small:,}",
                         f"{found['cycles']:,} (+{more:.1f} %)", f"{found['macs']:,}",
                         f"{found['commands']:,}"]
                lines.append(f"| {' | '.join(cells)} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--against", metavar="FILE")
    parser.add_argument("--page", metavar="FILE")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--reference", action="store_true")
    arguments = parser.parse_args()
    if arguments.reference:
        print("\n".join([*reference(), "", SIZE_HEAD, *by_size()]))
        return 0
    after = measure_all(arguments.names)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as f:
            json.dump(after, f, indent=0, sort_keys=True)
            f.write("\n")
    if not arguments.against:
        for name, figures in sorted(after.items()):
            print(name, *(f"{k}={figures[k]:,}" for k in FIGURES))
        return 0
    with open(arguments.against, encoding="utf-8") as f:
        before = json.load(f)
    if arguments.names:
        before = {n: v for n, v in before.items() if n in after}
    lines, worse = table(before, after)
    print("\n".join(lines))
    for line in worse:
        print(f"WORSE: {line}")
    if arguments.page:
        with open(arguments.page, "w", encoding="utf-8") as f:
            worse_lines = [f"Worse: {line}.\n" for line in worse]
            f.write("\n".join([HEAD, *lines, "", *worse_lines, REFERENCE_HEAD, *reference(), "",
                               SIZE_HEAD, *by_size()])
                    + "\n")
    return 1 if worse else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except harness.Failure as error:
        sys.exit(f"FAILED: {error}")
