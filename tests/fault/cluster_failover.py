#!/usr/bin/python3
"""PostgreSQL dies and its standby takes over, again and again, under three npucds.

    cluster_failover.py [--times 10] [--seed N]                 to a synchronous standby, under load
    cluster_failover.py --asynchronous [--times 10] [--seed N]  to one that lacks the last commits

To a synchronous standby nothing may get lost. To one that lacks commits jobs do get lost, and each
node that had accepted one must say so. Exit 77: PostgreSQL is not installed.
"""

import argparse
import contextlib
import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import harness  # noqa: E402
import chaos  # noqa: E402
import cluster_chaos  # noqa: E402
import postgres  # noqa: E402
import service  # noqa: E402

DATABASE = cluster_chaos.DATABASE


class Pair:
    """A server and its standby, which change places."""

    def __init__(self, primary, standby, synchronous):
        self.primary, self._standby, self._synchronous = primary, standby, synchronous
        if synchronous:
            # The standby copies the setting: promoted, it commits nothing without a standby.
            self._admin(f"ALTER SYSTEM SET synchronous_standby_names = '{primary.STANDBY}'")
            self._admin("SELECT pg_reload_conf()")
        self.follow()

    def _admin(self, statement):
        return self.primary.sql(statement, "postgres")

    def follow(self):
        """Makes the other one a standby, and waits until it has all commits."""
        self._standby.follow(self.primary)
        self._standby.start(is_up=lambda: self._admin(
            "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = "
            f"'{'sync' if self._synchronous else 'async'}'") == "1")

    def hold_back(self):
        """From now on the standby gets nothing."""
        pid = self._admin("SELECT pid FROM pg_stat_replication")
        os.kill(int(pid), signal.SIGSTOP)

    def fail_over(self):
        self.primary.kill_all()
        self._standby.promote()
        self.primary, self._standby = self._standby, self.primary


def synchronous(options, pair, nodes, folder):
    chance = random.Random(options.seed)
    load = cluster_chaos.Load(chaos.write_nets(folder), nodes, clients=12, seed=options.seed)
    begin = time.monotonic()
    try:
        for _ in range(options.times):
            time.sleep(chance.uniform(0.2, 1.5))
            pair.fail_over()
            pair.follow()
        seconds = time.monotonic() - begin
        kept, said = load.finish()
    except BaseException:
        load.end()
        raise
    print(said, end="")
    cluster_chaos.check_tables(pair.primary)
    harness.figure(f"cluster_failover: {options.times} failovers to a synchronous standby in "
                   f"{seconds:.0f} s, seed {options.seed}: {said.strip().splitlines()[-1]}")
    harness.check(kept, "a promise was broken")


def submit(node, config):
    """(the job or None, what npuc-remote says)"""
    done = node.remote("compile", config, "--detach", "--no-cache", "--json", expect=None,
                       timeout=60)
    job = service.json_lines(done.stdout)[-1]["job"] if done.returncode == 0 else None
    return job, done.stdout + done.stderr


def refuses(node, config):
    job, said = submit(node, config)
    harness.check(job is None, f"{node.name} has lost commits and accepts a job")
    return "has lost commits" in said


def is_not_ready(node):
    health = node.json("health", expect=None)[-1]
    return not health["ready"] and "has lost commits" in str(health)


def asynchronous(options, pair, nodes, folder):
    chance = random.Random(options.seed)
    configs = chaos.write_nets(folder)
    found = lost = 0
    for _ in range(options.times):
        pair.hold_back()
        # Some of the nodes accept what will be lost; the others have nothing to tell.
        losers = chance.sample(nodes, chance.randint(1, len(nodes)))
        jobs = [submit(node, chance.choice(configs))[0] for node in losers]
        harness.check(all(jobs), "a job was not accepted")
        pair.fail_over()
        here = pair.primary.sql("SELECT count(*) FROM npuc.job WHERE job_id IN ("
                                + ", ".join(f"'{job}'" for job in jobs) + ")", DATABASE)
        harness.check(here == "0", f"{here} of the jobs were not lost: this shows nothing")
        for node in losers:
            # Whoever asks next, or nobody: it looks by itself.
            if chance.random() < 0.5:
                harness.wait_for(lambda node=node: refuses(node, configs[0]),
                                 f"word of {node.name} about its loss", interval=0.2)
            harness.wait_for(lambda node=node: is_not_ready(node),
                             f"unreadiness of {node.name} after its loss", interval=0.2)
            found += 1
        lost += len(jobs)
        pair.follow()
        # The operator starts them again, and they go on.
        for node in nodes:
            node.kill()
            node.start()
        job, said = submit(chance.choice(nodes), configs[0])
        harness.check(job is not None, f"after a loss: {said}")
        harness.check(nodes[0].wait(job)["state"] == "SUCCEEDED", "the first job after a loss")
    harness.figure(f"cluster_failover: {options.times} failovers to a standby without the last "
                   f"commits, seed {options.seed}: {lost} accepted jobs lost, each told of by its "
                   f"node ({found} of {found})")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    parser.add_argument("--asynchronous", action="store_true")
    parser.add_argument("--keep", help="keep data and logs in this folder")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = options.keep or stack.enter_context(harness.scratch())
        os.makedirs(folder, exist_ok=True)
        first = stack.enter_context(postgres.server())
        second = postgres.Postgres()
        stack.callback(second.end)
        try:
            pair = Pair(first, second, not options.asynchronous)
            with cluster_chaos.three_nodes(pair.primary, folder, standby=second) as nodes:
                (asynchronous if options.asynchronous else synchronous)(options, pair, nodes,
                                                                        folder)
        except harness.Failure as error:
            print(f"FAILED: {error} (seed {options.seed})")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
