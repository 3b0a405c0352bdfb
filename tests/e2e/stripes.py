"""Layers in stripes of rows give the bits of layers computed whole, in less memory.

    stripes [--nets N] [--items N] [NAME...]

Compiles each net by OPTIMIZE speed and size and with limits of memory (SRAM_LIMIT), runs all on the
same seeded inputs and demands equal outputs, byte for byte: the published int8 nets, two of which
must fall below what was computed by other means, and random quantized nets of tall maps that
branch. A limit between what was reached and what whole layers take must be kept for no more cycles.
One below the bound that the compiler states is refused, with the least that was found. That the
random nets' operators are right at all is random_quantized's.
"""

import argparse
import os
import re

import numpy as np

import harness
import quantized_nets
import quantized_writers
from dead_channels import outputs_of, random_inputs, report_of, type_of
from row_plans import ram_of

# name: (core, most bytes of memory, most percent of further cycles); cores: REF128 is what the
# bytes were computed for (QUALITY.md).
NETS = {"resnet8_int8": (("REF128", 20480, 10), ("Z2_0901", 20480, 10)),
        "vww_96_int8": (("REF128", 28672, 10), ("Z2_0901", 28672, 10)),
        "kws_ref_model_int8": (("Z2_0901", 8640, 10),),
        "ad01_int8": (("Z2_0901", 768, 0),)}
# With these limits: name: (core, bytes, most percent of further cycles)
LIMITS = {"resnet8_int8": ("REF128", 20480, 5.5), "vww_96_int8": ("REF128", 28672, 1)}
REFUSED = re.compile(r"the least found is (\d+) bytes .* in less than (\d+); "
                     r"set SRAM_LIMIT to \1 or more")


KINDS = (["conv"] * 5 + ["depthwise"] * 3 + ["binary"] * 4 + ["pool", "function", "relu"] * 2 +
         ["requantize", "concat", "pad", "resize", "mean", "reshape", "transpose"])


class TallNet(quantized_nets.Builder):
    """A net of maps with many rows, which branch and join: layers in which stripes save memory."""

    def add_input(self):
        h, w, c = self.number(10, 40), self.number(2, 6), self.number(1, 4)
        scale = self.new_scale(-self.rng.random(), self.rng.random())
        shape = [1, h, w, c] if self.is_tflite else [1, c, h, w]
        tensor = quantized_nets.Tensor(f"input_{len(self.inputs)}",
                                       self.random_integers(shape, scale.dtype), scale)
        self.tensors.append(tensor)
        self.inputs.append(tensor)
        return tensor

    def grow_net(self):
        for _ in range(self.pick((1, 1, 1, 2))):
            self.add_input()
        for _ in range(self.number(3, 10)):
            self.grow(KINDS)
        if self.chance(0.5):
            self.grow(["mean"])

    def operand(self, fits=lambda t: True):
        """One of the newest, so that maps die."""
        found = [t for t in self.tensors[-3:] if fits(t) and not t.loose and not t.constant]
        return (found[-1] if self.chance(0.7) else self.pick(found)) if found else None

    def finish(self):
        """One output, of the last operator that is not loose, and what it needs."""
        made = [op for op in self.ops if not op.outputs[0].loose] or self.ops
        self.outputs = [made[-1].outputs[0]] if made else []
        needed, ops = {id(t) for t in self.outputs}, []
        for op in reversed(self.ops):
            if any(id(t) in needed for t in op.outputs):
                ops.append(op)
                needed |= {id(t) for t in op.inputs}
        self.ops = ops[::-1]
        self.inputs = [t for t in self.inputs if id(t) in needed]

    def window(self, sizes, kernel, dilations=True):
        """Mostly of stride 1, so that the rows last for several layers."""
        found = super().window(sizes, kernel, dilations)
        if found is not None and max(found["stride"]) > 1 and self.chance(0.7):
            return None
        return found


def build(config, lines, folder):
    """The folder of a compile, or None and what it said where it was refused."""
    os.makedirs(folder)
    path = os.path.join(folder, "net.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(config + lines)
    code, said = harness.attempt(path, "-o", folder, timeout=120)
    harness.check(code in (0, 1), f"exit {code}: {said}")
    return (folder if code == 0 else None), said


def more_percent(report):
    stripes = report["memory_plan"]["stripes"]
    harness.check(stripes["cycles"] == report["per_frame"]["cycles"], "cycles of another program")
    return 100 * (stripes["cycles"] / stripes["cycles_before"] - 1)


def describe(report):
    stripes = report["memory_plan"]["stripes"]
    chains = "; ".join(f"{c['layers']} layers in {c['stripes']} stripes" for c in stripes["chains"])
    return (f"{ram_of(report)} bytes of memory, cycles +{more_percent(report):.1f} %, "
            f"multiply-adds {stripes['macs_before']} -> {stripes['macs']} ({chains})")


def check_limits(name, config, speed, least, folder):
    """A limit is kept with the same bits and no more cycles than a smaller one; an impossible one
    is refused."""
    sized = report_of(least)
    middle = (ram_of(report_of(speed)) + ram_of(sized)) // 2
    inside, said = build(config, f"OPTIMIZE: size\nSRAM_LIMIT: {middle}\n",
                         os.path.join(folder, "middle"))
    harness.check(inside is not None, f"{name}: {said}")
    report = report_of(inside)
    harness.check(ram_of(report) <= middle, f"{name}: {ram_of(report)} bytes, limit {middle}")
    harness.check(report["per_frame"]["cycles"] <= sized["per_frame"]["cycles"],
                  f"{name}: a limit of {middle} costs more cycles than less memory")
    refused, said = build(config, "OPTIMIZE: size\nSRAM_LIMIT: 16\n", os.path.join(folder, "none"))
    match = REFUSED.search(said)
    harness.check(refused is None and match is not None, f"{name}: {said}")
    found, bound = int(match[1]), int(match[2])
    harness.check(16 < bound <= found, f"{name}: {said}")
    again, said = build(config, f"OPTIMIZE: size\nSRAM_LIMIT: {found}\n",
                        os.path.join(folder, "found"))
    harness.check(again is not None, f"{name}: the advice does not work: {said}")
    refused, said = build(config, f"SRAM_LIMIT: {middle}\n", os.path.join(folder, "checked"))
    harness.check(refused is None and "add a line OPTIMIZE: size" in said, f"{name}: {said}")
    return [inside, again]


def published(name, items):
    model = harness.shared("models", "tflite", "mlperf_tiny", f"{name}.tflite")
    for core, most, percent in NETS[name]:
        config = (f"CORENAME: {core}\nFRAMEWORK: TFLITE\nMODEL_FILE: {model}\n"
                  "OUTPUT_FILE: net.h\n")
        with harness.scratch() as folder:
            speed, _ = build(config, "OPTIMIZE: speed\n", os.path.join(folder, "speed"))
            plain, _ = build(config, "", os.path.join(folder, "plain"))
            size, _ = build(config, "OPTIMIZE: size\n", os.path.join(folder, "size"))
            with open(os.path.join(speed, "net.npuc"), "rb") as one, \
                    open(os.path.join(plain, "net.npuc"), "rb") as two:
                harness.check(len(one.read()) == len(two.read()), f"{name}: speed is no default")
            harness.check(report_of(speed)["per_frame"] == report_of(plain)["per_frame"],
                          f"{name}: speed is not the default")
            report = report_of(size)
            folders = [speed, size]
            if ram_of(report) < ram_of(report_of(speed)):
                folders += check_limits(name, config, speed, size, folder)
            if name in LIMITS and LIMITS[name][0] == core:
                _, bytes_, at_most = LIMITS[name]
                limited, said = build(config, f"OPTIMIZE: size\nSRAM_LIMIT: {bytes_}\n",
                                      os.path.join(folder, "limited"))
                harness.check(limited is not None, said)
                harness.figure(f"{name} on {core}, SRAM_LIMIT {bytes_}: "
                               f"{describe(report_of(limited))}")
                harness.check(more_percent(report_of(limited)) <= at_most,
                              f"{name}: cycles +{more_percent(report_of(limited))} %")
                folders.append(limited)
            inputs = random_inputs(report, items, folder, True)
            outputs = [outputs_of(f, inputs, True) for f in folders]
            harness.check(all(o == outputs[0] for o in outputs), f"{name}: outputs differ")
        harness.figure(f"{name} on {core}, OPTIMIZE size: {describe(report)}; outputs of {items} "
                       f"inputs equal in {len(folders)} builds")
        harness.check(ram_of(report) <= most, f"{name}: {ram_of(report)} bytes, at most {most}")
        harness.check(more_percent(report) <= percent, f"{name}: {more_percent(report)} % more")


def random_nets(count):
    """Bytes by speed and by size of so many seeds' nets, and how many have stripes."""
    total = np.zeros(2, np.int64)
    striped = 0
    forms = list(quantized_nets.FORMS)
    with harness.scratch() as folder:
        builders = [TallNet(s, forms[s % len(forms)]) for s in range(count)]
        for builder, (model, _) in zip(builders, quantized_writers.write(builders, folder)):
            inside = os.path.join(folder, f"seed_{builder.seed}")
            framework = "TFLITE" if builder.is_tflite else "ONNX"
            config = (f"CORENAME: REF128\nFRAMEWORK: {framework}\nMODEL_FILE: {model}\n"
                      "OUTPUT_FILE: net.h\n")
            speed, said = build(config, "", os.path.join(inside, "speed"))
            if speed is None:
                continue  # refused, which random_quantized judges
            reports = [report_of(speed)]
            folders = [speed]
            size, said = build(config, "OPTIMIZE: size\n", os.path.join(inside, "size"))
            harness.check(size is not None, f"seed {builder.seed}: {said}")
            folders.append(size)
            # The smallest plan at any price, where size keeps to a tenth more cycles.
            refused, said = build(config, "OPTIMIZE: size\nSRAM_LIMIT: 1\n",
                                  os.path.join(inside, "none"))
            match = REFUSED.search(said)
            harness.check(refused is None and match is not None, f"seed {builder.seed}: {said}")
            least, said = build(config, f"OPTIMIZE: size\nSRAM_LIMIT: {match[1]}\n",
                                os.path.join(inside, "least"))
            harness.check(least is not None, f"seed {builder.seed}: {said}")
            folders.append(least)
            reports += [report_of(f) for f in folders[1:]]
            inputs = {}
            for port in reports[0]["inputs"]:
                data = next(t.data for t in builder.inputs if t.name == port["name"])
                inputs[port["name"]] = os.path.join(inside, port["name"] + ".npy")
                np.save(inputs[port["name"]], data.astype(type_of(port)[0]))
            outputs = [outputs_of(f, inputs, True) for f in folders]
            harness.check(all(o == outputs[0] for o in outputs), f"seed {builder.seed}: differ")
            harness.check(ram_of(reports[2]) <= ram_of(reports[1]) <= ram_of(reports[0]),
                          f"seed {builder.seed}: more memory")
            total += [ram_of(reports[0]), ram_of(reports[2])]
            striped += bool(reports[2]["memory_plan"]["stripes"]["chains"])
    return *total.tolist(), striped


def main(arguments):
    parser = argparse.ArgumentParser(prog="run_e2e.py stripes")
    parser.add_argument("--nets", type=int, default=120)
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args(arguments)
    if not options.names:
        whole, least, striped = random_nets(options.nets)
        harness.figure(f"stripes: random quantized nets take {whole} bytes of memory, {least} in "
                       f"stripes; {striped} have some; outputs equal")
        harness.check(least < whole and striped > options.nets // 20, "no stripes in random nets")
    for name in NETS:
        if not options.names or name in options.names:
            published(name, options.items)
