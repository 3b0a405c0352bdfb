"""A disk that others fill to its end under a daemon with jobs: none may be lost, none may fail, and
once there is room all end as if nothing had been. The disk is a tmpfs of the test's own, so this
needs a user who may mount one.
"""

import contextlib
import os
import signal
import subprocess
import time

import harness
import service

DISK_MIB = 256
# Less than what RocksDB wants before it goes on (OPERATIONS.md), so that the daemon must learn from
# its stores, and not from the free space alone, that it is not ready.
RESERVE_MIB = 1
# What is free as the daemon starts: so little that RocksDB cannot reserve room for its logs ahead,
# into which jobs would go for long after the disk is full.
START_BYTES = 8 << 20
FLAGS = (*service.NO_SPARES, "--disk-reserve-mib", str(RESERVE_MIB))


@contextlib.contextmanager
def disk(folder):
    os.makedirs(folder)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", folder],
                             stderr=subprocess.PIPE, check=False, universal_newlines=True)
    if mounted.returncode != 0:
        print(f"skipped: cannot mount a tmpfs here: {mounted.stderr.strip()}")
        raise SystemExit(harness.SKIPPED)
    try:
        yield
    finally:
        harness.run("umount", folder)


def free(folder):
    for name in ("filler", "others"):
        os.remove(os.path.join(folder, "data", name))


def readiness(server):
    """(ready, conditions)"""
    health = server.json("health", expect=None)[-1]
    return health["ready"], health["conditions"]


class Missed(Exception):
    """The job was caught with its result stored already, so it just ended."""


def fill_under_a_job(server, folder, config, leave_bytes, waiting):
    """Fills the disk while a job is in the middle and `waiting` ones are behind it; all of them."""
    job_id, pid = service.catch_job(server, config)
    jobs = [job_id] + [server.json("compile", config, "--detach", "--no-cache")[-1]["job"]
                       for _ in range(waiting)]
    harness.fill_disk(os.path.join(folder, "data", "filler"), leave_bytes)
    os.kill(pid, signal.SIGCONT)

    def seen():
        log = server.log()
        if "a result waits for room on the disk" in log or "cannot be stored" in log:
            return "full"
        ended = all(server.job(one)["state"] in service.TERMINAL for one in jobs)
        return "ended" if ended else None

    if harness.wait_for(seen, "word of the full disk in the log") == "ended":
        raise Missed
    return jobs


def test_a_full_disk(server, folder, config):
    """One job in the middle, three behind it, then no byte is free."""
    jobs = fill_under_a_job(server, folder, config, 0, waiting=3)
    conditions = harness.wait_for(
        lambda: (lambda ready, conditions: None if ready else conditions)(*readiness(server)),
        "loss of readiness")
    harness.check("free some space" in conditions["store"] + conditions["disk"],
                  f"the reason does not say what to do: {conditions}")
    server.remote("health", expect=4)
    refused = server.remote("--patience", "0", "submit", config, "--no-cache", expect=3)
    harness.check("free some space" in refused.stderr, f"no advice: {refused.stderr}")
    states = [server.job(one)["state"] for one in jobs]
    harness.check(states[-1] in ("RUNNING", "QUEUED") and
                  set(states) <= {"RUNNING", "QUEUED", "SUCCEEDED"}, f"on a full disk: {states}")

    free(folder)
    freed = time.monotonic()
    for one in jobs:
        job = server.wait(one)
        harness.check(job["state"] == "SUCCEEDED", f"after there was room: {job}")
        service.check_events(server, one)
    ended = time.monotonic() - freed
    harness.wait_for(lambda: readiness(server)[0], "readiness after there was room")
    harness.figure(f"service: a disk filled under {len(jobs)} jobs: all SUCCEEDED {ended:.0f} s "
                   f"after there was room, ready {time.monotonic() - freed:.0f} s after")


def test_results_alone(server, folder, config):
    """No room for a result: it waits for the disk, compiled once."""
    job_id, = fill_under_a_job(server, folder, config, 96 << 10, waiting=0)
    job = server.job(job_id)
    harness.check(job["state"] == "RUNNING", f"ended on a full disk: {job}")
    free(folder)
    job = server.wait(job_id)
    harness.check(job["state"] == "SUCCEEDED" and job["attempts"] == 1, f"{job}")


def run(test, folder, config):
    """On a disk and with a daemon of its own. False: missed."""
    with disk(os.path.join(folder, "data")):
        harness.fill_disk(os.path.join(folder, "data", "others"), START_BYTES)
        with service.daemon(folder, FLAGS) as server:
            try:
                test(server, folder, config)
            except harness.Failure as error:
                raise harness.Failure(f"{error}\nnpucd's log ends:\n{server.log()}") from error
            except Missed:
                free(folder)
                return False
    return True


def main(arguments):
    with harness.scratch() as folder:
        config = service.write_model(folder)
        for test in (test_results_alone, test_a_full_disk):
            harness.check(any(run(test, os.path.join(folder, f"{test.__name__}_{number}"), config)
                              for number in range(service.TRIES)),
                          f"{test.__name__}: no job was caught before its result was stored")
