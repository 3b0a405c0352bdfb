#!/usr/bin/python3
"""Whole-process time of `npuc CONFIG`: from fork to exit, nothing subtracted.

    compile_bench.py [--runs N] [--smoke] [--json FILE]

Prints median, mean, minimum and 95th percentile for the sample model, for DNN_M of ../shared, for
/bin/true, and for an empty C++ program (bench_empty). The commands take turns, so that a busy
moment of the machine meets all of them. Environment: NPUC_BIN_DIR (default build/bin), NPUC_SHARED
(default ../shared; without it DNN_M is left out). Exit 0; 1 a compile failed; 77 no sample.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("NPUC_BIN_DIR", os.path.join(ROOT, "build", "bin"))
SHARED = os.environ.get("NPUC_SHARED", os.path.join(ROOT, "..", "shared"))
SAMPLE = os.path.join(ROOT, "deploy", "samples", "kws", "config.yaml")
DNN_M = os.path.join(SHARED, "models", "tf", "arm_kws", "DNN_M.pb")
WARM_UP = 3
GOAL_MS = 10.0


def time_ms(command):
    """Milliseconds from before the process exists to after it was waited for."""
    # posix_spawn and not subprocess: Python's own work would be a large part of such short times.
    begin = time.perf_counter_ns()
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=[
        (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0)])
    _, status = os.waitpid(pid, 0)
    took = (time.perf_counter_ns() - begin) / 1e6
    return took, os.waitstatus_to_exitcode(status)


def write_dnn_m_config(folder):
    """The config of DNN_M, cut after the audio front end (as tests/e2e/arm_kws.py has it)."""
    path = os.path.join(folder, "dnn_m.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write("CORENAME: GRUS\nNPU_UNIT: NPU32\nFRAMEWORK: TF\nOUTPUT_TYPE: c_code\n"
                f"MODEL_FILE: {os.path.abspath(DNN_M)}\nOUTPUT_FILE: dnn_m.h\nCOMPRESS: true\n"
                "INPUT_OPS:\n  Reshape: [1, 250]\nOUTPUT_OPS: [labels_softmax]\n")
    return path


def summary(times):
    ordered = sorted(times)
    return {"median_ms": ordered[len(ordered) // 2], "mean_ms": sum(ordered) / len(ordered),
            "min_ms": ordered[0], "p95_ms": ordered[min(len(ordered) - 1,
                                                        len(ordered) * 95 // 100)],
            "runs": len(ordered)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--smoke", action="store_true", help="5 runs: does it work?")
    parser.add_argument("--json", help="write the figures there, too")
    arguments = parser.parse_args()
    runs = 5 if arguments.smoke else max(arguments.runs, 1)
    if not os.path.exists(SAMPLE):
        print(f"skipped: {SAMPLE} is missing")
        return 77
    npuc = os.path.join(BIN, "npuc")
    with tempfile.TemporaryDirectory(prefix="npuc-bench-") as folder:
        commands = {"/bin/true": ["/bin/true"],
                    "empty C++ program": [os.path.join(BIN, "bench_empty")],
                    "npuc --version": [npuc, "--version"],
                    "npuc, the sample": [npuc, SAMPLE, "-o", os.path.join(folder, "sample")]}
        if os.path.exists(DNN_M):
            commands["npuc, DNN_M"] = [npuc, write_dnn_m_config(folder), "-o",
                                       os.path.join(folder, "dnn_m")]
        for name, command in commands.items():
            shown = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   check=False)
            if shown.returncode != 0:
                print(f"{name}: exit {shown.returncode}\n{shown.stdout.decode(errors='replace')}")
                return 1
        times = {name: [] for name in commands}
        for turn in range(WARM_UP + runs):
            for name, command in commands.items():
                took, code = time_ms(command)
                if code != 0:
                    print(f"{name}: exit {code}")
                    return 1
                if turn >= WARM_UP:
                    times[name].append(took)
    figures = {name: summary(values) for name, values in times.items()}
    for name, f in figures.items():
        print(f"{name:20}  median {f['median_ms']:7.2f} ms  mean {f['mean_ms']:7.2f}  "
              f"min {f['min_ms']:7.2f}  p95 {f['p95_ms']:7.2f}  ({f['runs']} runs)")
    for name in ("npuc, the sample", "npuc, DNN_M"):
        if name in figures:
            verdict = "met" if figures[name]["median_ms"] < GOAL_MS else "missed"
            print(f"goal of {GOAL_MS:g} ms, {name}: {verdict}")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as f:
            json.dump(figures, f, indent=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
