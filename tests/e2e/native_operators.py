"""Operators with a library in C: what client/PLUGINS.md, "Native operators", says.

    run_e2e.py native_operators

The page's source is compiled by cc, and nets of ONNX are compiled with it: as the reference of a
formula (the bytes are those of the formula alone), as a table on an integer core, and for operands
that are known. Results are compared with NumPy. Libraries that crash, hang, write where they may
not or answer nonsense are each refused by name, and leave no file. The daemon refuses them all.
"""

import os
import re
import shutil

import numpy as np

import harness
import onnxmodel
import service

PAGE = os.path.join(harness.ROOT, "client", "PLUGINS.md")
HEADER = os.path.join(harness.ROOT, "client", "operator")
X = np.linspace(-2, 2, 32, dtype=np.float32).reshape(1, 32)
WEIGHT = np.linspace(-0.5, 0.5, 32 * 8, dtype=np.float32).reshape(32, 8)
# Rounding to fp16 after each of a few operators, on values of at most 4.
TOLERANCE = 4 * 8 * harness.FP16_UNIT


def write(folder, name, data):
    path = os.path.join(folder, name)
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())
    return path


def page_files(folder):
    with open(PAGE, encoding="utf-8") as f:
        for name, text in re.findall(r"^```\w+ (\w+\.\w+)\n(.*?)^```$", f.read(), re.M | re.S):
            write(folder, name, text)


def build(folder, name, source=None, flags=()):
    """NAME.so of NAME.c, which the page has or `source` is."""
    if source is not None:
        write(folder, f"{name}.c", source)
    library = os.path.join(folder, f"{name}.so")
    harness.run("cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", *flags, f"-I{HEADER}", "-o",
                library, os.path.join(folder, f"{name}.c"), "-lm")
    return library


def elementwise_source(expression):
    """A library of which result i is `expression` of x."""
    return f"""#include <math.h>
#include "npuc_operator.h"
NPUC_OPERATOR_LIBRARY
int npuc_operator_shapes(const npuc_call* call, npuc_shape* results) {{
  results[0] = call->operands[0].shape;
  return 0;
}}
int npuc_operator_compute(const npuc_call* call, npuc_result* results) {{
  for (int64_t i = 0; i < npuc_element_count(&results[0].shape); ++i) {{
    const float x = call->operands[0].data[i];
    results[0].data[i] = {expression};
  }}
  return 0;
}}
"""


def declare(folder, name, op, library, extra=""):
    write(folder, name, f"operators:\n  - op: {op}\n    operands: [x]\n    library: {library}\n"
          f"{extra}    results: [y]\n")


def net(folder, nodes, initializers=None):
    values = {"w": WEIGHT, **(initializers or {})}
    write(folder, "net.onnx", onnxmodel.model(nodes, [("x", [1, 32])], [("y", [1, 8])], values))


def one_operator(folder, op, **attributes):
    net(folder, [onnxmodel.node(op, ["x"], ["a"], domain="acme", **attributes),
                 onnxmodel.node("MatMul", ["a", "w"], ["y"])])


def config(folder, name, plugins, quant="", core="GRUS\nNPU_UNIT: NPU32"):
    return write(folder, name, f"CORENAME: {core}\nFRAMEWORK: ONNX\nMODEL_FILE: net.onnx\n"
                 f"OUTPUT_FILE: net.h\nPLUGINS: [{plugins}]\n{quant}")


def compiled(folder, path, what):
    out = os.path.join(folder, "out_" + what)
    harness.npuc(path, "-o", out)
    with open(os.path.join(out, "net.npuc"), "rb") as f:
        return os.path.join(out, "net.npuc"), f.read()


def expect_near(found, want, tolerance, what):
    worst = float(np.abs(found.reshape(want.shape) - want).max())
    harness.check(worst <= tolerance, f"{what}: off by {worst}, allowed {tolerance}")
    return worst


def refuse(folder, path, *texts):
    out = os.path.join(folder, "refused")
    result = harness.npuc(path, "-o", out, expect=1, timeout=240)
    for text in texts:
        harness.check(text in result.stderr, f"'{text}' is not in:\n{result.stderr}")
    harness.check(not os.path.exists(os.path.join(out, "net.h")), "a refused net has a header")
    return result.stderr


def checked(folder):
    """A formula with its library: the formula's bytes, and a difference is found."""
    page_files(folder)
    build(folder, "abs", flags=("-Wextra",))
    one_operator(folder, "Abs", scale=0.5)
    path, bytes_with = compiled(folder, config(folder, "with.yaml", "checked.yaml"), "with")
    _, bytes_without = compiled(folder, config(folder, "without.yaml", "abs.yaml"), "without")
    harness.check(bytes_with == bytes_without, "the library changes what the formula compiles to")
    found = harness.simulate(path, {"x": X}, os.path.join(folder, "sim"), ["y"])["y"]
    expect_near(found, 0.5 * np.abs(X) @ WEIGHT, TOLERANCE, "checked")
    # Wrong between 3 and 3.5 alone; one without the attribute.
    build(folder, "abs", elementwise_source("x > 3 && x < 3.5f ? 3 : fabsf(x) * "
                                            "(float)npuc_number(call, \"scale\")"))
    said = refuse(folder, os.path.join(folder, "with.yaml"), "NPUC1129", "by the formula and 3 by "
                  "the library './abs.so'", "checked.yaml", "node 'a'")
    where = float(re.search(r", for x = (\S+);", said)[1])
    harness.check(3 < where < 3.5, f"the place is {where}:\n{said}")
    build(folder, "abs", elementwise_source("fabsf(x)"))
    refuse(folder, os.path.join(folder, "with.yaml"), "NPUC1129")
    one_operator(folder, "Abs", scale=1.0)
    compiled(folder, os.path.join(folder, "with.yaml"), "again")


def tables(folder):
    """A function that formulas do not have, on an integer core, in 8 and 16 bits, and in float."""
    build(folder, "wave", elementwise_source("sinf(3 * x) + fmaxf(x, 0)"))
    declare(folder, "wave.yaml", "acme.Wave", "wave.so", "    elementwise: true\n")
    one_operator(folder, "Wave")
    samples = np.random.default_rng(1).uniform(-2, 2, (64, 1, 32)).astype(np.float32)
    np.save(os.path.join(folder, "samples.npy"), samples)
    x = samples[:1].reshape(1, 32)
    want = (np.sin(3 * x.astype(np.float64)) + np.maximum(x, 0)) @ WEIGHT
    for bits, allowed in ((8, 0.15), (16, 0.02)):
        path, _ = compiled(folder, config(
            folder, f"int{bits}.yaml", "wave.yaml", core="X2_1204",
            quant=f"QUANT: {{calibration_data: samples.npy, activation_bits: {bits}, "
            "calibration_strategy_for_activation: extrema}\n"),
            str(bits))
        found = harness.simulate(path, {"x": x}, os.path.join(folder, f"sim{bits}"), ["y"])["y"]
        worst = expect_near(found, want, allowed, f"table of {bits} bits")
        print(f"table of {bits} bits: off by {worst:.5f}")
    found = harness.simulate(os.path.join(folder, "int8.yaml"), {"x": x},
                             os.path.join(folder, "float"), ["y"], "reference")["y"]
    expect_near(found, want, 1e-3, "npuc reference")
    refuse(folder, config(folder, "grus.yaml", "wave.yaml"), "NPUC1200", "Wave",
           "give a formula")


def known(folder):
    """An operand that the model states: the library's results become constants."""
    page_files(folder)
    build(folder, "abs")
    net(folder, [onnxmodel.node("Abs", ["w"], ["v"], domain="acme", scale=0.5),
                 onnxmodel.node("MatMul", ["x", "v"], ["y"])])
    declare(folder, "known.yaml", "acme.Abs", "./abs.so",
            "    attributes: {scale: {type: float, default: 1.0}}\n")
    path, _ = compiled(folder, config(folder, "known_net.yaml", "known.yaml"), "known")
    found = harness.simulate(path, {"x": X}, os.path.join(folder, "sim"), ["y"])["y"]
    expect_near(found, X @ (0.5 * np.abs(WEIGHT)), TOLERANCE, "known")
    one_operator(folder, "Abs")  # the operand is an input now, and no core runs the library
    refuse(folder, os.path.join(folder, "known_net.yaml"), "NPUC1127", "OUTPUT_OPS")


PRELUDE = """#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "npuc_operator.h"
NPUC_OPERATOR_LIBRARY
#define SAME results[0] = call->operands[0].shape
#define COUNT npuc_element_count(&call->operands[0].shape)
#define ABS \\
  for (int64_t i = 0; i < COUNT; ++i) results[0].data[i] = fabsf(call->operands[0].data[i])
static inline void unused(int64_t value) { (void)value; }
static inline void* idle(void* p) { return p; }
"""

# (name, what it does outside, in shapes, in compute, what npuc says)
HOSTILE = (
    ("constructor", "__attribute__((constructor)) static void f(void) { raise(SIGSEGV); }", "SAME;",
     "ABS;", "signal 11 (SIGSEGV) while it was loaded"),
    ("exits", "__attribute__((constructor)) static void f(void) { _exit(0); }", "SAME;", "ABS;",
     "exit code 0 while it was loaded"),
    ("endless", "", "SAME;", "for (volatile int i = 0;; ++i) {}", "of processor time"),
    ("huge", "", "SAME; results[0].rank = 2; results[0].dims[0] = results[0].dims[1] = 1 << 20;",
     "ABS;", "shape out of bounds"),
    ("negative", "", "SAME; results[0].dims[0] = -1;", "ABS;", "shape out of bounds"),
    ("ranks", "", "SAME; results[0].rank = 4000000;", "ABS;", "a shape of 4000000 axes"),
    ("other_shape", "", "SAME; results[0].rank = 1;", "results[0].data[0] = 0;",
     "[1,32] by the formula and [1] by"),
    ("beyond", "", "SAME;", "ABS; results[0].data[COUNT] = 1;", "beyond the end of a result"),
    ("in_front", "", "SAME;", "ABS; results[0].data[-1] = 1;", "writes in front of result 0"),
    ("operand", "", "SAME;", "ABS; ((float*)call->operands[0].data)[0] = 1;", "SIGSEGV"),
    ("leaves_out", "", "SAME;", "", "nan by the library"),
    ("file", "", "SAME;", "ABS; unused(open(\"%(folder)s/planted\", O_WRONLY | O_CREAT, 0600));",
     "its sandbox forbids"),
    ("reads", "", "SAME;", "ABS; if (open(\"/etc/passwd\", O_RDONLY) < 0) return npuc_fail(call, "
     "\"no file is there\");", "npuc_operator_compute: no file is there"),
    ("network", "", "SAME;", "ABS; unused(socket(AF_INET, SOCK_STREAM, 0));",
     "its sandbox forbids"),
    ("forks", "", "SAME;", "ABS; unused(fork());", "its sandbox forbids"),
    ("thread", "", "SAME;", "pthread_t t; ABS; unused(pthread_create(&t, 0, idle, 0));",
     "its sandbox forbids"),
    ("parent", "", "SAME;", "ABS; kill(getppid(), SIGKILL);", "its sandbox forbids"),
    ("counter", "static int n;", "SAME;", "ABS; results[0].data[0] = n++;",
     "two results for the same operands"),
    ("clock", "static float at;\n__attribute__((constructor)) static void f(void) { struct "
     "timespec t; clock_gettime(CLOCK_MONOTONIC, &t); at = (float)t.tv_nsec; }", "SAME;",
     "ABS; results[0].data[0] = at;", "other results in another process"),
    ("memory", "", "SAME;", "for (;;) { char* p = malloc(1 << 20); if (p == 0) return npuc_fail("
     "call, \"no memory\"); memset(p, 1, 1 << 20); }", "no memory"),
    ("floods", "static char b[1 << 20];", "SAME;", "while (write(3, b, sizeof(b)) > 0) {} ABS;",
     "more bytes of results than are allowed"),
    ("forges", "", "SAME;", "ABS; unused(write(3, \"NPA1 and nonsense\", 17));",
     "it wrote over its process's answer"),
    ("refuses", "", "return npuc_fail(call, \"x must be\\033[2J odd\");", "ABS;",
     "refuses the call in npuc_operator_shapes: x must be\\x1b[2J odd"),
)


def hostile(folder):
    """Each library in one check of a formula. None harms anything but its own process."""
    one_operator(folder, "Abs")
    declare(folder, "hostile.yaml", "acme.Abs", "hostile.so", "    formula: y = Abs(x)\n")
    path = config(folder, "hostile_net.yaml", "hostile.yaml")
    for name, outside, shapes, compute, said in HOSTILE:
        build(folder, "hostile", PRELUDE + (
            f"{outside}\nint npuc_operator_shapes(const npuc_call* call, npuc_shape* results) {{\n"
            f"  {shapes}\n  return 0;\n}}\nint npuc_operator_compute(const npuc_call* call, "
            f"npuc_result* results) {{\n  {compute % {'folder': folder}}\n  return 0;\n}}\n"),
            flags=("-pthread",))
        before = sorted(os.listdir(folder))
        print(f"hostile: {name}", flush=True)
        text = refuse(folder, path, said, "hostile.so", "hostile.yaml")
        harness.check(text.count("[NPUC") == 1, f"{name}: more than one error:\n{text}")
        left = set(os.listdir(folder)) - set(before) - {"refused"}
        harness.check(not left, f"{name} left {left}")
    for name, source, said in (
            ("old", "const unsigned npuc_operator_abi = 7;", "compiled for version 7"),
            ("none", "int other;", "has no npuc_operator_abi"),
            ("half", "const unsigned npuc_operator_abi = 1;", "lacks npuc_operator_shapes")):
        print(f"hostile: {name}", flush=True)
        build(folder, "hostile", source)
        refuse(folder, path, said)
    write(folder, "hostile.so", b"#!/bin/sh\n")
    refuse(folder, path, "is no shared library")
    write(folder, "hostile.so", b"\177ELF and no more")
    refuse(folder, path, "cannot be loaded")
    os.remove(os.path.join(folder, "hostile.so"))
    refuse(folder, path, "NPUC1128", "hostile.yaml:4")
    build(folder, "hostile", elementwise_source("fabsf(x)"))
    compiled(folder, path, "harmless")


def places(folder):
    """An elementwise library that looks at the place, or has no value for a number."""
    one_operator(folder, "Abs")
    declare(folder, "f.yaml", "acme.Abs", "f.so", "    elementwise: true\n")
    np.save(os.path.join(folder, "samples.npy"), X[None])
    path = config(folder, "f_net.yaml", "f.yaml", core="X2_1204",
                  quant="QUANT: {calibration_data: samples.npy}\n")
    for expression, said in (("x + (float)i", "in two places of a tensor"),
                             ("sqrtf(x)", "it gave NaN for -")):
        build(folder, "f", elementwise_source(expression))
        refuse(folder, path, "NPUC1128", said)


def without_the_program(folder):
    """npuc without npuc-operator beside it compiles all but libraries."""
    page_files(folder)
    build(folder, "abs")
    one_operator(folder, "Abs")
    alone = os.path.join(folder, "bin")
    os.mkdir(alone)
    shutil.copy(harness.program("npuc"), alone)
    for plugins, code in (("checked.yaml", 1), ("abs.yaml", 0)):
        result = harness.run(os.path.join(alone, "npuc"), config(folder, "net.yaml", plugins), "-o",
                             os.path.join(folder, "alone"), expect=code)
        harness.check(("NPUC1127" in result.stderr) == (code == 1), result.stderr)


def through_the_daemon(folder):
    """Refused, whatever else is declared; the next job is compiled."""
    page_files(folder)
    build(folder, "abs")
    one_operator(folder, "Abs")
    with service.daemon(folder) as server:
        for plugins in ("checked.yaml", "elementwise.yaml"):
            refused = server.remote("compile", config(folder, "net.yaml", plugins), "-o",
                                    os.path.join(folder, "no"), expect=None)
            harness.check(refused.returncode not in (0, 70) and "NPUC1127" in refused.stderr and
                          plugins in refused.stderr, f"exit {refused.returncode}: {refused.stderr}")
        server.remote("compile", config(folder, "net.yaml", "abs.yaml"), "-o",
                      os.path.join(folder, "yes"))


def main(_):
    for part in (checked, tables, known, places, without_the_program, hostile, through_the_daemon):
        with harness.scratch() as folder:
            part(folder)
