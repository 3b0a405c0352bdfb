"""Buffers over dead rows of others, and commands in another order than the model's, give the bits
of buffers that lie apart, in less memory.

    row_plans [--nets N] [NAME...]

Compiles each net twice, by MEMORY_PLAN auto and compatible, runs both on the same seeded inputs and
demands equal outputs, byte for byte: the published int8 nets, whose memory (data and the structs of
inputs and outputs) must meet what was computed by other means (true lower bounds of layer-by-layer
execution with results over dead rows), with as many commands and cycles as before, and random
quantized nets. The header of each published net is included by a C program that stores an input and
reads an output where the header says, under gcc's sanitizers. That the random nets are right at all
is random_quantized's.
"""

import argparse
import json
import os
import re

import numpy as np

import harness
import quantized_nets
import quantized_writers
from dead_channels import outputs_of, random_inputs, report_of, type_of

# name: (inputs, bytes of memory at most)
NETS = {"kws_ref_model_int8": (1000, 8704), "resnet8_int8": (200, 33920),
        "vww_96_int8": (100, 37376), "ad01_int8": (1000, 768)}
C_PROGRAM = """
#include <stdio.h>
#include <string.h>
#include "net.h"
int main(void) {
  struct input *in = (struct input *)(data_content + input_offset);
  struct output *out = (struct output *)(data_content + output_offset);
  if (sizeof(struct input) > sizeof data_content - input_offset) return 1;
  if (sizeof(struct output) > sizeof data_content - output_offset) return 2;
  memset(in, 1, sizeof *in);
  memset(out, 2, sizeof *out);
  if (total_size != npu_size || version[0] != 'n' || pb_md5[0] == 0) return 3;
  if (npu_core[0] != 'Z' || model_info == 0) return 4;
  printf("%zu %zu\\n", sizeof *in, sizeof *out);
  return sizeof cmd_content + sizeof weight_content + sizeof data_content == npu_size ? 0 : 5;
}
"""


def compile_both(config, folder):
    folders = []
    for plan in ("auto", "compatible"):
        inside = os.path.join(folder, plan)
        os.makedirs(inside)
        path = os.path.join(inside, "net.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(config + f"MEMORY_PLAN: {plan}\n")
        harness.npuc(path, "-o", inside)
        folders.append(inside)
    return folders


def check_equal(name, folders, inputs):
    by_rows, apart = (outputs_of(folder, inputs, True) for folder in folders)
    harness.check(by_rows == apart, f"{name}: outputs differ by the memory plan")


def ram_of(report):
    sizes = report["sizes_bytes"]
    return sizes["data_content"] + sizes["input"] + sizes["output"]


def check_c_program(name, folder, report):
    source = os.path.join(folder, "use.c")
    with open(source, "w", encoding="utf-8") as f:
        f.write(C_PROGRAM)
    program = os.path.join(folder, "use")
    harness.run("gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined",
                "-o", program, source)
    said = harness.run(program).stdout
    wanted = [sum(np.prod(type_of(port)[1]) * np.dtype(type_of(port)[0]).itemsize for port in ports)
              for ports in (report["inputs"], report["outputs"])]
    harness.check([int(n) for n in said.split()] == wanted, f"{name}: structs of {said} bytes")


def check_header_refusals(name, folder):
    """A header whose structs leave data_content is refused, as one with one place alone is."""
    with open(os.path.join(folder, "net.h"), encoding="utf-8") as f:
        text = f.read()
    for wrong in (re.sub(r"output_offset = \d+", "output_offset = 268435455", text),
                  re.sub(r"const unsigned int input_offset = \d+;\n", "", text)):
        path = os.path.join(folder, "wrong.h")
        with open(path, "w", encoding="utf-8") as f:
            f.write(wrong)
        code, said = harness.attempt("dis", path, timeout=60)
        harness.check(wrong != text and code == 1 and "data_content" in said, f"{name}: {said}")


def published(name, items, most):
    model = harness.shared("models", "tflite", "mlperf_tiny", f"{name}.tflite")
    with harness.scratch() as folder:
        folders = compile_both(f"CORENAME: Z2_0901\nFRAMEWORK: TFLITE\nMODEL_FILE: {model}\n"
                               "OUTPUT_FILE: net.h\n", folder)
        by_rows, apart = (report_of(f) for f in folders)
        check_equal(name, folders, random_inputs(by_rows, items, folder, True))
        check_c_program(name, folders[0], by_rows)
        check_header_refusals(name, folders[0])
    harness.figure(f"{name}: {ram_of(by_rows)} bytes of memory, {ram_of(apart)} with buffers apart "
                   f"({by_rows['memory_plan']['method']}); outputs of {items} inputs equal")
    harness.check(ram_of(by_rows) <= most, f"{name}: {ram_of(by_rows)} bytes, at most {most}")
    harness.check(by_rows["per_frame"] == apart["per_frame"], f"{name}: other work")


def random_nets(count):
    """Bytes of memory by rows and apart over so many seeds' nets, and how many have another order
    than the model."""
    total = np.zeros(2, np.int64)
    reordered = 0
    forms = list(quantized_nets.FORMS)
    with harness.scratch() as folder:
        builders = [quantized_nets.Builder(s, forms[s % len(forms)]) for s in range(count)]
        for builder, (model, _) in zip(builders, quantized_writers.write(builders, folder)):
            inside = os.path.join(folder, f"seed_{builder.seed}")
            os.makedirs(inside)
            framework = "TFLITE" if builder.is_tflite else "ONNX"
            try:
                folders = compile_both(f"CORENAME: X2_1204\nFRAMEWORK: {framework}\n"
                                       f"MODEL_FILE: {model}\nOUTPUT_FILE: net.h\n", inside)
            except harness.Failure as failure:
                harness.check("exit 1, not 0" in str(failure), str(failure))
                continue  # refused, which random_quantized judges
            reports = [report_of(f) for f in folders]
            inputs = {}
            for port in reports[0]["inputs"]:
                data = next(t.data for t in builder.inputs if t.name == port["name"])
                inputs[port["name"]] = os.path.join(inside, port["name"] + ".npy")
                np.save(inputs[port["name"]], data.astype(type_of(port)[0]))
            check_equal(f"seed {builder.seed}", folders, inputs)
            rams = [ram_of(r) for r in reports]
            harness.check(rams[0] <= rams[1] + 30, f"seed {builder.seed}: {rams} bytes")
            total += rams
            reordered += reports[0]["memory_plan"]["order"] != "as in the model"
    return *total.tolist(), reordered


def main(arguments):
    parser = argparse.ArgumentParser(prog="run_e2e.py row_plans")
    parser.add_argument("--nets", type=int, default=150)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args(arguments)
    if not options.names:
        by_rows, apart, reordered = random_nets(options.nets)
        harness.figure(f"row plans: random quantized nets take {by_rows} bytes of memory, with "
                       f"buffers apart {apart}; {reordered} in another order; outputs equal")
        harness.check(reordered > 0 or options.nets < 100, "no net is computed in another order")
        harness.check(by_rows < apart, "random nets take no less")
    for name, (items, most) in NETS.items():
        if not options.names or name in options.names:
            published(name, items, most)
