"""Backup, restore and check of a real npucd's data.

    run_e2e.py backup

`npucd --backup` runs while four clients submit jobs without a pause. Whatever was accepted before
it began is in the restored data, and ends there; jobs that had ended keep their artifacts to the
byte. `npucd --check` finds nothing wrong with it; then a file is damaged, and it says which.
"""

import os
import threading
import time

import harness
import service

SAMPLE = os.path.join(harness.SAMPLE, "config.yaml")
CLIENTS = 4


class Load:
    """Clients that submit until they are told to stop."""

    def __init__(self, server):
        self._server = server
        self._lock = threading.Lock()
        self._ends = threading.Event()
        self._threads = [threading.Thread(target=self._submit) for _ in range(CLIENTS)]
        self.accepted = []
        self.errors = []

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._ends.set()
        for thread in self._threads:
            thread.join()

    def _submit(self):
        while not self._ends.is_set():
            try:
                job = self._server.json("submit", SAMPLE, "--no-cache")[-1]["job"]
            except harness.Failure as error:
                self.errors.append(str(error))
                return
            with self._lock:
                self.accepted.append(job)

    def count(self):
        with self._lock:
            return len(self.accepted)

    def so_far(self):
        with self._lock:
            return list(self.accepted)


def artifact(server, job, folder):
    server.remote("fetch", job, "-o", folder)
    with open(os.path.join(folder, "kws_cnn.h"), "rb") as f:
        return f.read()


def under_load(folder):
    """Backs up under load; returns the jobs that had been accepted before, and one's header."""
    backup = os.path.join(folder, "backup")
    with service.daemon(folder) as server, Load(server) as load:
        first = harness.wait_for(load.so_far, "an accepted job")[0]
        server.wait(first)
        header = artifact(server, first, os.path.join(folder, "before"))
        harness.wait_for(lambda: load.count() >= 12, "twelve accepted jobs", seconds=60)
        before = load.so_far()
        began = time.monotonic()
        said = harness.run(harness.program("npucd"), "--data-dir", os.path.join(folder, "data"),
                           "--backup", backup).stdout
        seconds = time.monotonic() - began
        harness.check("backed up into" in said, said)
        # The daemon serves meanwhile.
        later = load.count()
        harness.wait_for(lambda: load.count() > later, "a job accepted after the backup")
        harness.check(not load.errors, load.errors[:1])
        harness.check(os.listdir(os.path.join(folder, "data", "snapshots")) == [],
                      "the snapshot was left")
    harness.figure(f"backup: {len(before)} jobs accepted before it, {seconds:.1f} s under load")
    return backup, before, first, header


def restored(folder, backup, before, first, header):
    again = os.path.join(folder, "again")
    os.mkdir(again)
    data = os.path.join(again, "data")
    npucd = harness.program("npucd")
    harness.run(npucd, "--restore", backup, "--data-dir", data)
    checked = harness.run(npucd, "--check", data).stdout
    harness.check("0 damaged and removed, 0 beyond repair" in checked, checked)
    with service.daemon(again) as server:
        for job in before:
            state = server.wait(job)["state"]
            harness.check(state == "SUCCEEDED", f"job {job}, accepted before the backup: {state}")
        same = artifact(server, first, os.path.join(folder, "after")) == header
        harness.check(same, "a restored artifact has other bytes")
    return data


def damaged(data):
    npucd = harness.program("npucd")
    blobs = [os.path.join(where, name)
             for where, _, names in os.walk(os.path.join(data, "blobs", "blobs"))
             for name in names]
    os.chmod(blobs[0], 0o600)
    with open(blobs[0], "r+b") as f:
        f.write(b"damaged")
    said = harness.run(npucd, "--check", data).stdout
    harness.check("was damaged and is removed" in said and "1 damaged and removed" in said, said)
    harness.check("0 damaged and removed" in harness.run(npucd, "--check", data).stdout,
                  "the damage was not mended")


def refused(folder, backup):
    npucd = harness.program("npucd")
    data = os.path.join(folder, "data")
    for arguments, code, found in (
            (("--restore", backup, "--data-dir", data), 1, "in use"),
            (("--backup", backup, "--data-dir", data), 1, "in use"),
            (("--backup", os.path.join(folder, "b"), "--data-dir", folder), 1,
             "no data directory"),
            (("--backup", "x", "--restore", "y", "--data-dir", data), 2, "exclude each other"),
            (("--backup", "x"), 2, "--data-dir DIR is required")):
        said = harness.run(npucd, *arguments, expect=code).stderr
        harness.check(found in said, f"{arguments}: {said}")
    with service.daemon(folder):
        said = harness.run(npucd, "--check", data, expect=1).stderr
        harness.check("in use by another npucd" in said, said)


def main(_):
    with harness.scratch() as folder:
        backup, before, first, header = under_load(folder)
        data = restored(folder, backup, before, first, header)
        damaged(data)
        refused(folder, backup)
