#!/usr/bin/python3
"""Jobs at a steady rate through the store and the board of a cluster, on a PostgreSQL where a
reader holds an old snapshot for a while, so that no dead row can go.

    bench_bloat.py [--rate 500] [--before 60] [--held 300] [--after 60] [--smoke] [--plant]

It fails where claims become slow, the queue grows, or the tables do not recover behind the reader.
Exit 77: PostgreSQL is not installed.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import harness  # noqa: E402
import cluster  # noqa: E402
import postgres  # noqa: E402

DATABASE = "bloat"
HOT_TABLES = ("job", "job_queue", "claim", "flight", "tenant", "tenant_clock", "lane", "node",
              "change", "request", "job_input")


class Reader:
    """A session with a snapshot of REPEATABLE READ, from now until it is closed."""

    def __init__(self, server):
        self._process = subprocess.Popen(
            ["psql", "-qAtX", server.url(DATABASE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            universal_newlines=True, env={**os.environ, "PGPASSWORD": server.PASSWORD})
        self._say("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM npuc.job;")
        self._ended_before = int(self._process.stdout.readline())

    def _say(self, sql):
        self._process.stdin.write(sql + "\n")
        self._process.stdin.flush()

    def close(self):
        """Returns how many jobs it saw: those of its begin, if the snapshot was held."""
        self._say("SELECT count(*) FROM npuc.job; COMMIT;")
        seen = int(self._process.stdout.readline())
        self._process.stdin.close()
        self._process.wait(10)
        harness.check(seen == self._ended_before, "the reader's snapshot was not held")
        return seen


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))]


class Load:
    """The driver, whose seconds are read as they come."""

    def __init__(self, server, url, options):
        seconds = options.before + options.held + options.after
        self.process = subprocess.Popen(
            [harness.program("bench_bloat"), "--url", url, "--secret-file", server.secret_file,
             "--rate", str(options.rate), "--seconds", str(seconds), "--dead-rows",
             str(options.dead_rows), *(["--no-janitor"] if options.plant else [])],
            stdout=subprocess.PIPE, universal_newlines=True)
        self.seconds = []
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self):
        for line in self.process.stdout:
            self.seconds.append(json.loads(line))

    def wait(self):
        code = self.process.wait()
        self._thread.join()
        harness.check(code == 0, f"bench_bloat ended with {code}")


def tables(server):
    """Dead rows and bytes by table."""
    rows = server.sql(
        "SELECT c.relname, s.n_dead_tup, pg_table_size(c.oid), pg_indexes_size(c.oid), "
        "s.autovacuum_count, s.vacuum_count, s.n_tup_upd, s.n_tup_hot_upd "
        "FROM pg_class c JOIN pg_stat_user_tables s ON s.relid = c.oid "
        "WHERE c.relnamespace = 'npuc'::regnamespace", DATABASE)
    keys = ("dead", "table_bytes", "index_bytes", "autovacuums", "vacuums", "updates", "hot")
    found = {}
    for row in rows.splitlines():
        name, *values = row.split("|")
        if name in HOT_TABLES:
            found[name] = dict(zip(keys, map(int, values)))
    return found


def show(when, found):
    for name, row in sorted(found.items()):
        print(f"{when:>8} {name:12} dead {row['dead']:8} table {row['table_bytes'] >> 10:8} KiB "
              f"indexes {row['index_bytes'] >> 10:8} KiB, vacuums {row['autovacuums']} + "
              f"{row['vacuums']}, updates {row['updates']} HOT {row['hot']}", flush=True)


def figures(seconds, begin, end):
    part = [one for one in seconds if begin <= one["at"] < end]
    harness.check(len(part) >= 2, f"no figures from {begin:.0f} to {end:.0f} s")
    claims = [ms for one in part for ms in one["claim_ms"]]
    submits = [ms for one in part for ms in one["submit_ms"]]
    harness.check(claims and submits, f"no job from {begin:.0f} to {end:.0f} s")
    row = {"from": round(begin), "to": round(end)}
    row["ended_per_second"] = ((part[-1]["ended"] - part[0]["ended"]) /
                               (part[-1]["at"] - part[0]["at"]))
    row["waiting"] = part[-1]["waiting"]
    for name, values in (("claim", claims), ("submit", submits)):
        row[f"{name}_p50_ms"] = percentile(values, 0.5)
        row[f"{name}_p99_ms"] = percentile(values, 0.99)
    print("  ".join(f"{key} {value:.4g}" for key, value in row.items()), flush=True)
    return row


class Run:
    """A load with a reader in its middle, and the figures of each part."""

    def __init__(self, server, options):
        url = server.new_database(DATABASE)
        cluster.migrate(server, url)
        load = Load(server, url, options)
        begin = time.monotonic()
        time.sleep(options.before)
        show("before", tables(server))
        reader = Reader(server)
        held_at = time.monotonic() - begin
        time.sleep(options.held)
        self.held_tables = tables(server)
        show("held", self.held_tables)
        reader.close()
        freed_at = time.monotonic() - begin
        self.cleaned_after = self._await_clean(server, options.after)
        load.wait()
        show("after", tables(server))
        last = options.before + options.held + options.after
        self.before = figures(load.seconds, min(2, options.before / 2), held_at)
        step = max(2.5, options.held / 10)
        held = [held_at + i * step for i in range(round(options.held / step) + 1)]
        self.held = [figures(load.seconds, *ends) for ends in zip(held, held[1:])]
        self.after = figures(load.seconds, freed_at, last)
        self.recovered = figures(load.seconds, last - max(3, options.after / 4), last)

    def _await_clean(self, server, seconds):
        """Seconds until most dead rows of the queue are gone; None: they stay."""
        begin = time.monotonic()
        while time.monotonic() < begin + seconds:
            if tables(server)["job_queue"]["dead"] < self.held_tables["job_queue"]["dead"] / 2:
                return time.monotonic() - begin
            time.sleep(0.25)
        return None

    def check(self, options):
        dead = self.held_tables["job_queue"]["dead"]
        # Each job leaves two versions of its row. The reader has kept all of them, or it shows
        # nothing.
        per_second = sum(row["ended_per_second"] for row in self.held) / len(self.held)
        kept = per_second * options.held
        harness.check(per_second > 0.8 * options.rate,
                      f"the queue grows beside the reader: {per_second:.0f} jobs/s end")
        harness.check(dead > kept, f"the reader kept {dead} dead rows of {kept:.0f} jobs only")
        for row in self.held:
            harness.check(row["claim_p99_ms"] < options.limit_ms,
                          f"claims take too long beside the reader: {row}")
        harness.check(self.cleaned_after is not None,
                      f"{options.after:.0f} s behind the reader most of {dead} dead rows are left")
        harness.check(self.recovered["claim_p99_ms"] < options.limit_ms, f"{self.recovered}")
        harness.figure(
            f"bench_bloat: {options.rate:.0f} jobs/s, a snapshot held for {options.held:.0f} s: "
            f"claim p99 {self.before['claim_p99_ms']:.1f} ms before, at most "
            f"{max(row['claim_p99_ms'] for row in self.held):.1f} ms beside it, "
            f"{self.recovered['claim_p99_ms']:.1f} ms at the end; {dead} dead rows of the queue, "
            f"cleaned {self.cleaned_after:.1f} s behind it")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="write the figures there, too")
    parser.add_argument("--rate", type=float, default=500, help="jobs a second")
    parser.add_argument("--before", type=float, default=60, help="seconds without the reader")
    parser.add_argument("--held", type=float, default=300, help="seconds beside it")
    parser.add_argument("--after", type=float, default=60, help="seconds behind it")
    parser.add_argument("--limit-ms", type=float, default=20, help="of a claim's p99")
    parser.add_argument("--dead-rows", type=int, default=10000, help="that the janitor tolerates")
    parser.add_argument("--smoke", action="store_true", help="23 seconds in all, on a busy machine")
    parser.add_argument("--plant", action="store_true",
                        help="without a janitor, which must be found")
    options = parser.parse_args()
    if options.smoke:
        options.rate, options.limit_ms, options.dead_rows = 100, 200, 300
        options.before, options.held, options.after = 3, 8, 12
    with harness.scratch(), postgres.server() as server:
        run = Run(server, options)
        try:
            run.check(options)
        except harness.Failure as failure:
            if not options.plant:
                raise
            print(f"found: {failure}")
            return 0
    harness.check(not options.plant, "nothing was found although no janitor ran")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as f:
            json.dump([run.before, *run.held, run.after, run.recovered], f, indent=1)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except harness.Failure as error:
        print(f"FAILED: {error}")
        sys.exit(1)
