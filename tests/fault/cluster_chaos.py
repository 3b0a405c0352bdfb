#!/usr/bin/python3
"""Three npucds on a PostgreSQL of the test's own, under clients with real compiles, and faults.

    cluster_chaos.py [--minutes 10] [--seed N] [--only FAULT ...]

FAULT is one of the functions of `Faults` below. Clients are `cluster_load`; `pg_proxy` stands
between each node and PostgreSQL. Exit 77: PostgreSQL is not installed.
"""

import argparse
import collections
import contextlib
import os
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import harness  # noqa: E402
import chaos  # noqa: E402
import cluster  # noqa: E402
import postgres  # noqa: E402

TTL_SECONDS = 2
NODES = ("a", "b", "c")
NO_NODE = -1  # of a fault that is PostgreSQL's
DISK_MIB = 2048  # for PostgreSQL, of memory
DISK_MIB_PER_MINUTE = 30  # jobs stay for days
DATABASE = "chaos"


class Proxy:
    """What passes between each node and PostgreSQL."""

    def __init__(self, server, nodes=len(NODES)):
        self._process = subprocess.Popen(
            [harness.program("pg_proxy"), "--target", server.socket(), "--nodes", str(nodes)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True)
        self.ports = [int(self._process.stdout.readline()) for _ in range(nodes)]

    def set(self, node, mode):
        harness.check(self._process.poll() is None, "pg_proxy has ended")
        self._process.stdin.write(f"{node} {mode}\n")
        self._process.stdin.flush()

    def end(self):
        self._process.stdin.close()
        self._process.wait(10)


class Load:
    """The clients."""

    def __init__(self, configs, nodes, clients, seed, only_retryable=False):
        self._process = subprocess.Popen(
            [harness.program("cluster_load"), *configs, "--nodes",
             ",".join(node.address for node in nodes), "--clients", str(clients), "--seed",
             str(seed), *(["--only-retryable"] if only_retryable else [])],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True)
        harness.check(self._process.stdout.readline() == "ready\n", "cluster_load did not begin")

    def _command(self, text):
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()

    def count(self):
        self._command("count")
        return int(self._process.stdout.readline() or -1)

    def finish(self):
        """(kept, what it says)"""
        self._command("finish")
        said, _ = self._process.communicate(timeout=1800)
        return self._process.returncode == 0, said

    def end(self):
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


class Faults:
    """Each function does a fault that is drawn for it; what must end later is in `_later`."""

    def __init__(self, server, nodes, proxy, chance):
        self._server, self._nodes, self._proxy, self._chance = server, nodes, proxy, chance
        self._later = []  # (when, node, what ends the fault of the node)
        self._next = time.monotonic()
        self.counts = collections.Counter()

    def _free_node(self):
        """A node that works; one always does."""
        broken = {number for _, number, _ in self._later} - {NO_NODE}
        if len(broken) == len(self._nodes) - 1:
            return None
        return self._chance.choice([n for n in range(len(self._nodes)) if n not in broken])

    def _until(self, longest, number, end):
        when = time.monotonic() + self._chance.uniform(0.1, longest)
        self._later.append((when, number, end))

    def _break_link(self, number, mode, longest):
        self._proxy.set(number, mode)
        self._until(longest, number, lambda: self._proxy.set(number, "pass"))

    def _start_node(self, number):
        """It waits for PostgreSQL, and no fault ends meanwhile."""
        self._empty_disk()
        self._nodes[number].start()

    def node_killed(self, number):
        self._nodes[number].kill()
        self._until(2 * TTL_SECONDS, number, lambda: self._start_node(number))

    def node_stopped(self, number):
        """SIGTERM: it hands back what it runs."""
        process = self._nodes[number].process
        process.terminate()

        def start():
            process.wait(60)
            self._start_node(number)

        self._until(TTL_SECONDS, number, start)

    def node_paused(self, number):
        """For up to three times its lease."""
        process = self._nodes[number].process
        process.send_signal(signal.SIGSTOP)
        self._until(3 * TTL_SECONDS, number, lambda: process.send_signal(signal.SIGCONT))

    def link_cut(self, number):
        self._break_link(number, "cut", 2 * TTL_SECONDS)

    def link_silent(self, number):
        self._break_link(number, "hole", 3 * TTL_SECONDS)

    def link_one_way(self, number):
        """What the node sends arrives, and it hears nothing."""
        self._break_link(number, "oneway", 3 * TTL_SECONDS)

    def link_slow(self, number):
        self._break_link(number, "delay", 3 * TTL_SECONDS)

    def answers_lost(self, number):
        self._break_link(number, "answers", 1)

    def sessions_ended(self, _):
        self._server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                         "application_name = 'npucd' ORDER BY random() LIMIT 5", DATABASE,
                         check=False)  # it may be recovering

    def session_killed(self, _):
        """kill -9 of a process of PostgreSQL: all of its sessions end, and it recovers."""
        pid = self._server.sql("SELECT pid FROM pg_stat_activity WHERE application_name = 'npucd' "
                               "ORDER BY random() LIMIT 1", DATABASE, check=False)
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)

    def database_killed(self, _):
        self._server.kill()
        self._empty_disk()

    def disk_full(self, _):
        """No room for PostgreSQL's log: it takes no commits, or ends."""
        if self._server.fill_disk():
            self._until(2 * TTL_SECONDS, NO_NODE, self._empty_disk)

    def _empty_disk(self):
        self._server.empty_disk()
        self._server.start()

    KINDS = {"node_killed": 4, "node_stopped": 1, "node_paused": 4, "link_cut": 4, "link_silent": 3,
             "link_one_way": 2, "link_slow": 2, "answers_lost": 8, "sessions_ended": 6,
             "session_killed": 1, "database_killed": 1, "disk_full": 1}

    def step(self, kinds, mean):
        """Ends what is due, and does the next fault where its time has come."""
        now = time.monotonic()
        self.end_due(now)
        if now >= self._next:
            self.do_one(kinds)
            self._next = now + self._chance.expovariate(1 / mean)

    def do_one(self, kinds):
        kind = self._chance.choices(kinds, [self.KINDS[one] for one in kinds])[0]
        number = self._free_node()
        if number is None and kind.split("_")[0] in ("node", "link", "answers"):
            return
        getattr(self, kind)(number)
        self.counts[kind] += 1

    def end_due(self, now):
        due = [one for one in self._later if one[0] <= now]
        self._later = [one for one in self._later if one[0] > now]
        for _, _, end in due:
            end()

    def end_all(self):
        self.end_due(float("inf"))


def check_tables(server):
    """What ended jobs and dead nodes leave goes from the tables."""
    def is_clean():
        return server.sql(
            "SELECT (SELECT count(*) FROM npuc.job WHERE ended_us IS NULL AND tenant <> '0canary')"
            " + (SELECT count(*) FROM npuc.job_queue WHERE tenant <> '0canary')"
            " + (SELECT count(*) FROM npuc.claim WHERE tenant <> '0canary')"
            " + (SELECT count(*) FROM npuc.flight WHERE flight_key NOT LIKE '0canary%')"
            " + (SELECT count(*) FROM npuc.reservation)"
            " + (SELECT count(*) FROM npuc.job_input WHERE name NOT LIKE 'blob/0canary/%')",
            DATABASE) == "0"

    harness.wait_for(is_clean, "tables without rows of ended jobs", seconds=30, interval=0.5)
    twice = server.sql(
        "SELECT count(*) FROM (SELECT 1 FROM npuc.job WHERE request_id <> '' GROUP BY tenant, "
        "request_id HAVING count(*) > 1) AS twice", DATABASE)
    harness.check(twice == "0", f"{twice} request ids have two jobs")


@contextlib.contextmanager
def three_nodes(server, folder, ports=None, standby=None, npucd=None):
    """On links of their own where `ports` has such; with a standby, on whichever takes writes."""
    url = server.new_database(DATABASE)
    cluster.migrate(server, url)
    nodes = []
    try:
        for number, name in enumerate(NODES):
            port = None if ports is None else ports[number]
            link = server.url(DATABASE, port=port, standby=standby)
            node = cluster.Node(folder, name, server, link, workers=2, ttl=TTL_SECONDS,
                                npucd=npucd)
            nodes.append(node)
            node.start()
        yield nodes
    finally:
        for node in nodes:
            if node.process is not None:
                with contextlib.suppress(ProcessLookupError):
                    node.process.send_signal(signal.SIGCONT)
            node.stop()


def run(options, server, folder):
    configs = chaos.write_nets(folder)
    chance = random.Random(options.seed)
    proxy = Proxy(server)
    try:
        with three_nodes(server, folder, ports=proxy.ports) as nodes:
            load = Load(configs, nodes, options.clients, options.seed)
            faults = Faults(server, nodes, proxy, chance)
            begin = time.monotonic()
            try:
                shown = begin
                while time.monotonic() < begin + options.minutes * 60:
                    faults.step(options.only, options.mean)
                    now = time.monotonic()
                    if now > shown + 30:
                        shown = now
                        print(f"  {now - begin:.0f} s: {sum(faults.counts.values())} faults, "
                              f"{load.count()} jobs accepted", flush=True)
                    time.sleep(0.02)
                faults.end_all()
                healed = time.monotonic()
                kept, said = load.finish()
                print(said, end="")
                seconds = healed - begin
            except BaseException:
                load.end()
                raise
            check_tables(server)
            figures = said.strip().splitlines()[-1] if said.strip() else "cluster_load died"
            kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(faults.counts.items()))
            harness.figure(f"cluster_chaos of {seconds:.0f} s, seed {options.seed}: "
                           f"{sum(faults.counts.values())} faults ({kinds}); {figures}")
            harness.check(kept, "a promise was broken")
    except harness.Failure as error:
        raise harness.Failure(f"{error} (seed {options.seed})") from error
    finally:
        proxy.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=0.5)
    parser.add_argument("--mean", type=float, default=0.5, help="seconds between two faults")
    parser.add_argument("--clients", type=int, default=12)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    parser.add_argument("--only", nargs="+", choices=sorted(Faults.KINDS),
                        default=sorted(Faults.KINDS))
    parser.add_argument("--keep", help="keep data and logs in this folder")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = options.keep or stack.enter_context(harness.scratch())
        os.makedirs(folder, exist_ok=True)
        server = stack.enter_context(postgres.server(
            DISK_MIB + int(DISK_MIB_PER_MINUTE * options.minutes)))
        if not server.has_own_disk:
            options.only = [kind for kind in options.only if kind != "disk_full"]
            print("  no tmpfs can be mounted here: without a full disk")
        try:
            run(options, server, folder)
        except harness.Failure as error:
            print(f"FAILED: {error}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
