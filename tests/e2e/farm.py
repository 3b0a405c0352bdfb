"""A CI farm's morning: 200 configs from three npuc-remote at once, one killed in the middle and run
again; a summary for machines and an exit code from each.
"""

import json
import os
import signal
import subprocess

import graphdef
import harness
import numpy as np
import service

CONFIGS = (67, 67, 66)
KILLED, FAILING = 1, 2
BAD = 3  # of the last client's models
CONFIG = """\
CORENAME: GRUS
NPU_UNIT: NPU32
FRAMEWORK: TF
OUTPUT_TYPE: c_code
MODEL_FILE: net{i}.pb
OUTPUT_FILE: net{i}.h
INPUT_OPS:
  x: [1, 32]
OUTPUT_OPS: [y]
"""


def write_configs(folder, count, bad, seed):
    """`count` configs with a model each, the first `bad` of which cannot be compiled."""
    os.makedirs(folder)
    floats = {"T": graphdef.DType(np.float32)}
    weights = np.random.RandomState(seed)
    for i in range(count):
        graph = graphdef.Graph()
        graph.placeholder("x", [1, 32])
        graph.const("w", weights.randn(32, 16).astype(np.float32))
        graph.node("MatMul", "m", ["x", "w"], floats)
        graph.node("Frobnicate" if i < bad else "Relu", "y", ["m"], floats)
        with open(os.path.join(folder, f"net{i}.pb"), "wb") as f:
            f.write(graph.serialize())
        with open(os.path.join(folder, f"net{i}.yaml"), "w", encoding="utf-8") as f:
            f.write(CONFIG.format(i=i))


class Client:
    """npuc-remote on one folder of configs."""

    def __init__(self, folder, name, address):
        self.configs = os.path.join(folder, name)
        self.out = os.path.join(folder, name + ".out")
        self._text = os.path.join(folder, name + ".jsonl")
        self._environment = {**os.environ, "NPUC_SERVER": address,
                             "SOURCE_DATE_EPOCH": harness.EPOCH}
        self.process = None

    def start(self):
        with open(self._text, "wb") as text:
            self.process = subprocess.Popen(
                [harness.program("npuc-remote"), "compile", self.configs, "-o", self.out, "--json"],
                stdout=text, stderr=subprocess.DEVNULL, env=self._environment)

    def lines(self):
        with open(self._text, encoding="utf-8") as text:
            return [line for line in text.read().split("\n")[:-1] if line]

    def finish(self, exit_code, count, bad):
        """Waits for the end, which must be as told; the summary."""
        harness.check(self.process.wait(300) == exit_code,
                      f"{self.configs}: exit code {self.process.returncode}, not {exit_code}")
        lines = [json.loads(line) for line in self.lines()]
        summary = lines[-1]["summary"]
        states = {state: count for state, count in
                  (("FAILED", bad), ("SUCCEEDED", count - bad)) if count}
        harness.check(summary["states"] == states and summary["exit_code"] == exit_code and
                      summary["configs"] == summary["ended"] == count, f"summary {summary}")
        told = sorted(os.path.basename(line["config"]) for line in lines[:-1])
        harness.check(told == sorted(f"net{i}.yaml" for i in range(count)), f"lines of {told}")
        for line in lines[:-1]:
            if line["state"] == "FAILED":
                harness.check(line["diagnostics"], f"{line['config']} failed without a reason")
        made = sorted(os.listdir(self.out))
        harness.check(made == sorted(f"net{i}" for i in range(bad, count)), f"folders {made}")
        return summary


def main(arguments):
    with harness.scratch() as folder, service.daemon(folder) as server:
        clients = []
        for i, count in enumerate(CONFIGS):
            client = Client(folder, f"client{i}", server.address)
            write_configs(client.configs, count, BAD if i == FAILING else 0, seed=i)
            clients.append(client)
        for client in clients:
            client.start()
        victim = clients[KILLED]
        harness.wait_for(lambda: len(victim.lines()) >= 5, "jobs of the client to kill", 60)
        victim.process.send_signal(signal.SIGKILL)
        victim.process.wait()
        before = len(victim.lines())
        harness.check(before < CONFIGS[KILLED], "the client was through before it was killed")
        victim.start()
        summaries = [client.finish(1 if i == FAILING else 0, CONFIGS[i], BAD if i == FAILING else 0)
                     for i, client in enumerate(clients)]
        harness.check(summaries[KILLED]["cache_hits"] >= before,
                      f"{before} jobs were done, and {summaries[KILLED]['cache_hits']} from the "
                      "cache when the client came again")
        for client, index in ((clients[0], 7), (victim, 40)):
            plain = os.path.join(folder, "plain")
            harness.npuc(os.path.join(client.configs, f"net{index}.yaml"), "-o", plain)
            with open(os.path.join(plain, f"net{index}.h"), "rb") as a, \
                    open(os.path.join(client.out, f"net{index}", f"net{index}.h"), "rb") as b:
                harness.check(a.read() == b.read(), f"net{index}.h differs from npuc's")
        seconds = max(summary["seconds"] for summary in summaries)
        harness.figure(f"farm: {sum(CONFIGS)} configs, three clients, one killed after {before} "
                       f"and run again: {seconds:.1f} s, exit codes 0, 0, 1")
