#!/usr/bin/python3
"""Durable submits of 1, 2 and 4 npucds on one PostgreSQL, beside bare gRPC servers that make the
same batches there and beside pgbench, in turn; and the time from a submit at one idle node to its
start at another. With --idle: what PostgreSQL does for idle nodes and watchers of queued jobs.

    bench_cluster.py [--json FILE] [--nodes 1 2 4] [--rounds 7] [--seconds 2] [--smoke]
    bench_cluster.py --idle [--nodes 8] [--watchers 1000] [--seconds 60] [--smoke]

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
import time

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

    DEFAULT_TTL = 10  # seconds, of npucd

    def __init__(self, folder, name, server, url):
        super().__init__(folder, name, server, url, ttl=self.DEFAULT_TTL)
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


def submits(server, folder, options, report):
    """Nodes and bare servers, each kind on a database of its own. No more run than are measured:
    each node hears of all jobs of the others."""
    with contextlib.ExitStack() as stack:
        nodes, bare = [], []
        flags = ("--in-flight", options.in_flight, "--seconds", options.seconds)
        for count in sorted(options.nodes):
            for i in range(len(nodes), count):
                nodes.append(Node(folder, f"node{i}", server, server.url("nodes")))
                bare.append(Bare(folder, f"bare{i}", server, server.url("bare")))
                for one in (nodes[i], bare[i]):
                    one.start()
                    stack.callback(one.stop)
                if i == 0:  # uploads the model
                    nodes[0].json("compile", CONFIG, "-o", os.path.join(folder, "out"))
                nodes[i].remote("admin", "pause")
            ours, others, singles = [], [], []
            for subjects in (nodes, bare):
                measure(subjects, "--in-flight", options.in_flight, "--seconds",
                        options.seconds / 4)
            for _ in range(options.rounds):
                ours.append(measure(nodes, *flags))
                others.append(measure(bare, *flags))
                singles.append(pgbench(server, folder, options))
            report.add(count, "npucd submit", ours)
            report.add(count, "bare submit", others)
            report.add(count, "pgbench, one job", singles)
            report.ratio(count, "submit / bare submit", ours, others)
            report.ratio(count, "submit / pgbench", ours, singles)


def starts(server, folder, options, report):
    """The first node takes jobs and starts none; the second starts them, seen from the first."""
    with contextlib.ExitStack() as stack:
        nodes = [Node(folder, f"start{i}", server, server.url("starts")) for i in range(2)]
        for node in nodes:
            node.start()
            stack.callback(node.stop)
        nodes[0].json("compile", CONFIG, "-o", os.path.join(folder, "out"))  # uploads the model
        nodes[0].remote("admin", "cordon")
        sample = measure(nodes[:1], "--watch-at", nodes[0].address, "--jobs", options.jobs)
        report.add(2, "submit until the start elsewhere", [sample])
        harness.figure(f"bench_cluster: from a submit to its start at another node, seen from the "
                       f"first: p50 {sample['p50_ms']:.1f} ms, p99 {sample['p99_ms']:.1f} ms")


# The goal of all processes of PostgreSQL together, as a share of a core. The short form finds a
# statement that repeats without need; it has few nodes, and a start is a large part of it.
IDLE_SHARE, SMOKE_IDLE_SHARE = 0.03, 0.2


def idle(server, folder, options):
    """Nodes that may start nothing, and watchers of queued jobs."""
    url = server.new_database("idle")
    cluster.migrate(server, url)
    nodes = [Node(folder, f"idle{i}", server, url) for i in range(options.nodes[0])]
    with contextlib.ExitStack() as stack:
        for node in nodes:
            node.start()
            stack.callback(node.stop)
        nodes[0].json("compile", CONFIG, "-o", os.path.join(folder, "out"))  # uploads the model
        for node in nodes:
            node.remote("admin", "pause")
        watchers = subprocess.Popen(
            [harness.program("bench_cluster"), "--config", CONFIG, "--nodes",
             ",".join(node.address for node in nodes), "--watchers", str(options.watchers)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True)
        harness.check(watchers.stdout.readline() == "submitted\n", "not all were submitted")
        time.sleep(options.seconds / 4)
        calls = "SELECT xact_commit FROM pg_stat_database WHERE datname = 'idle'"
        before, commits = server.cpu_seconds(), int(server.sql(calls, "postgres"))
        time.sleep(options.seconds)
        used = server.cpu_seconds() - before
        commits = int(server.sql(calls, "postgres")) - commits
        waiting = server.sql("SELECT count(*) FROM npuc.job_queue WHERE tenant <> '0canary'",
                             "idle")
        watchers.stdin.close()
        harness.check(watchers.wait(60) == 0, "watchers were broken off")
    share = used / options.seconds
    harness.check(int(waiting) == options.watchers, f"{waiting} of {options.watchers} jobs wait")
    harness.figure(f"bench_cluster: {len(nodes)} idle nodes, {options.watchers} watchers of queued "
                   f"jobs: PostgreSQL {share * 100:.2f} % of a core, "
                   f"{commits / options.seconds:.0f} transactions/s")
    limit = SMOKE_IDLE_SHARE if options.smoke else IDLE_SHARE
    harness.check(share < limit, f"PostgreSQL takes {share * 100:.2f} % of a core for idle nodes; "
                  f"at most {limit * 100:.0f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="write the figures there, too")
    parser.add_argument("--nodes", type=int, nargs="+", help="1 2 4; with --idle 8")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, help="of one measurement: 2; with --idle 60")
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--jobs", type=int, default=300, help="starts to measure")
    parser.add_argument("--idle", action="store_true", help="what PostgreSQL does for idle nodes")
    parser.add_argument("--watchers", type=int, default=1000, help="of queued jobs, with --idle")
    parser.add_argument("--smoke", action="store_true", help="seconds in all: does it run?")
    options = parser.parse_args()
    options.nodes = options.nodes or ([8] if options.idle else [1, 2, 4])
    options.seconds = options.seconds or (60 if options.idle else 2.0)
    if options.idle:
        if options.smoke:
            options.nodes, options.watchers, options.seconds = [2], 20, 4
        with harness.scratch() as folder, postgres.server() as server:
            idle(server, folder, options)
        return 0
    if options.smoke:
        options.nodes, options.rounds, options.seconds, options.jobs = [1, 2], 1, 0.5, 5
        # pgbench's time includes that of its connections: 64 can take the whole of a short run.
        options.in_flight = 8
    report = Report()
    with harness.scratch() as folder, postgres.server() as server:
        for name in ("starts", "nodes", "bare"):
            cluster.migrate(server, server.new_database(name))
        server.sql(
            "INSERT INTO npuc.lane (incarnation, epoch, commit_no) SELECT "
            f"{FIRST_LANE} + g, 1, 0 FROM generate_series(0, {options.in_flight}) g", "bare")
        starts(server, folder, options, report)
        submits(server, folder, options, report)
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
