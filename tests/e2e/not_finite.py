"""Values that are not finite: where they come up, one clear error, and no figure that flatters.

    run_e2e.py not_finite

A net of Log, Sqrt, Reciprocal or Exp and a dense layer: calibrated on data that make infinities or
NaN, run on such data on an integer core, and judged by `npuc evaluate` where its outputs are such.
"""

import os

import numpy as np

import guide_nets
import harness

FUNCTIONS = {"Log": (0.0, "-inf"), "Sqrt": (-1.0, "NaN"), "Reciprocal": (0.0, "inf"),
             "Exp": (500.0, "inf")}


def net(op):
    g = guide_nets.Writer(1)
    g.placeholder("x", [1, 4])
    g.op(op, "culprit", "x")
    g.weight("fc/kernel", 4, 3)
    g.op("MatMul", "y", "culprit", "fc/kernel", transpose_a=False, transpose_b=False)
    return g


class Case:
    def __init__(self, folder, op):
        self.folder, self.op = folder, op
        with open(self.path("net.pb"), "wb") as f:
            f.write(net(op).serialize())
        self.good = np.random.RandomState(1).rand(6, 1, 4).astype(np.float32) + 0.5
        self.bad = self.good.copy()
        self.bad[3, 0, 2] = FUNCTIONS[op][0]
        np.save(self.path("good.npy"), self.good)
        np.save(self.path("bad.npy"), self.bad)

    def path(self, name):
        return os.path.join(self.folder, name)

    def config(self, core, data):
        with open(self.path("config.yaml"), "w", encoding="utf-8") as f:
            f.write(f"CORENAME: {core}\nFRAMEWORK: TF\nMODEL_FILE: net.pb\nOUTPUT_FILE: net.h\n"
                    "INPUT_OPS: {x: [1, 4]}\nOUTPUT_OPS: [y]\n")
            if core == "GRUS":
                f.write("NPU_UNIT: NPU32\n")
            else:
                f.write(f"QUANT: {{calibration_data: {data}, data: good.npy}}\n")
        return self.path("config.yaml")

    def check_calibration(self, core):
        said = harness.npuc(self.config(core, "bad.npy"), "-o", self.path("out"), expect=1)
        wanted = (f"sample 3 of calibration_data makes the layer 'culprit' give "
                  f"{FUNCTIONS[self.op][1]}, which no integer can stand for")
        harness.check((said.stdout + said.stderr).count("[NPUC") == 1 and
                      wanted in said.stdout + said.stderr,
                      f"{core}, {self.op}: {said.stdout}{said.stderr}")

    def check_run(self, core):
        harness.npuc(self.config(core, "good.npy"), "-o", self.path("out"))
        x = self.good.copy()
        for value, name in ((np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "-inf")):
            x[1, 0, 2] = value
            np.save(self.path("x.npy"), x)
            said = harness.npuc("run", self.path("out/net.h"), "--input", f"x={self.path('x.npy')}",
                                "--output-dir", self.path("sim"), expect=1)
            wanted = f"input 'x' holds {name} at element 6; an input of integers takes finite"
            text = said.stdout + said.stderr
            harness.check(wanted in text, f"{core}: {text}")

    def check_evaluate(self):
        config = self.config("GRUS", "")
        harness.npuc(config, "-o", self.path("out"))
        said = harness.npuc("evaluate", config, self.path("out/net.h"), "--input",
                            f"x={self.path('bad.npy')}", expect=1)
        text = said.stdout + said.stderr
        for metric in ("cosine", "mse", "sqnr"):
            harness.check(f"{metric}: 3 of 18 values of the output are not finite, the first in "
                          "item 3" in text, f"evaluate, {self.op}: {text}")


def main(_):
    for op in FUNCTIONS:
        with harness.scratch() as folder:
            case = Case(folder, op)
            for core in ("X2_1204", "APUS"):
                case.check_calibration(core)
            if op == "Log":
                case.check_run("X2_1204")
                case.check_run("APUS")
            case.check_evaluate()
