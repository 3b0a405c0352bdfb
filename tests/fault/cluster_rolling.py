#!/usr/bin/python3
"""A rolling upgrade of three npucds under load: no job may fail.

    cluster_rolling.py [--old NPUCD] [--new NPUCD] [--rounds 2] [--seed N]

Each node in turn gets SIGTERM, must end with 0, and starts again from the other build: in rounds
1, 3, ... from the new one, in rounds 2, 4, ... from the old one again. Both are the npucd of this
build unless others are named; they need tables of one version. Before the first node goes, the
tables are brought to a next version that takes the old nodes, as `npucd --migrate` of a next build
does. Clients may see only errors that invite a retry. Exit 77: PostgreSQL is not installed.
"""

import argparse
import contextlib
import os
import random
import subprocess
import sys
import time

import cluster_chaos  # which finds the rest
import chaos
import harness
import postgres

# Between two nodes, as an operator who waits until the last one serves.
PAUSE_SECONDS = 2
# A step that an old node can live with (server/pg/tables_4.sql).
NEXT_VERSION = """BEGIN; SET LOCAL lock_timeout = '10s';
ALTER TABLE npuc.job ADD COLUMN planted integer NOT NULL DEFAULT 0;
CREATE TABLE npuc.planted (job_id text PRIMARY KEY);
UPDATE npuc.cluster SET schema_version = schema_version + 1; COMMIT"""


def replace(node, npucd):
    """Returns how long the node took to stop."""
    begin = time.monotonic()
    node.process.terminate()
    try:
        code = node.process.wait(60)
    except subprocess.TimeoutExpired:
        raise harness.Failure(f"{node.name} does not end within 60 s of SIGTERM") from None
    harness.check(code == 0, f"{node.name} ended with {code}")
    seconds = time.monotonic() - begin
    node.set_program(npucd)
    node.start()
    return seconds


def run(options, server, folder):
    configs = chaos.write_nets(folder)
    stops = []
    with cluster_chaos.three_nodes(server, folder, npucd=options.old) as nodes:
        load = cluster_chaos.Load(configs, nodes, options.clients, options.seed,
                                  only_retryable=True)
        begin = time.monotonic()
        try:
            server.sql(NEXT_VERSION, cluster_chaos.DATABASE)
            for turn in range(options.rounds):
                for node in nodes:
                    time.sleep(PAUSE_SECONDS)
                    stops.append(replace(node, options.old if turn % 2 else options.new))
            time.sleep(PAUSE_SECONDS)
            seconds = time.monotonic() - begin
            kept, said = load.finish()
        except BaseException:
            load.end()
            raise
        print(said, end="")
        cluster_chaos.check_tables(server)
        builds = server.sql("SELECT count(DISTINCT build_id) FROM npuc.node",
                            cluster_chaos.DATABASE)
        figures = said.strip().splitlines()[-1] if said.strip() else "cluster_load died"
        harness.figure(f"cluster_rolling: {len(stops)} nodes replaced in {seconds:.0f} s, "
                       f"{builds} builds, seed {options.seed}, the longest stop "
                       f"{max(stops):.1f} s: {figures}")
        harness.check(kept, "a promise was broken")
        harness.check(" 0 given up" in figures, "a job failed since nodes left it")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--old", default=harness.program("npucd"))
    parser.add_argument("--new", default=harness.program("npucd"))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--clients", type=int, default=12)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    parser.add_argument("--keep", help="keep data and logs in this folder")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = options.keep or stack.enter_context(harness.scratch())
        os.makedirs(folder, exist_ok=True)
        server = stack.enter_context(postgres.server())
        try:
            run(options, server, folder)
        except harness.Failure as error:
            print(f"FAILED: {error} (seed {options.seed})")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
