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


def fill(path, leave_bytes):
    """A file that leaves so many bytes of its disk."""
    info = os.statvfs(os.path.dirname(path))
    with open(path, "wb") as f:
        os.posix_fallocate(f.fileno(), 0, info.f_bavail * info.f_frsize - leave_bytes)


def free(folder):
    for name in ("filler", "others"):
        os.remove(os.path.join(folder, "data", name))


def readiness(server):
    """(ready, conditions)"""
    health = server.json("health", expect=None)[-1]
    return health["ready"], health["conditions"]


def test_a_full_disk(server, folder, config):
    """One job in the middle, three behind it, then no byte is free."""
    job_id, pid = service.catch_job(server, config)
    waiting = [server.json("compile", config, "--detach", "--no-cache")[-1]["job"]
               for _ in range(3)]
    filler = os.path.join(folder, "data", "filler")
    fill(filler, 0)
    os.kill(pid, signal.SIGCONT)
    harness.wait_for(lambda: "a result waits for room on the disk" in server.log() or
                     "cannot be stored" in server.log(), "word of the full disk in the log")
    conditions = harness.wait_for(
        lambda: (lambda ready, conditions: None if ready else conditions)(*readiness(server)),
        "loss of readiness")
    harness.check("free some space" in conditions["store"] + conditions["disk"],
                  f"the reason does not say what to do: {conditions}")
    server.remote("health", expect=4)
    refused = server.remote("--patience", "0", "submit", config, "--no-cache", expect=3)
    harness.check("free some space" in refused.stderr, f"no advice: {refused.stderr}")
    jobs = [server.job(one) for one in (job_id, *waiting)]
    harness.check(all(job["state"] in ("RUNNING", "QUEUED") for job in jobs),
                  f"ended on a full disk: {jobs}")

    free(folder)
    freed = time.monotonic()
    for one in (job_id, *waiting):
        job = server.wait(one)
        harness.check(job["state"] == "SUCCEEDED", f"after there was room: {job}")
        service.check_events(server, one)
    ended = time.monotonic() - freed
    harness.wait_for(lambda: readiness(server)[0], "readiness after there was room")
    harness.figure(f"service: a disk filled under 4 jobs: all SUCCEEDED {ended:.0f} s after there "
                   f"was room, ready {time.monotonic() - freed:.0f} s after")


def test_results_alone(server, folder, config):
    """No room for a result: it waits for the disk, compiled once."""
    job_id, pid = service.catch_job(server, config)
    filler = os.path.join(folder, "data", "filler")
    fill(filler, 96 << 10)
    os.kill(pid, signal.SIGCONT)
    harness.wait_for(lambda: "a result waits for room on the disk" in server.log()[-2000:],
                     "a result that waits")
    job = server.job(job_id)
    harness.check(job["state"] == "RUNNING", f"ended on a full disk: {job}")
    free(folder)
    job = server.wait(job_id)
    harness.check(job["state"] == "SUCCEEDED" and job["attempts"] == 1, f"{job}")


def main(arguments):
    with harness.scratch() as folder:
        config = service.write_model(folder)
        for number, test in enumerate((test_results_alone, test_a_full_disk)):
            own = os.path.join(folder, str(number))
            with disk(os.path.join(own, "data")):
                fill(os.path.join(own, "data", "others"), START_BYTES)
                with service.daemon(own, FLAGS) as server:
                    try:
                        test(server, own, config)
                    except harness.Failure as error:
                        raise harness.Failure(
                            f"{error}\nnpucd's log ends:\n{server.log()}") from error
