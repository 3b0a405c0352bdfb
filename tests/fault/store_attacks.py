#!/usr/bin/python3
"""What clients, disks and operators do to the stores of a real npucd, and what must hold.

    store_attacks.py [NAME...]      the tests by name; all without one

Each test has a daemon and a data directory of its own. NPUC_BIN_DIR as for tests/e2e.
"""

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import harness  # noqa: E402
import service  # noqa: E402
import tenants  # noqa: E402

GIB = 1 << 30
PORTS = ("--web", "127.0.0.1:0", "--http", "127.0.0.1:0")
REFUSED = 3


class Service(service.Daemon):
    """A daemon that others attack, with its HTTP ports; a tenant calls by its token."""

    def __init__(self, folder, *flags, tokens=None):
        super().__init__(folder, ("--insecure", *PORTS, *flags))
        self.data = os.path.join(folder, "data")
        self.folder = folder
        self._tokens = tokens

    def port(self, name):
        with open(os.path.join(self.folder, "port"), encoding="utf-8") as f:
            return dict(l.strip().split("=", 1) for l in f)[name]

    def call(self, method, path, body=None, tenant=None, port="web", json_body=None):
        """(status, body) of one HTTP request."""
        connection = http.client.HTTPConnection(self.port(port), timeout=30)
        headers = {}
        if tenant:
            headers["Authorization"] = f"Bearer {self._tokens.tokens[tenant]}"
        if json_body is not None:
            body, headers["Content-Type"] = json.dumps(json_body), "application/json"
        elif body is not None:
            headers["Content-Type"] = "application/octet-stream"
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
        connection.close()
        return answer.status, text

    def metric(self, name):
        """The sum of a metric over its labels."""
        text = self.call("GET", "/metrics", port="http")[1]
        return sum(float(line.split()[-1]) for line in text.splitlines()
                   if re.match(rf"{name}(\{{|\s)", line))

    def ready(self):
        return self.call("GET", "/readyz", port="http")[0] == 200

    def starts(self):
        """The exit code of a start that is expected to fail, and its log."""
        os.truncate(os.path.join(self.folder, "npucd.log"), 0)
        with contextlib.suppress(harness.Failure):
            self.start()
            self.stop()
            raise harness.Failure(f"npucd started:\n{self.log()}")
        return self.process.wait(10), self.log()


@contextlib.contextmanager
def served(*flags, two_tenants=False, quota=""):
    """A Service; with two tenants, `audio` (identity ci, with the quota) and `vision` (other)."""
    with harness.scratch() as folder:
        tokens = None
        if two_tenants:
            tokens = tenants.Tokens(folder)
            text = tokens.tenants().replace("  audio:\n", f"  audio:\n    quota: {{{quota}}}\n")
            path = os.path.join(folder, "tenants.yaml")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            flags = (*flags, "--tenants", path)
        one = Service(folder, *flags, tokens=tokens)
        try:
            one.start()
            yield one
        finally:
            one.stop()


def sample():
    return os.path.join(harness.SAMPLE, "config.yaml")


def as_tenant(server, name, *arguments, **options):
    return server.remote("--token-file", os.path.join(server.folder, name + ".token"), *arguments,
                         **options)


def one_byte(server, number, size, tenant):
    """The first byte of an upload that declares `size`."""
    return server.call("PATCH", f"/v1/blobs/{number:064x}?sizeBytes={size}&offset=0", b"x", tenant)


def declared_uploads():
    """Line 17: 40 uploads of 1 GiB and a byte each take nothing from others, nor from a restart."""
    with served("--upload-idle-seconds", "2", "--canary-seconds", "1", two_tenants=True) as server:
        out = os.path.join(server.folder, "out")
        as_tenant(server, "other", "compile", sample(), "-o", out)
        for number in range(40):
            status, text = one_byte(server, number, GIB, "ci")
            harness.check(status == 200, f"upload {number}: {status} {text}")
        harness.check(server.metric("npuc_upload_bytes") <= 40, "what was declared is counted")
        as_tenant(server, "other", "compile", sample(), "-o", out, "--no-cache")
        harness.check(server.ready(), "readiness is lost")
        server.kill()
        server.start()
        as_tenant(server, "other", "compile", sample(), "-o", out, "--no-cache")
        harness.wait_for(lambda: server.metric("npuc_uploads_open") == 0, "end of idle uploads")


def many_uploads():
    """Line 17: a tenant has so many uploads under way; others have theirs."""
    with served("--tenant-uploads", "3", two_tenants=True) as server:
        answers = [one_byte(server, number, 1000, "ci") for number in range(4)]
        harness.check([status for status, _ in answers] == [200, 200, 200, 429] and
                      "open_uploads" in answers[3][1], f"{answers}")
        harness.check(one_byte(server, 9, 1000, "other")[0] == 200, "the other tenant is refused")


def too_large_a_model():
    """Line 32: what no job of the tenant may have is refused before its first byte."""
    with served(two_tenants=True, quota="job_bytes: 1MiB") as server:
        status, text = one_byte(server, 1, (1 << 20) + 1, "ci")
        harness.check(status == 429 and "job_bytes" in text, f"{status} {text}")
        harness.check(server.metric("npuc_uploads_open") == 0, "the upload was begun")


def a_damaged_blob():
    """Line 21: told as lost, counted, and repaired by the next compile."""
    with served() as server:
        out = os.path.join(server.folder, "out")
        server.remote("compile", sample(), "-o", out)
        blobs = os.path.join(server.data, "blobs", "blobs")
        paths = [os.path.join(where, name) for where, _, names in os.walk(blobs) for name in names
                 if "0canary" not in where]
        for path in paths:
            os.chmod(path, 0o600)
            with open(path, "r+b") as f:
                f.seek(os.path.getsize(path) // 2)
                f.write(b"damage")
        job = server.json("compile", sample(), "-o", out, "--no-cache", expect=1)[-1]
        harness.check(job["state"] == "FAILED" and "damaged on the server" in job["reason"] and
                      job["attempts"] == 1, f"{job}")
        harness.check(server.data not in json.dumps(job), f"a path of the server in {job}")
        harness.check(server.metric("npuc_blobs_damaged_total") == 1, "it is not counted")
        server.remote("compile", sample(), "-o", out, "--no-cache")


def logs_of(folder):
    return [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".log")
            and os.path.getsize(os.path.join(folder, name)) > 0]


def lost_logs():
    """Line 25: the jobs' log is missing or cut: refused, with advice that works."""
    with served() as server:
        jobs = [server.json("compile", sample(), "--detach", "--no-cache")[-1]["job"]
                for _ in range(3)]
        for job in jobs:
            server.wait(job)
        server.kill()
        store = os.path.join(server.data, "jobs")
        saved = store + ".saved"
        shutil.copytree(store, saved)
        spoils = {"missing": os.remove,
                  "cut": lambda log: os.truncate(log, os.path.getsize(log) // 2),
                  "shorter": lambda log: os.truncate(log, os.path.getsize(log) - 8)}
        for what, spoil in spoils.items():
            for log in logs_of(store):
                spoil(log)
            code, text = server.starts()
            harness.check(code == 1 and "has lost accepted jobs" in text,
                          f"{what}: exit {code}\n{text}")
            for log in logs_of(saved):
                shutil.copy(log, store)
        server.start()
        for job in jobs:
            harness.check(server.job(job)["state"] == "SUCCEEDED", f"{job} is forgotten")


def a_flipped_byte_of_the_results():
    """Line 25: what the results' log has lost is compiled again for its download."""
    with served() as server:
        out = os.path.join(server.folder, "out")
        job = server.json("compile", sample(), "-o", out)[-1]["job"]
        server.kill()
        for log in logs_of(os.path.join(server.data, "artifacts")):
            with open(log, "r+b") as f:
                for at in range(100, os.path.getsize(log), 4096):
                    f.seek(at)
                    byte = f.read(1)[0]
                    f.seek(at)
                    f.write(bytes([byte ^ 1]))
        server.start()
        again = os.path.join(server.folder, "again")
        server.remote("fetch", job, "kws_cnn.h", "-o", again)
        harness.check(service.files_of(again)["kws_cnn.h"] == service.files_of(out)["kws_cnn.h"],
                      "other bytes")


def a_full_queue():
    """Line 28: a tenant without a quota fills the queue, and another one's job is taken."""
    with served("--max-queued", "10", two_tenants=True) as server:
        as_tenant(server, "operator", "admin", "pause")
        submit = ("submit", sample(), "--no-cache", "--patience", "0")
        codes = [as_tenant(server, "ci", *submit, expect=None).returncode for _ in range(12)]
        harness.check(codes[0] == 0 and codes[-1] == REFUSED, f"exit codes {codes}")
        job = as_tenant(server, "other", *submit).stdout.strip()
        as_tenant(server, "operator", "admin", "resume")
        as_tenant(server, "other", "watch", job)


def links_and_typing_mistakes():
    """Lines 28 and 32: no part of the store is a link; a mistyped path makes nothing."""
    with served() as server:
        server.stop()
        outside = os.path.join(server.folder, "outside")
        os.makedirs(os.path.join(outside, "kept"))
        work = os.path.join(server.data, "work")
        shutil.rmtree(work)
        os.symlink(outside, work)
        code, text = server.starts()
        harness.check(code == 1 and "is a symbolic link" in text, f"exit {code}\n{text}")
        harness.check(os.listdir(outside) == ["kept"], "the target of the link was emptied")
        os.remove(work)
        server.start()
        harness.check("new store" not in server.log(), "an old store is called new")
    with harness.scratch() as folder:
        typo = os.path.join(folder, "typo", "data")
        done = harness.run(harness.program("npucd"), "--data-dir", typo, "--insecure", "--listen",
                           "127.0.0.1:0", expect=1)
        harness.check("the folder above it is missing" in done.stderr, done.stderr)
        harness.check(not os.listdir(folder), "a folder was made")


def files_of_others():
    """Line 24: what npucd makes is its user's alone, whoever started it."""
    before = os.umask(0o022)
    try:
        with served() as server:
            server.remote("compile", sample(), "-o", os.path.join(server.folder, "out"))
            for where, folders, names in os.walk(server.data):
                for name in folders + names:
                    path = os.path.join(where, name)
                    mode = os.lstat(path).st_mode & 0o777
                    public = mode & 0o077 and not path.startswith(
                        os.path.join(server.data, "blobs", "blobs"))
                    harness.check(not public, f"{path} has mode {mode:o}")
    finally:
        os.umask(before)


def output_names():
    """Line 26: one rule for OUTPUT_FILE, here and there, before anything is compiled."""
    with served() as server:
        with open(sample(), encoding="utf-8") as f:
            text = f.read()
        config = os.path.join(server.folder, "config.yaml")
        for name in os.listdir(harness.SAMPLE):
            if not name.startswith("config"):
                os.symlink(os.path.join(harness.SAMPLE, name), os.path.join(server.folder, name))
        for output in ("my model.h", "modèle.h", "m" * 150, "x.npuc"):
            with open(config, "w", encoding="utf-8") as f:
                f.write(re.sub(r"OUTPUT_FILE:.*", f"OUTPUT_FILE: {output}", text))
            out = os.path.join(server.folder, "out")
            here = harness.npuc(config, "-o", out, expect=1)
            there = server.remote("compile", config, "-o", out, expect=REFUSED)
            for said in (here.stderr, there.stderr):
                harness.check("OUTPUT_FILE" in said and "such as model.h" in said or
                              "write it like OUTPUT_FILE: model.h" in said, said)


def cache_hits_end():
    """Line 32: each accepted job has its end in the metrics, cache hits too."""
    with served() as server:
        for _ in range(3):
            server.remote("compile", sample(), "-o", os.path.join(server.folder, "out"))
        harness.wait_for(lambda: server.metric("npuc_jobs_ended_total") -
                         server.metric("npuc_canary_seconds_count") ==
                         server.metric("npuc_jobs_accepted_total"), "as many ends as jobs")


def service_manager():
    """Line 24: systemd hears that the daemon is up, that it lives, and that it stops."""
    with harness.scratch() as folder:
        path = os.path.join(folder, "notify")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        listener.bind(path)
        listener.settimeout(30)
        os.environ["NOTIFY_SOCKET"] = path
        try:
            server = Service(folder)
            server.start()
        finally:
            del os.environ["NOTIFY_SOCKET"]
        heard = [listener.recv(4096).decode() for _ in range(12)]
        harness.check(any("READY=1" in one for one in heard), f"{heard}")
        harness.check(any("WATCHDOG=1" in one for one in heard), f"{heard}")
        # A daemon that hangs is silent.
        server.process.send_signal(signal.SIGSTOP)
        time.sleep(0.1)
        listener.settimeout(1)
        with contextlib.suppress(socket.timeout):
            while True:
                quiet_since = time.monotonic()
                listener.recv(4096)
        harness.check(time.monotonic() - quiet_since > 0.9, "it speaks while it is stopped")
        server.process.send_signal(signal.SIGCONT)
        server.process.terminate()
        listener.settimeout(30)
        while "STOPPING=1" not in listener.recv(4096).decode():
            pass
        server.process.wait(30)


TESTS = (declared_uploads, many_uploads, too_large_a_model, a_damaged_blob, lost_logs,
         a_flipped_byte_of_the_results, a_full_queue, links_and_typing_mistakes, files_of_others,
         output_names, cache_hits_end, service_manager)


def main():
    names = sys.argv[1:] or [test.__name__ for test in TESTS]
    by_name = {test.__name__: test for test in TESTS}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        print(f"unknown: {', '.join(unknown)}; there are {', '.join(by_name)}", file=sys.stderr)
        return 2
    failed = 0
    for name in names:
        begin = time.monotonic()
        try:
            by_name[name]()
            print(f"ok {name} ({time.monotonic() - begin:.1f} s)", flush=True)
        except (harness.Failure, OSError, subprocess.SubprocessError) as error:
            failed += 1
            print(f"FAILED {name}: {error}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
