"""What an operator is left with after a failure of ours: jobs that end by a fault planted in the
compiler, and the bundle of each, whose command must show the failure again and, with a compiler
without the fault, give the bytes of a plain compile.

The faults stand in npuc_sabotaged_worker and npuc_sabotaged (server/worker/sabotage.h): the
daemon's worker and the plain compiler, told by OUTPUT_FILE what to do in which stage.
"""

import json
import os
import shutil
import subprocess

import graphdef
import harness
import numpy as np
import service

# Act, stage, how the plain compiler ends.
FAULTS = (("abort", "import", -6), ("segv", "lower", -11), ("throw", "emit", -6))
YAML = """CORENAME: {core}
FRAMEWORK: TF
MODEL_FILE: {model}
OUTPUT_FILE: {output}
INPUT_OPS:
  x: [1, 16]
OUTPUT_OPS: [y]
{more}"""
IR = """CORENAME: X2_1204
FRAMEWORK: COMPASS
MODEL_FILE: {model}
OUTPUT_FILE: {output}
"""
CFG = """[Common]
mode = build

[Parser]
model_type = tensorflow
model_name = net
input_model = {model}
input = x
input_shape = [1, 16]
output = y

[Optimizer]
calibration_data = {data}

[GBuilder]
target = X2_1204
outputs = {output}
"""


def write_net(path):
    rng = np.random.RandomState(5)
    graph = graphdef.Graph()
    x = graph.placeholder("x", [1, 16])
    w = graph.const("w", (rng.random_sample((16, 8)) - 0.5).astype(np.float32))
    graph.node("MatMul", "y", [x, w], {"T": graphdef.DType(np.float32)})
    with open(path, "wb") as f:
        f.write(graph.serialize())


def configs(folder):
    """Name and text of a config with a place for OUTPUT_FILE: one file, a side input, a .cfg, an IR
    whose .bin it does not name."""
    model, data = os.path.join(folder, "net.pb"), os.path.join(folder, "side.npy")
    write_net(model)
    np.save(data, np.random.RandomState(6).standard_normal((8, 16)).astype(np.float32))
    quant = os.path.join(folder, "for_ir.yaml")
    with open(quant, "w", encoding="utf-8") as f:
        f.write(YAML.format(core="X2_1204", model=model, output="net.h",
                            more=f"QUANT:\n  calibration_data: {data}\n"))
    harness.npuc("ir", "write", quant, "-o", os.path.join(folder, "ir"))
    return (("ir.yaml", IR.format(model=os.path.join(folder, "ir", "net.txt"), output="{output}")),
            ("float.yaml", YAML.format(core="GRUS", model=model, output="{output}", more="")),
            ("quant.yaml", YAML.format(core="X2_1204", model=model, output="{output}",
                                       more=f"QUANT:\n  calibration_data: {data}\n")),
            ("job.cfg", CFG.format(model=model, data=data, output="{output}")))


def programs(folder):
    """A folder of programs with the fault: npucd and its worker; and npuc, as a user calls it."""
    where = os.path.join(folder, "bin")
    os.makedirs(where)
    tests = os.path.join(os.path.dirname(harness.program("npucd")), "..", "test_bin")
    for name, source in (("npucd", harness.program("npucd")),
                         ("npuc-worker", os.path.join(tests, "npuc_sabotaged_worker")),
                         ("npuc", harness.program("npuc_sabotaged"))):
        harness.check(os.path.exists(source),
                      f"{source} is not built; target npuc_sabotaged builds all of this suite")
        shutil.copy2(source, os.path.join(where, name))
    return where


def run_command(bundle, command, path):
    """The exit code of the bundle's command, in a copy of the bundle as an operator makes it."""
    with harness.scratch() as folder:
        copy = os.path.join(folder, "copy")
        shutil.copytree(bundle, copy)
        done = subprocess.run(["bash", "-c", "exec env " + command], cwd=copy, check=False,
                              env={**os.environ, "PATH": path + ":/usr/bin:/bin"},
                              capture_output=True, timeout=60)
        out = os.path.join(copy, "out")
        made = {}
        for name in sorted(os.listdir(out)) if os.path.isdir(out) else ():
            with open(os.path.join(out, name), "rb") as f:
                made[name] = f.read()
        return done.returncode, made, done.stderr.decode(errors="replace")


def check_failure(folder, daemon, name, text, fault):
    act, stage, code = fault
    output = f"{act}_at_{stage.replace(' ', '-')}.h"  # an artifact's name has no blanks
    config = os.path.join(folder, name)
    with open(config, "w", encoding="utf-8") as f:
        f.write(text.format(output=output))
    what = f"{name}, {act} in {stage}"
    job = daemon.json("compile", config, "-o", os.path.join(folder, "out"), expect=None)[-1]
    harness.check(job["state"] == "FAILED", f"{what}: {job}")
    bundle = os.path.join(folder, "data", "bundles", job["job"])
    with open(os.path.join(bundle, "failure.json"), encoding="utf-8") as f:
        failure = json.load(f)
    harness.check(failure["stage"] == stage, f"{what}: {failure}")
    # None of the tenant's own paths is needed to show it again.
    own = [os.path.join(folder, file) for file in ("net.pb", "side.npy", "ir")]
    for file in own:
        os.rename(file, file + ".away")
    try:
        found, made, errors = run_command(bundle, failure["command"], os.path.join(folder, "bin"))
        harness.check(found == code,
                      f"{what}: the command ends with {found}, not {code}:\n{errors}")
        harness.check(not made, f"{what}: it leaves {list(made)}")
        sound = os.path.dirname(harness.program("npuc"))
        found, made, errors = run_command(bundle, failure["command"], sound)
        harness.check(found == 0, f"{what}: without the fault it ends with {found}:\n{errors}")
    finally:
        for file in own:
            os.rename(file + ".away", file)
    plain = os.path.join(folder, "plain")
    harness.npuc(config, "-o", plain)
    with open(os.path.join(plain, output), "rb") as f:
        harness.check(made[output] == f.read(), f"{what}: without the fault, another header")


def main(arguments):
    harness.check(not arguments, "bundles takes no arguments")
    with harness.scratch() as folder:
        where = programs(folder)
        daemon = service.Daemon(folder, npucd=os.path.join(where, "npucd"))
        count = 0
        daemon.start()
        try:
            for name, text in configs(folder):
                for fault in FAULTS:
                    check_failure(folder, daemon, name, text, fault)
                    count += 1
        finally:
            daemon.stop()
        # One of each cause, whichever config showed it.
        kept = os.listdir(os.path.join(folder, "data", "bundles"))
        harness.check(len(FAULTS) <= len(kept) <= count, f"{len(kept)} bundles of {count} failures")
        harness.figure(f"bundles: {count} failures of the compiler in {len(FAULTS)} stages, each "
                       "shown again by its bundle's command alone; without the fault the same "
                       "command gives the header of a plain compile")
