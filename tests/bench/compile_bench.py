#!/usr/bin/python3
"""Whole-process time and memory of `npuc CONFIG`, and the simulator's time for a frame.

    compile_bench.py [--runs N] [--smoke] [--json FILE] [--against DIR]

Compiles, with COMPRESS: the sample; every model of ../shared/models/tf, the audio front ends cut
(configs of tests/e2e/models.py); the recorded PyTorch architectures of tests/oracle (scripted,
without COMPRESS; no PyTorch is needed); fully connected nets of 1, 5 and 25 million weights that it
writes. Times run from before the process exists until it was waited for, nothing subtracted, beside
/bin/true, an empty C++ program (bench_empty) and `npuc --version`. The commands take turns, so that
a busy moment of the machine meets all of them; where others keep the processors busy, `cpu` (user
and system time, the median) says more than the time that passed. Memory is the largest resident set
(peak_rss). A simulator frame is what 100 items of `npuc run` take longer than one item, by 99.

--against: with the npuc in DIR, another build's, in turn, net by net: how many times its time each
compile takes, the median over pairs of runs one after the other. On a busy machine look at cpu.
--smoke: few runs, no large nets. Environment: NPUC_BIN_DIR (default build/bin), NPUC_SHARED
(default ../shared; without it the sample and the written nets remain). Exit 0; 1 a command failed;
77 no sample. Goals that are missed are said, and are no failure: the machine may be busy.
"""

import argparse
import json
import mmap
import os
import subprocess
import sys
import tempfile
import time
import zipfile

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path += [os.path.join(ROOT, "tests", "models"), os.path.join(ROOT, "tests", "e2e")]
import graphdef  # noqa: E402
import models  # noqa: E402
import torch_nets  # noqa: E402

BIN = os.environ.get("NPUC_BIN_DIR", os.path.join(ROOT, "build", "bin"))
NPUC = os.path.join(BIN, "npuc")
SHARED = os.environ.get("NPUC_SHARED", os.path.join(ROOT, "..", "shared"))
SAMPLE = os.path.join(ROOT, "deploy", "samples", "kws", "config.yaml")
SAMPLE_MODEL = os.path.join(ROOT, "deploy", "samples", "kws", "kws_cnn.pb")
WARM_UP = 2
LAYERS = 5
MILLIONS = (1, 5, 25)
ITEMS = 100
PAGES = 10
SIMULATED = "DS_CNN_S"
# Milliseconds.
SMALL_GOAL, SMALL_WEIGHTS = 10.0, 1_000_000
LARGE_GOAL, LARGE_WEIGHTS = 1000.0, 25_000_000
FRAME_GOAL = 5.0


class Subject:
    """A command line with what it compiles, if anything."""

    def __init__(self, name, command, weights=None, large=False):
        self.name, self.command, self.weights, self.large = name, command, weights, large
        self.times, self.cpu_times, self.peak_kib = [], [], None

    def median(self):
        return sorted(self.times)[len(self.times) // 2]

    def figures(self):
        ordered = sorted(self.times)
        return {"median_ms": self.median(), "mean_ms": sum(ordered) / len(ordered),
                "min_ms": ordered[0],
                "p95_ms": ordered[min(len(ordered) - 1, len(ordered) * 95 // 100)],
                "cpu_ms": sorted(self.cpu_times)[len(ordered) // 2], "runs": len(ordered),
                "peak_kib": self.peak_kib, "weights": self.weights}


def time_ms(command):
    """Milliseconds from before the process exists to after it was waited for, and those that it
    had a processor for."""
    # posix_spawn and not subprocess: Python's own work would be a large part of such short times.
    begin = time.perf_counter_ns()
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=[
        (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0)])
    _, status, usage = os.wait4(pid, 0)
    took = (time.perf_counter_ns() - begin) / 1e6
    code = os.waitstatus_to_exitcode(status)
    if code != 0:
        sys.exit(f"{' '.join(command)}: exit {code}")
    return took, 1e3 * (usage.ru_utime + usage.ru_stime)


def peak_kib(command):
    """The largest resident set of a command, in KiB. Says what went wrong where it fails."""
    result = subprocess.run([os.path.join(BIN, "peak_rss"), *command], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, check=False)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit {result.returncode}\n"
                 f"{result.stderr.decode(errors='replace')}")
    return int(result.stdout)


def weight_count(model):
    """Elements of the constants of two dimensions and more."""
    with open(model, "rb") as f:
        tensors = [n.tensor() for n in graphdef.read_graph(f.read()) if n.op == "Const"]
    return sum(t.size for t in tensors if t is not None and t.ndim >= 2)


def compile_command(folder, name, config):
    path = os.path.join(folder, f"{name}.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(config)
    return [NPUC, path, "-o", os.path.join(folder, name)]


def write_dense(folder, millions):
    """A net of LAYERS square layers with so many million weights; its config."""
    side = round((millions * 1e6 / LAYERS) ** 0.5)
    random = np.random.RandomState(millions)
    graph = graphdef.Graph()
    graph.placeholder("x", [1, side])
    attrs = {"T": graphdef.DType(np.float32)}
    last = "x"
    for i in range(LAYERS):
        values = random.standard_normal((side, side)).astype(np.float32) / np.sqrt(side)
        graph.const(f"w{i}", values.astype(np.float32))
        graph.node("MatMul", f"y{i}", [last, f"w{i}"], attrs)
        graph.node("Relu", f"r{i}", [f"y{i}"], attrs)
        last = f"r{i}"
    path = os.path.join(folder, f"dense_{millions}M.pb")
    with open(path, "wb") as f:
        f.write(graph.serialize())
    return models.CONFIG.format(model=path, compress="true", inputs=f"  x: [1, {side}]",
                                output=last)


def shared_models():
    return models.models() if os.path.isdir(os.path.join(SHARED, "models", "tf")) else []


def torch_subjects(folder):
    """The architectures that tests/oracle recorded; weights are their storages' float32 values."""
    found = []
    names = sorted(n for n in os.listdir(torch_nets.RECORDED) if n.startswith("net_"))
    for name in names:
        net, = torch_nets.read_nets(os.path.join(torch_nets.RECORDED, name))
        inside = os.path.join(folder, net.name)
        os.makedirs(inside)
        net.unpack(inside)
        with zipfile.ZipFile(os.path.join(inside, "scripted.pt")) as archive:
            weights = sum(i.file_size for i in archive.infolist() if "/data/" in i.filename) // 4
        found.append(Subject(net.name, [NPUC, os.path.join(inside, "scripted.yaml"), "-o",
                                        os.path.join(inside, "out")], weights))
    return found


def subjects(folder, smoke):
    found = [Subject("/bin/true", ["/bin/true"]),
             Subject("empty C++ program", [os.path.join(BIN, "bench_empty")]),
             Subject("npuc --version", [NPUC, "--version"]),
             Subject("the sample", [NPUC, SAMPLE, "-o", os.path.join(folder, "sample")],
                     weight_count(SAMPLE_MODEL))]
    for model in shared_models():
        path = os.path.join(SHARED, "models", "tf", model.path)
        found.append(Subject(model.name, compile_command(
            folder, model.name, models.config_of(model, path, True)), weight_count(path)))
    found += torch_subjects(folder)
    for millions in () if smoke else MILLIONS:
        name = f"dense_{millions}M"
        found.append(Subject(name, compile_command(folder, name, write_dense(folder, millions)),
                             weight_count(os.path.join(folder, f"{name}.pb")), large=True))
    return found


def compare(found, other_npuc, runs):
    """Prints how many times as long as with another npuc each net's compile takes."""
    print(f"{'times ' + other_npuc:24} {'passed':>8} {'cpu':>8} {'cpu ms':>8} {'runs':>5}")
    for subject in (s for s in found if s.weights is not None):
        pairs = []
        for turn in range(WARM_UP + max(runs // 5 if subject.large else runs, 3)):
            commands = [subject.command, [other_npuc, *subject.command[1:]]]
            # Who comes second finds more in the caches.
            order = (0, 1) if turn % 2 else (1, 0)
            times = {i: time_ms(commands[i]) for i in order}
            if turn >= WARM_UP:
                pairs.append([*times[0], *times[1]])
        took, cpu, other_took, other_cpu = np.transpose(pairs)
        print(f"{subject.name:24} {np.median(took / other_took):8.2f} "
              f"{np.median(cpu / other_cpu):8.2f} {np.median(cpu):8.2f} {len(pairs):5}", flush=True)


def frame_ms(folder, runs):
    """The simulator's milliseconds for a frame of SIMULATED, passed and on a processor; None
    without the model. The median of differences, each of two processes that ran one after the
    other."""
    model = next((m for m in shared_models() if m.name == SIMULATED), None)
    if model is None:
        return None
    (name, shape), = ((n, a.shape[1:]) for n, a in model.inputs.items())
    array = np.random.RandomState(1).randn(ITEMS, *shape).astype(np.float32)
    path = os.path.join(folder, "x.npy")
    np.save(path, array)
    run = [NPUC, "run", os.path.join(folder, SIMULATED, "model.h"), "--input", f"{name}={path}",
           "--output-dir", os.path.join(folder, "y"), "--frames"]
    differences = []
    for _ in range(runs):
        many, one = time_ms([*run, str(ITEMS)]), time_ms([*run, "1"])
        differences.append([(a - b) / (ITEMS - 1) for a, b in zip(many, one)])
    return np.median(differences, axis=0).tolist()


def page_touches_us():
    """Microseconds of the first write to each of PAGES huge pages: a compile has about as many."""
    with mmap.mmap(-1, (PAGES + 1) << 21, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        times = []
        for page in range(1, PAGES + 1):
            begin = time.perf_counter_ns()
            memory[page << 21] = 1
            times.append((time.perf_counter_ns() - begin) / 1e3)
        return times


def measure(found, runs):
    """Runs all in turn; returns page_touches_us() of between the turns."""
    touches = []
    for subject in found:
        subject.peak_kib = peak_kib(subject.command)
    for turn in range(WARM_UP + runs):
        touches += page_touches_us()
        for subject in found:
            if subject.large and turn >= WARM_UP + max(runs // 10, 3):
                continue
            took, cpu = time_ms(subject.command)
            if turn >= WARM_UP:
                subject.times.append(took)
                subject.cpu_times.append(cpu)
    return touches


def report_goal(subjects_of_goal, what, goal_ms):
    """Which of them meet a goal by their median, and how far the others are from it."""
    if not subjects_of_goal:
        return
    missed = [s for s in subjects_of_goal if s.median() > goal_ms]
    print(f"goal of {goal_ms:g} ms, {what}: met by {len(subjects_of_goal) - len(missed)} of "
          f"{len(subjects_of_goal)}; load average {os.getloadavg()[0]:.1f}")
    for subject in sorted(subjects_of_goal, key=Subject.median):
        verdict = "MISSED" if subject in missed else "met"
        print(f"  {verdict:6} {subject.name:22} {subject.weights:>10} weights, median "
              f"{subject.median():.2f} ms, minimum {min(subject.times):.2f}, on a processor "
              f"{min(subject.cpu_times):.2f}")


def report(found, touches, frame):
    print(f"{'':20} {'weights':>10} {'median ms':>10} {'mean':>8} {'min':>8} {'p95':>8} "
          f"{'cpu':>8} {'peak MiB':>9} {'runs':>5}")
    for subject in found:
        f = subject.figures()
        print(f"{subject.name:20} {subject.weights or '':>10} {f['median_ms']:10.2f} "
              f"{f['mean_ms']:8.2f} {f['min_ms']:8.2f} {f['p95_ms']:8.2f} "
              f"{f['cpu_ms']:8.2f} {subject.peak_kib / 1024:9.1f} {f['runs']:5}")
    report_goal([s for s in found if s.weights is not None and s.weights < SMALL_WEIGHTS],
                f"below {SMALL_WEIGHTS:,} weights", SMALL_GOAL)
    report_goal([s for s in found if s.weights is not None
                 and LARGE_WEIGHTS * 0.98 < s.weights], f"{LARGE_WEIGHTS:,} weights", LARGE_GOAL)
    dear = sum(t > 1000 for t in touches)
    print(f"first touch of 2 MiB between the turns: median {np.median(touches):.0f} us, longest "
          f"{max(touches):.0f}; {dear} of {len(touches)} over 1 ms" +
          (": pages that the machine's host had taken back, for which a compile waits" if dear
           else ""))
    large = [s for s in found if s.large]
    if len(large) > 1:
        spent = ", ".join(f"{1e6 * s.median() / s.weights:.1f}" for s in large)
        print(f"linear in size: {spent} ms for each million weights of "
              f"{', '.join(s.name for s in large)}")
    if frame is not None:
        passed, cpu = frame
        print(f"simulator, {SIMULATED}: {passed:.2f} ms for a frame, cpu {cpu:.2f}; goal of "
              f"{FRAME_GOAL:g} ms: {'met' if passed <= FRAME_GOAL else 'missed'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--runs", type=int, default=50, help="large nets run a tenth as often")
    parser.add_argument("--smoke", action="store_true", help="3 runs, no large nets")
    parser.add_argument("--against", metavar="DIR", help="compare with the npuc in DIR alone")
    parser.add_argument("--json", help="write the figures there, too")
    arguments = parser.parse_args()
    runs = 3 if arguments.smoke else max(arguments.runs, 1)
    if not os.path.exists(SAMPLE):
        print(f"skipped: {SAMPLE} is missing")
        return 77
    with tempfile.TemporaryDirectory(prefix="npuc-bench-") as folder:
        found = subjects(folder, arguments.smoke)
        if arguments.against:
            compare(found, os.path.join(arguments.against, "npuc"), runs)
            return 0
        touches = measure(found, runs)
        frame = frame_ms(folder, min(runs, 9))
    report(found, touches, frame)
    if arguments.json:
        figures = {s.name: s.figures() for s in found}
        with open(arguments.json, "w", encoding="utf-8") as f:
            json.dump({**figures, "simulator_frame_ms_cpu_ms": frame}, f, indent=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
