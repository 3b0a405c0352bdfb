"""A night's drill (deploy/OPERATIONS.md): each step that the page tells an operator, done to a real
npucd.

The full disk is the suite full_disk.
"""

import os
import shutil
import signal
import urllib.request

import harness
import service
import tenants

SAMPLE = os.path.join(harness.SAMPLE, "config.yaml")
FLOOD = 30
REFUSED, UNREACHABLE = 3, 4


def metric(folder, name):
    with open(os.path.join(folder, "port"), encoding="utf-8") as f:
        address = dict(line.strip().split("=", 1) for line in f)["http"]
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=30) as answer:
        lines = [line.split() for line in answer.read().decode().splitlines()]
    return next((float(value) for key, value in (l for l in lines if len(l) == 2) if key == name),
                None)


def check_worker_gone(folder):
    """The program of the workers is deleted under a daemon that runs, which then is stopped."""
    programs = os.path.join(folder, "bin")
    os.mkdir(programs)
    for name in ("npucd", "npuc-worker"):
        shutil.copy2(harness.program(name), programs)
    worker = os.path.join(programs, "npuc-worker")
    server = service.Daemon(folder, service.NO_SPARES, os.path.join(programs, "npucd"))
    server.start()
    try:
        os.rename(worker, worker + ".aside")
        job = server.json("submit", SAMPLE, "--no-cache")[-1]["job"]
        harness.check(server.wait(job)["state"] == "SUCCEEDED", "a daemon that runs needs the file")
        server.remote("admin", "pause")
        waits = server.json("submit", SAMPLE, "--no-cache")[-1]["job"]
        server.stop()
        try:
            server.start()
        except harness.Failure as said:
            harness.check("npuc-worker" in str(said), f"the log does not name it: {said}")
        else:
            raise harness.Failure("npucd serves without its workers")
        os.rename(worker + ".aside", worker)
        server.start()
        server.remote("admin", "resume")
        harness.check(server.wait(waits)["state"] == "SUCCEEDED", f"{waits} is lost")
    finally:
        server.stop()


class Farm:
    """A daemon with TLS and tenants, and clients of it."""

    def __init__(self, folder):
        self.folder = folder
        self.tokens = tenants.Tokens(folder)
        self.authority = tenants.make_authority(folder, "authority")
        self.certificate = tenants.make_certificate(folder, self.authority, "server", "server")
        self.tenants_file = os.path.join(folder, "tenants.yaml")
        self.write_tenants(self.tokens.tenants())
        self.server = service.Daemon(folder, (
            "--tls-cert", self.certificate + ".pem", "--tls-key", self.certificate + ".key",
            "--tenants", self.tenants_file, "--http", "127.0.0.1:0", "--spares", "0",
            "--sandbox=best-effort"))

    def write_tenants(self, text):
        with open(self.tenants_file, "w", encoding="utf-8") as f:
            f.write(text)

    def sign(self, days):
        """A certificate for the key that the server has, which may be over."""
        new = self.certificate + ".new"
        tenants.openssl(self.folder, "x509", "-req", "-in", self.certificate + ".csr", "-CA",
                        self.authority + ".pem", "-CAkey", self.authority + ".key",
                        "-CAcreateserial", "-days", str(days), "-extfile",
                        os.path.join(self.folder, "extensions"), "-extensions", "server", "-out",
                        new)
        os.replace(new, self.certificate + ".pem")

    def client(self, who):
        return tenants.Client(self.server, "--ca", self.authority + ".pem", "--token-file",
                              self.tokens.file(who))

    def json(self, who, *arguments):
        return service.json_lines(self.client(who)(*arguments, "--json").stdout)


def check_certificate(farm):
    """The certificate is over: log and metric say so; a new one is taken without a restart."""
    farm.sign(-1)
    farm.server.start()
    harness.wait_for(lambda: "has expired" in farm.server.log(), "word of the certificate's end")
    harness.check(metric(farm.folder, "npuc_tls_certificate_ok") == 0, "the metric says nothing")
    farm.client("ci")("list", expect=UNREACHABLE)
    farm.sign(30)
    harness.check(metric(farm.folder, "npuc_tls_certificate_ok") == 1, "the new one is not seen")
    harness.wait_for(lambda: farm.client("ci")("list", expect=None).returncode == 0,
                     "a client that is served again", seconds=90, interval=1)


def check_flood(farm):
    """One tenant sends without end: the others are served, and the operator ends it."""
    farm.client("operator")("admin", "pause", "--reason", "flood")
    for _ in range(FLOOD):
        farm.client("ci")("submit", SAMPLE, "--no-cache")
    queued = {one["tenant"]: one["queued_jobs"]
              for one in farm.json("operator", "admin", "tenants")}
    harness.check(queued["audio"] == FLOOD and queued["vision"] == 0, f"who floods: {queued}")
    harness.check(metric(farm.folder, "npuc_oldest_queued_seconds") > 0, "nothing waits")
    other = farm.json("other", "submit", SAMPLE, "--no-cache")[-1]["job"]
    farm.client("operator")("admin", "resume")
    harness.wait_for(lambda: not farm.json("ci", "list", "--state", "queued", "--state", "running"),
                     "end of the flood", seconds=60)
    ended = farm.json("other", "status", other)[-1]["end_time"]
    later = [one for one in farm.json("ci", "list", "--limit", "1000") if one["end_time"] > ended]
    harness.check(len(later) > FLOOD // 2, f"the other waited: {len(later)} ended after it")

    farm.client("operator")("admin", "pause", "--reason", "flood")
    farm.client("operator")("admin", "limit", "--tenant", "audio", "--quota", "queued_jobs=5",
                            "--for", "2h")
    submit = farm.client("ci")
    for _ in range(5):
        submit("submit", SAMPLE, "--no-cache")
    submit("submit", SAMPLE, "--no-cache", expect=REFUSED)
    # For good, in the tenants file.
    farm.client("operator")("admin", "unlimit", "--tenant", "audio")
    farm.write_tenants(farm.tokens.tenants().replace(
        "  audio:\n", "  audio:\n    quota: {queued_jobs: 5}\n"))
    farm.server.process.send_signal(signal.SIGHUP)
    harness.wait_for(lambda: farm.json("ci", "quota")[0]["max_queued_jobs"] == 5,
                     "the new quota", seconds=30)
    submit("submit", SAMPLE, "--no-cache", expect=REFUSED)
    said = farm.json("operator", "admin", "cancel", "--tenant", "audio", "--reason", "flood")[0]
    harness.check(said["cancelled"] >= 5, said)
    farm.client("operator")("admin", "resume")
    harness.wait_for(lambda: not farm.json("ci", "list", "--state", "queued"), "an empty queue")
    with open(os.path.join(farm.folder, "data", "audit", "audit.log"), encoding="utf-8") as f:
        lines = service.json_lines(f.read())
    results = {one["result"] for one in lines if one["action"] == "submit"}
    harness.check("QUOTA_EXCEEDED" in results, results)
    by = [one for one in lines if one["action"] == "admin.cancel_jobs"]
    harness.check(by and by[-1]["identity"] == "operator" and "flood" in by[-1]["detail"], by)


def main(_arguments):
    with harness.scratch() as folder:
        check_worker_gone(folder)
    with harness.scratch() as folder:
        farm = Farm(folder)
        try:
            check_certificate(farm)
            check_flood(farm)
        except harness.Failure as error:
            raise harness.Failure(f"{error}\nnpucd's log ends:\n{farm.server.log()}") from error
        finally:
            farm.server.stop()
    harness.figure("drill: the workers' program gone, a certificate that is over, a tenant that "
                   f"floods with {FLOOD} jobs: each found and mended as OPERATIONS.md says")
