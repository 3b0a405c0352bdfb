#!/usr/bin/python3
"""Four nodes change and read the same jobs on one PostgreSQL, under faults; all answers must fit.

    cluster_histories.py [--operations 20000] [--seed N] [--plant stale|blind] [--only FAULT ...]

Each node is a `store_history`: eight threads on the real store. A history of a job is right
(linearizable) when each change and read can be given one moment between its call and its answer, so
that all answers are those of one store that does one thing at a time. A change whose answer was
lost may have its moment later, or never. The same of a request id and the job that it made.

FAULT is one of cluster_chaos.py. With --plant the nodes lie, and it must be found. Exit 77:
PostgreSQL is not installed.

The proof needs no search, since a job's versions are its revisions, one behind the other. Version v
is a state at position 2v, and the change to it is a moment at 2v - 1. Answers say at which position
an operation was; a refused change from version v was at any state but 2v. A history is right where
positions can be chosen that never fall from an operation to one that began after its end. To choose
the least possible one, in the order of the calls, finds such positions where there are some.
"""

import argparse
import collections
import contextlib
import glob
import heapq
import os
import random
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import harness  # noqa: E402
import cluster  # noqa: E402
import cluster_chaos  # noqa: E402
import postgres  # noqa: E402

NAMES = ("a", "b", "c", "d")
TTL_SECONDS = cluster_chaos.TTL_SECONDS
DATABASE = cluster_chaos.DATABASE
NEVER = float("inf")
CANNOT_JOIN = 1

Change = collections.namedtuple("Change", "start tag begin end answer")  # from version `start`
Read = collections.namedtuple("Read", "version tag begin end")


class Broken(Exception):
    """The history of a key cannot be."""


class History:
    """What was asked of one key."""

    def __init__(self):
        self.changes, self.reads = [], []

    def tags(self):
        """The change that made each version, as answers and reads tell."""
        by_tag = {change.tag: change for change in self.changes}
        made = {}
        told = [(read.version, read.tag) for read in self.reads if read.version > 0]
        told += [(c.start + 1, c.tag) for c in self.changes if c.answer == "ok"]
        for read in self.reads:
            if read.version == 0 and read.tag != "-":
                raise Broken(read.tag)
        for version, tag in told:
            if made.setdefault(version, tag) != tag:
                raise Broken(f"version {version} is {made[version]}'s and {tag}'s")
            change = by_tag.get(tag)
            if change is None:
                raise Broken(f"version {version} is by {tag}, which nobody sent")
            if change.start + 1 != version or change.answer == "no":
                raise Broken(f"version {version} is by {tag}, a change from version "
                             f"{change.start} that was answered {change.answer!r}")
        return made

    def _operations(self, made):
        """(begin, end, operation, position or None where it is free), by their begins. A change
        without an answer is among them where somebody saw what it made."""
        found = []
        for change in self.changes:
            if change.answer == "no":
                found.append((change.begin, change.end, change, None))
            elif change.answer == "ok":
                found.append((change.begin, change.end, change, 2 * change.start + 1))
            elif made.get(change.start + 1) == change.tag:
                found.append((change.begin, NEVER, change, 2 * change.start + 1))
        found += [(read.begin, read.end, read, 2 * read.version) for read in self.reads]
        return sorted(found, key=lambda one: one[0])

    def check(self):
        """Raises Broken. Returns how many versions there are."""
        made = self.tags()
        operations = self._operations(made)
        under_way = []  # (end, position), the first end first
        least = 0  # of what begins now
        for begin, end, operation, position in operations:
            while under_way and under_way[0][0] < begin:
                least = max(least, heapq.heappop(under_way)[1])
            if position is None:  # a refused change: at any state but the one that it wanted
                position = least + least % 2
                if position == 2 * operation.start:
                    position += 2
                    self._check_made(operation.start + 1, made, end, operation)
            elif position < least:
                raise Broken(f"{operation} is at position {position}, and begins behind {least}")
            heapq.heappush(under_way, (end, position))
        newest = max((position for *_, position in operations if position is not None), default=0)
        for version in range(1, (newest + 1) // 2 + 1):
            first = min((end for _, end, _, position in operations
                         if position is not None and position >= 2 * version), default=NEVER)
            if version not in made:
                self._check_made(version, made, first, "nobody saw it, and it was passed")
        return max((newest + 1) // 2, 0)

    def _check_made(self, version, made, before, why):
        """A version was made before a time: by the change that is known, or by one without an
        answer. The known one is checked by its own position."""
        if version in made:
            return
        if not any(c.start + 1 == version and c.answer == "unknown" and c.begin < before
                   for c in self.changes):
            raise Broken(f"nobody made version {version}: {why}")


def read_notes(folder):
    """(History by key, how many operations)"""
    histories = collections.defaultdict(History)
    count = 0
    for path in sorted(glob.glob(os.path.join(folder, "*.notes"))):
        sent = {}
        with open(path, encoding="ascii") as f:
            for line in f:
                word = line.split()
                if not line.endswith("\n"):
                    continue  # the process was killed
                if word[0] == "I":
                    sent[word[3]] = (word[1], int(word[2]), int(word[4]))
                elif word[0] == "C":
                    key, start, begin = sent.pop(word[2])
                    histories[key].changes.append(
                        Change(start, word[2], begin, int(word[3]), word[4]))
                    count += 1
                else:
                    histories[word[1]].reads.append(
                        Read(int(word[2]), word[3], int(word[4]), int(word[5])))
                    count += 1
        for tag, (key, start, begin) in sent.items():
            histories[key].changes.append(Change(start, tag, begin, NEVER, "unknown"))
            count += 1
    return histories, count


class Node:
    """A store_history, with the face that Faults knows."""

    def __init__(self, folder, name, url, secret_file, plant):
        self._command = [harness.program("store_history"), "--url", url, "--secret-file",
                         secret_file, "--name", name, "--folder", folder, "--ttl-seconds",
                         str(TTL_SECONDS), *(["--plant", plant] if plant else [])]
        self.process = None

    def start(self):
        self.process = subprocess.Popen(self._command, stderr=subprocess.DEVNULL)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def tend(self):
        """It ends by itself where it cannot join, as PostgreSQL is away."""
        if self.process.poll() == CANNOT_JOIN:
            self.start()


def operations_so_far(folder):
    total = 0
    for path in glob.glob(os.path.join(folder, "*.notes")):
        total += os.path.getsize(path)
    return total // 60  # bytes of a note


def run(options, server, folder):
    chance = random.Random(options.seed)
    url = server.new_database(DATABASE)
    cluster.migrate(server, url)
    proxy = cluster_chaos.Proxy(server, len(NAMES))
    nodes = [Node(folder, name, server.url(DATABASE, port=port), server.secret_file, options.plant)
             for name, port in zip(NAMES, proxy.ports)]
    faults = cluster_chaos.Faults(server, nodes, proxy, chance)
    begin = time.monotonic()
    try:
        for node in nodes:
            node.start()
        while operations_so_far(folder) < options.operations:
            faults.step(options.only, options.mean)
            for node in nodes:
                node.tend()
            time.sleep(0.02)
        faults.end_all()
        seconds = time.monotonic() - begin
    finally:
        for node in nodes:
            if node.process is not None:
                node.kill()
        proxy.end()
    histories, count = read_notes(folder)
    anomalies = []
    versions = 0
    for key, history in sorted(histories.items()):
        try:
            versions += history.check()
        except Broken as broken:
            anomalies.append(f"{key}: {broken}")
    unknown = sum(c.answer == "unknown" for h in histories.values() for c in h.changes)
    refused = sum(c.answer == "no" for h in histories.values() for c in h.changes)
    for anomaly in anomalies[:10]:
        print(f"  {anomaly}")
    harness.figure(f"cluster_histories: {count} operations on {len(histories)} keys by "
                   f"{len(NAMES)} nodes in {seconds:.0f} s under {sum(faults.counts.values())} "
                   f"faults, seed {options.seed}: {versions} versions, {refused} changes refused, "
                   f"{unknown} without an answer, {len(anomalies)} histories that cannot be")
    if options.plant:
        harness.check(anomalies, f"the planted mistake {options.plant} was not found")
    else:
        harness.check(not anomalies, "a history is not that of one store")
        harness.check(versions and refused, "this shows nothing")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--operations", type=int, default=20000)
    parser.add_argument("--mean", type=float, default=0.7, help="seconds between two faults")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    parser.add_argument("--plant", choices=("stale", "blind"))
    kinds = sorted(set(cluster_chaos.Faults.KINDS) - {"node_stopped", "disk_full"})
    parser.add_argument("--only", nargs="+", choices=kinds, default=kinds)
    options = parser.parse_args()
    with harness.scratch() as folder, postgres.server() as server:
        os.makedirs(folder, exist_ok=True)
        try:
            run(options, server, folder)
        except harness.Failure as error:
            print(f"FAILED: {error} (seed {options.seed})")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
