"""Data of an older npucd under this build, and back.

    run_e2e.py upgrade                 on tests/e2e/upgrade_data.tar.xz, data of an older npucd
    run_e2e.py upgrade --old DIR       by two programs: an upgrade, a rollback, an upgrade again
    run_e2e.py upgrade --old DIR --make FILE       writes that data

DIR has npucd, npuc-worker and npuc-remote of the release before: its package unpacked, or a build
of its commit. Without --old no older program runs: what is shown then is that this build reads all
that it wrote, takes over what waited, and writes no file of another format, which the older one
would refuse. The rollback itself is shown with --old alone.
"""

import argparse
import hashlib
import json
import os
import re
import tarfile
import time

import harness
import operator_actions
import service

SAMPLE = os.path.join(harness.SAMPLE, "config.yaml")
KEPT = os.path.join(harness.ROOT, "tests", "e2e", "upgrade_data.tar.xz")
# Ended jobs are forgotten then, and so long may a job wait.
RETENTION_DAYS, TIMEOUT_DAYS = 8, 7
DAY_SECONDS = 86400
# The formats that data has a name for: file, and what stands in it.
BLOB_FORMAT = "blobs/format"


def npucd_of(folder):
    return os.path.join(folder, "npucd")


def header_of(server, job, folder):
    server.remote("fetch", job, "-o", folder)
    with open(os.path.join(folder, "kws_cnn.h"), "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def waiting(server, label):
    return server.json("submit", SAMPLE, "--no-cache", "--timeout", f"{TIMEOUT_DAYS}d", "--label",
                       f"wave={label}")[-1]["job"]


def write_old(folder, npucd):
    """A data directory of the older npucd in `folder`, and what is in it."""
    server = service.Daemon(folder, service.NO_SPARES, npucd)
    server.start()
    try:
        done = server.json("submit", SAMPLE, "--label", "wave=old")[-1]["job"]
        server.wait(done)
        hit = server.json("submit", SAMPLE)[-1]["job"]
        server.wait(hit)
        failed = server.json("submit", operator_actions.failing_config(folder))[-1]["job"]
        server.wait(failed)
        server.remote("admin", "pause", "--reason", "the release before")
        cancelled = waiting(server, "cancelled")
        server.remote("cancel", cancelled)
        waits = waiting(server, "first")
        jobs = {one["job"]: one["state"] for one in server.json("list")}
        facts = {"done": done, "hit": hit, "failed": failed, "cancelled": cancelled,
                 "waits": waits, "jobs": jobs, "header": header_of(
                     server, done, os.path.join(folder, "header")),
                 "events": len(server.json("watch", done, "--from", "0")),
                 "time": int(time.time())}
    finally:
        # The next start finds what a crash left.
        server.kill()
    return facts


def checked(npucd, data):
    said = harness.run(npucd, "--check", data).stdout
    harness.check("0 damaged and removed, 0 beyond repair" in said, said)
    return {word: int(count) for count, word in
            re.findall(r"(\d+) (jobs|not ended|events|uploads|results)", said)}


def format_of(data):
    with open(os.path.join(data, BLOB_FORMAT), encoding="utf-8") as f:
        return f.read()


def states(server):
    return {one["job"]: one["state"] for one in server.json("list", "--limit", "1000")}


def two_programs(folder, old):
    """Old, new, old, new on one data directory."""
    facts = write_old(folder, npucd_of(old))
    data = os.path.join(folder, "data")
    new = harness.program("npucd")
    found = checked(new, data)
    # The canaries are jobs, too.
    harness.check(found["jobs"] > len(facts["jobs"]) and found["not ended"] == 1, found)

    def same(server, name):
        now = states(server)
        lost = {job: (state, now.get(job)) for job, state in facts["jobs"].items()
                if now.get(job) != state}
        harness.check(not lost, f"{name}: other states than before: {lost}")
        harness.check(header_of(server, facts["done"], os.path.join(folder, name)) ==
                      facts["header"], f"{name}: other bytes of an artifact")
        events = server.json("watch", facts["done"], "--from", "0")
        harness.check(len(events) == facts["events"], f"{name}: {len(events)} events")
        said = server.remote("admin", "tenants").stdout
        harness.check("the release before" in said, f"{name}: the pause is lost: {said}")

    server = service.Daemon(folder, service.NO_SPARES, new)
    server.start()
    try:
        same(server, "upgraded")
        facts["jobs"][waiting(server, "second")] = "QUEUED"
        # The older npucd does not know these.
        server.remote("admin", "limit", "--tenant", "default", "--weight", "7", "--for", "1h")
        server.remote("admin", "cordon", "--reason", "upgrade")
        server.stop()
        server.set_program(npucd_of(old))
        server.start()
        same(server, "rolled back")
        server.remote("admin", "resume")
        for job, state in facts["jobs"].items():
            ended = server.wait(job)["state"]
            facts["jobs"][job] = "SUCCEEDED" if state == "QUEUED" else state
            harness.check(ended == facts["jobs"][job], f"rolled back: {job} ended {ended}")
        server.remote("admin", "pause", "--reason", "the release before")
        server.kill()
        server.set_program(new)
        server.start()
        same(server, "upgraded again")
        harness.check("is cordoned by" in server.remote("admin", "tenants").stdout,
                      "the cordon is lost")
        harness.check(server.json("quota")[0]["weight"] == 7, "the limits are lost")
    except harness.Failure as error:
        raise harness.Failure(f"{error}\nnpucd's log ends:\n{server.log()}") from error
    finally:
        server.stop()
    checked(new, data)
    version = harness.run(npucd_of(old), "--version").stdout.strip()
    harness.figure(f"upgrade: {len(facts['jobs'])} jobs from {version} at {old} to this build, "
                   "back, and again: states, events and artifacts as they were")


def kept_data(folder):
    """What this build does with data that an older npucd left."""
    with tarfile.open(KEPT) as tar:
        tar.extractall(folder)  # a file of this project
    with open(os.path.join(folder, "facts.json"), encoding="utf-8") as f:
        facts = json.load(f)
    data = os.path.join(folder, "data")
    new = harness.program("npucd")
    before = format_of(data)
    found = checked(new, data)
    # The canaries are jobs, too.
    harness.check(found["jobs"] > len(facts["jobs"]) and found["not ended"] == 1, found)
    harness.check(found["uploads"] >= 2 and found["results"] >= 1, found)
    age = (time.time() - facts["time"]) / DAY_SECONDS
    server = service.Daemon(folder, service.NO_SPARES, new)
    server.start()
    try:
        said = server.remote("admin", "tenants").stdout
        harness.check("the release before" in said, f"the pause is lost: {said}")
        harness.check(sum(day["jobs"] for day in server.json("usage")) >= 3, "the usage is lost")
        if age < RETENTION_DAYS - 1:
            now = states(server)
            harness.check(now == facts["jobs"], f"{now}, not {facts['jobs']}")
            harness.check(header_of(server, facts["done"], os.path.join(folder, "again")) ==
                          facts["header"], "other bytes of an artifact")
        server.remote("admin", "resume")
        ended = server.wait(facts["waits"])["state"] if age < RETENTION_DAYS else "EXPIRED"
        harness.check(ended == ("SUCCEEDED" if age < TIMEOUT_DAYS else "EXPIRED"),
                      f"the job that waited: {ended} after {age:.1f} days")
        more = server.json("submit", SAMPLE, "--no-cache")[-1]["job"]
        harness.check(server.wait(more)["state"] == "SUCCEEDED", "a job on older data")
    except harness.Failure as error:
        raise harness.Failure(f"{error}\nnpucd's log ends:\n{server.log()}") from error
    finally:
        server.stop()
    checked(new, data)
    harness.check(format_of(data) == before, "uploads have another format: an older npucd would "
                  "refuse them; say so in the release notes and make the data anew")
    harness.figure(f"upgrade: data of {facts['version']}, {age:.0f} days old: {found['jobs']} jobs"
                   f", {found['events']} events, {found['uploads']} uploads and "
                   f"{found['results']} results read; what waited ended")


def make(folder, old, path):
    facts = write_old(folder, npucd_of(old))
    facts["version"] = harness.run(npucd_of(old), "--version").stdout.strip()
    with open(os.path.join(folder, "facts.json"), "w", encoding="utf-8") as f:
        json.dump(facts, f, indent=1)

    def plain(entry):
        if os.path.basename(entry.name) in ("LOCK", "port"):
            return None
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        return entry

    with tarfile.open(path, "w:xz") as tar:
        for name in ("data", "facts.json"):
            tar.add(os.path.join(folder, name), name, filter=plain)
    print(f"{path}: {os.path.getsize(path)} bytes of {facts['version']}")


def main(arguments):
    parser = argparse.ArgumentParser(prog="upgrade")
    parser.add_argument("--old", default=os.environ.get("NPUC_OLD_BIN_DIR"))
    parser.add_argument("--make")
    options = parser.parse_args(arguments)
    with harness.scratch() as folder:
        if options.make:
            harness.check(options.old, "--make wants --old DIR")
            make(folder, options.old, options.make)
        elif options.old:
            two_programs(folder, options.old)
        else:
            kept_data(folder)
