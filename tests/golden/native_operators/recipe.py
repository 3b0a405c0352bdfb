"""Operators with a library: of run time without a formula, damaged, and unlike its formula."""

import os
import subprocess
import tempfile

import recipes  # noqa: F401  (finds the models folder)
from onnxmodel import model, node

HEADER = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))), "client", "operator")
# Unlike Abs from 5 to 6 alone.
SOURCE = """#include "npuc_operator.h"
NPUC_OPERATOR_LIBRARY
int npuc_operator_shapes(const npuc_call* call, npuc_shape* results) {
  results[0] = call->operands[0].shape;
  return 0;
}
int npuc_operator_compute(const npuc_call* call, npuc_result* results) {
  for (int64_t i = 0; i < npuc_element_count(&results[0].shape); ++i) {
    const float x = call->operands[0].data[i];
    results[0].data[i] = x > 5 && x < 6 ? 0 : x < 0 ? -x : x;
  }
  return 0;
}
"""


def library():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "abs.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", f"-I{HEADER}", "-o", path, "-xc", "-"],
                       input=SOURCE.encode(), check=True)
        with open(path, "rb") as f:
            return f.read()


def files():
    nodes = [node("Abs", ["x"], ["y"], domain="acme")]
    declared = ("operators:\n  - op: acme.Abs\n    operands: [x]\n    library: {}\n{}"
                "    results: [y]\n")
    formula = "    formula: y = Abs(x)\n"
    found = {"model.onnx": model(nodes, [("x", [1, 40])], [("y", [1, 40])], {}),
             "abs.so": library(), "damaged.so": b"\177ELF and no more", "text.so": b"int main;"}
    for name, path, more in (("alone", "abs.so", ""), ("damaged", "damaged.so", formula),
                             ("text", "text.so", formula), ("missing", "lib/none.so", formula),
                             ("differs", "abs.so", formula),
                             ("table", "abs.so", "    elementwise: true\n"),
                             ("keys", "abs.so", formula + "    elementwise: true\n"
                                                          "    tolerance: 2\n")):
        found[f"{name}_ops.yaml"] = declared.format(path, more).encode()
        found[f"{name}.yaml"] = (f"CORENAME: GRUS\nFRAMEWORK: ONNX\nMODEL_FILE: model.onnx\n"
                                 f"OUTPUT_FILE: model.h\nPLUGINS: {name}_ops.yaml\n").encode()
    return found
