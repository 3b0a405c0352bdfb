#!/usr/bin/python3
"""Durable submits of 1, 2 and 4 npucds on one PostgreSQL, beside bare gRPC servers that make the
same batches there and beside pgbench, in turn; and the time from a submit at one idle node to its
start at another.

    bench_cluster.py [--json FILE] [--nodes 1 2 4] [--rounds 7] [--seconds 2] [--smoke]

Exit 77: PostgreSQL is not installed.
"""

import argparse
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import harness  # noqa: E402
import cluster  # noqa: E402
import postgres  # noqa: E402

CONFIG = os.path.join(harness.SAMPLE, "config.yaml")
# Each client of pgbench has a lane of its own, above those of nodes.
FIRST_LANE = 1000000
# One job in a transaction, of the size that npucd stores: the same function as a batch of one.
PGBENCH = f"""\\set id random(1, 9000000000000000000)
SELECT apply_batch({FIRST_LANE} + :client_id, 1,
  (SELECT commit_no + 1 FROM lane WHERE incarnation = {FIRST_LANE} + :client_id),
  ARRAY['p' || :id], '{{default}}', '{{1}}', '{{1}}', '{{0}}', '{{1}}', '{{-1}}',
  ARRAY['r' || :id], ARRAY[convert_to(repeat('r', 600), 'UTF8')],
  ARRAY[convert_to(repeat('c', 1200), 'UTF8')], ARRAY[:id::bigint], '{{1}}', '{{NULL}}', '{{NULL}}',
  '{{9223372036854775807}}', ARRAY['p' || :id], '{{1}}',
  ARRAY[convert_to(repeat('e', 40), 'UTF8')], ARRAY['p' || :id], '{{blob/default/x}}', '{{0}}');
"""


class Node(cluster.Node):
    """A node with room for all that is submitted, which can be told to start none of it."""

    def __init__(self, folder, name, server, url):
        super().__init__(folder, name, server, url)
        self._security += ("--max-queued", "10000000")

    def pids(self):
        return [self.process.pid]


class Bare:
    """A bare server."""

    def __init__(self, folder, name, server, url):
        self._port_file = os.path.join(folder, f"{name}.port")
        self.process = subprocess.Popen(
            [harness.program("bench_cluster"), "--bare", url, "--secret-file", server.secret_file,
             "--name", name, "--port-file", self._port_file], stdin=subprocess.PIPE)

    def start(self):
        def address():
            harness.check(self.process.poll() is None, "a bare server has ended")
            with contextlib.suppress(FileNotFoundError):
                with open(self._port_file, encoding="utf-8") as f:
                    return f.read().strip().split("=")[1]
            return None

        self.address = harness.wait_for(address, "port of a bare server")

    def pids(self):
        return [self.process.pid]

    def stop(self):
        self.process.stdin.close()
        self.process.wait(30)


def cpu_seconds(subjects):
    ticks = 0
    for subject in subjects:
        for pid in subject.pids():
            with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
                fields = f.read().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def measure(subjects, *arguments):
    before = cpu_seconds(subjects)
    done = harness.run(harness.program("bench_cluster"), "--config", CONFIG, "--nodes",
                       ",".join(one.address for one in subjects), *arguments)
    sample = json.loads(done.stdout)
    sample["servers_cpu_us"] = (cpu_seconds(subjects) - before) / sample["calls"] * 1e6
    return sample


def pgbench(server, folder, options):
    script = os.path.join(folder, "single.sql")
    with open(script, "w", encoding="utf-8") as f:
        f.write(PGBENCH)
    done = harness.run(
        "pgbench", "-n", "-c", options.in_flight, "-j", 2, "-T", max(2, round(options.seconds)),
        "-M", "prepared", "-f", script, server.url("bare"),
        env={"PGPASSWORD": server.PASSWORD, "PGOPTIONS": "-c search_path=npuc -c jit=off"})
    found = re.search(r"^tps = ([0-9.]+)", done.stdout, re.MULTILINE)
    harness.check(found and "0 failed" not in done.stderr, f"pgbench: {done.stdout}{done.stderr}")
    return {"per_second": float(found.group(1))}


class Report:
    def __init__(self):
        self.rows = []

    def add(self, nodes, subject, samples):
        row = {"nodes": nodes, "subject": subject, "rounds": len(samples)}
        for key in samples[0]:
            row[key] = statistics.median(sample[key] for sample in samples)
        self.rows.append(row)
        print("  ".join(f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}"
                        for key, value in row.items()), flush=True)

    def ratio(self, nodes, name, ours, others):
        ratios = [a["per_second"] / b["per_second"] for a, b in zip(ours, others)]
        row = {"nodes": nodes, "ratio": name, "value": statistics.median(ratios),
               "least": min(ratios), "most": max(ratios)}
        self.rows.append(row)
        harness.figure(f"bench_cluster: {nodes} nodes, {name}: {row['value']:.2f} "
                       f"(rounds {row['least']:.2f} to {row['most']:.2f})")


def make_all(server, folder, count):
    """So many nodes and so many bare servers, each kind on a database of its own."""
    nodes = [Node(folder, f"node{i}", server, server.url("nodes")) for i in range(count)]
    bare = [Bare(folder, f"bare{i}", server, server.url("bare")) for i in range(count)]
    for one in nodes + bare:
        one.start()
    nodes[0].json("compile", CONFIG, "-o", os.path.join(folder, "out"))  # uploads the model
    return nodes, bare


def submits(server, folder, nodes, bare, options, report):
    for node in nodes:
        node.remote("admin", "pause")
    for count in options.nodes:
        ours, others, singles = [], [], []
        flags = ("--in-flight", options.in_flight, "--seconds", options.seconds)
        for subjects in (nodes[:count], bare[:count]):
            measure(subjects, "--in-flight", options.in_flight, "--seconds", options.seconds / 4)
        for _ in range(options.rounds):
            ours.append(measure(nodes[:count], *flags))
            others.append(measure(bare[:count], *flags))
            singles.append(pgbench(server, folder, options))
        report.add(count, "npucd submit", ours)
        report.add(count, "bare submit", others)
        report.add(count, "pgbench, one job", singles)
        report.ratio(count, "submit / bare submit", ours, others)
        report.ratio(count, "submit / pgbench", ours, singles)


def starts(nodes, options, report):
    """The first node takes jobs and starts none; the second starts them, seen from the first."""
    nodes[0].remote("admin", "pause")
    sample = measure(nodes[:1], "--watch-at", nodes[0].address, "--jobs", options.jobs)
    report.add(2, "submit until the start elsewhere", [sample])
    harness.figure(f"bench_cluster: from a submit to its start at another node, seen from the "
                   f"first: p50 {sample['p50_ms']:.1f} ms, p99 {sample['p99_ms']:.1f} ms")
    nodes[0].remote("admin", "resume")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="write the figures there, too")
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2.0, help="of one measurement")
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--jobs", type=int, default=300, help="starts to measure")
    parser.add_argument("--smoke", action="store_true", help="seconds in all: does it run?")
    options = parser.parse_args()
    if options.smoke:
        options.nodes, options.rounds, options.seconds, options.jobs = [1, 2], 1, 0.5, 5
        # pgbench's time includes that of its connections: 64 can take the whole of a short run.
        options.in_flight = 8
    report = Report()
    with harness.scratch() as folder, postgres.server() as server, contextlib.ExitStack() as stack:
        for name in ("nodes", "bare"):
            cluster.migrate(server, server.new_database(name))
        server.sql(
            "INSERT INTO npuc.lane (incarnation, epoch, commit_no) SELECT "
            f"{FIRST_LANE} + g, 1, 0 FROM generate_series(0, {options.in_flight}) g", "bare")
        nodes, bare = make_all(server, folder, max(2, *options.nodes))
        for one in nodes + bare:
            stack.callback(one.stop)
        starts(nodes, options, report)
        submits(server, folder, nodes, bare, options, report)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as f:
            json.dump(report.rows, f, indent=1)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except harness.Failure as error:
        print(f"FAILED: {error}")
        sys.exit(1)
