#!/usr/bin/python3
"""Makes nets of several sizes and runs a program of this folder on their configs.

    chaos.py PROGRAM [ARGUMENT...]     e.g. chaos.py service_chaos --how kill --times 200

The program gets the configs behind its arguments.
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import harness  # noqa: E402
import graphdef  # noqa: E402
import numpy as np  # noqa: E402

SIZES = {"tiny": (16, 1), "small": (64, 2), "middle": (160, 3), "large": (256, 6)}


def write_net(folder, name, width, layers):
    rng = np.random.RandomState(width)
    graph = graphdef.Graph()
    last = graph.placeholder("x", [1, width])
    kind = {"T": graphdef.DType(np.float32)}
    for i in range(layers):
        values = (rng.random_sample((width, width)) - 0.5).astype(np.float32)
        product = graph.node("MatMul", f"y{i}", [last, graph.const(f"w{i}", values)], kind)
        last = graph.node("Relu", f"relu{i}", [product], kind)
    with open(os.path.join(folder, f"{name}.pb"), "wb") as f:
        f.write(graph.serialize())
    configs = []
    for compress in ("true", "false"):
        path = os.path.join(folder, f"{name}_{compress}.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write("CORENAME: GRUS\nNPU_UNIT: NPU32\nFRAMEWORK: TF\nOUTPUT_TYPE: c_code\n"
                    f"MODEL_FILE: {name}.pb\nOUTPUT_FILE: {name}.h\nCOMPRESS: {compress}\n"
                    f"INPUT_OPS:\n  x: [1, {width}]\nOUTPUT_OPS: [{last}]\n")
        configs.append(path)
    return configs


def write_nets(folder):
    """The configs of all nets."""
    return [path for name, (width, layers) in SIZES.items()
            for path in write_net(folder, name, width, layers)]


def main():
    program, arguments = sys.argv[1], sys.argv[2:]
    with harness.scratch() as folder:
        command = [harness.program(program), *write_nets(folder), *arguments]
        process = subprocess.run(command, stdout=subprocess.PIPE, check=False,
                                 universal_newlines=True)
        for line in process.stdout.splitlines():
            if line.startswith("FIGURE: "):
                harness.figure(line[len("FIGURE: "):])
            else:
                print(line)
        return process.returncode


if __name__ == "__main__":
    sys.exit(main())
