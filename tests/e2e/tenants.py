"""Identities: TLS, tokens and client certificates against a real npucd, and reload of the file."""

import os
import re
import signal
import tempfile

import harness
import service

EXT = """[server]
subjectAltName = IP:127.0.0.1
[localhost]
subjectAltName = DNS:localhost
[client]
subjectAltName = URI:spiffe://farm/audio
"""
REFUSED, UNREACHABLE = 3, 4


def openssl(folder, *arguments):
    harness.run("openssl", *arguments, env={"HOME": folder})


def make_authority(folder, name):
    path = os.path.join(folder, name)
    openssl(folder, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-nodes", "-days", "30", "-subj", f"/CN={name}", "-keyout", path + ".key", "-out",
            path + ".pem")
    return path


def make_certificate(folder, authority, name, section):
    path = os.path.join(folder, name)
    extensions = os.path.join(folder, "extensions")
    with open(extensions, "w", encoding="utf-8") as f:
        f.write(EXT)
    openssl(folder, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-subj", f"/CN={name}", "-keyout", path + ".key", "-out", path + ".csr")
    openssl(folder, "x509", "-req", "-in", path + ".csr", "-CA", authority + ".pem", "-CAkey",
            authority + ".key", "-CAcreateserial", "-days", "30", "-extfile", extensions,
            "-extensions", section, "-out", path + ".pem")
    return path


class Client:
    """npuc-remote with certain options."""

    def __init__(self, server, *options):
        self._server, self._options = server, options

    def __call__(self, *arguments, **options):
        return self._server.remote(*self._options, "--patience", "3", *arguments, **options)


class Tokens:
    """A token for each name, in a file, and the tenants file that knows them."""

    def __init__(self, folder):
        self._folder = folder
        self.tokens, self._hashes = {}, {}

    def file(self, name):
        path = os.path.join(self._folder, name + ".token")
        if name not in self.tokens:
            text = harness.run(harness.program("npucd"), "--new-token").stdout
            self.tokens[name] = re.search(r"--token-file\): (\S+)", text).group(1)
            self._hashes[name] = re.search(r"tenants file\): +(\S+)", text).group(1)
            with open(path, "w", encoding="utf-8") as f:
                f.write(self.tokens[name] + "\n")
        return path

    def tenants(self, ci_rights="[submit, read, cancel]"):
        for name in ("ci", "reader", "other", "operator"):
            self.file(name)
        return f"""format: 1
tenants:
  audio:
    identities:
      ci: {{token_sha256: {self._hashes['ci']}, rights: {ci_rights}}}
      reader: {{token_sha256: {self._hashes['reader']}, rights: [read]}}
      farm: {{certificate: 'spiffe://farm/audio', rights: [read]}}
  vision:
    identities:
      other: {{token_sha256: {self._hashes['other']}, rights: [submit, read, cancel]}}
      operator: {{token_sha256: {self._hashes['operator']}, rights: [admin]}}
"""


def refused(result, reason):
    harness.check(reason in result.stderr, f"no word of '{reason}' in: {result.stderr}")


def test_identities(folder, server, ca, tokens):
    """Returns the job that tenant audio made."""
    config = os.path.join(harness.SAMPLE, "config.yaml")
    local, remote = os.path.join(folder, "local"), os.path.join(folder, "remote")
    client = os.path.join(folder, "client")
    ci = Client(server, "--ca", ca, "--token-file", tokens.file("ci"))
    harness.npuc(config, "-o", local)
    ci("compile", config, "-o", remote)
    for name in ("kws_cnn.h", "kws_cnn.npuc", "opt_template.json"):
        harness.check(service.files_of(local)[name] == service.files_of(remote)[name],
                      f"{name} differs from npuc's")
    jobs = service.json_lines(ci("list", "--json").stdout)
    harness.check(len(jobs) == 1, f"{len(jobs)} jobs")
    job = jobs[0]["job"]

    by_certificate = Client(server, "--ca", ca, "--cert", client + ".pem", "--key",
                            client + ".key")
    by_certificate("status", job)
    refused(by_certificate("compile", config, "-o", remote, expect=REFUSED), "right 'submit'")
    reader = Client(server, "--ca", ca, "--token-file", tokens.file("reader"))
    reader("fetch", job, "-o", os.path.join(folder, "fetched"))
    refused(reader("cancel", job, expect=REFUSED), "right 'cancel'")

    other = Client(server, "--ca", ca, "--token-file", tokens.file("other"))
    hidden = other("status", job, expect=REFUSED).stderr
    absent = other("status", job[:-1] + ("0" if job[-1] != "0" else "1"), expect=REFUSED).stderr
    harness.check(hidden.replace(job, "J") == re.sub(r"j[0-9a-z]{26}", "J", absent),
                  f"a hidden job shows: {hidden} instead of {absent}")
    harness.check(not other("list", "--json").stdout.strip(), "another tenant's jobs are listed")
    other("compile", config, "-o", os.path.join(folder, "other"))
    last = service.json_lines(other("list", "--json").stdout)[0]
    harness.check(not last["cache_hit"], "one tenant's result was a cache hit for another")
    return job


def test_strangers(folder, server, ca):
    refused(Client(server, "--ca", ca)("list", expect=REFUSED), "neither a bearer token")
    wrong = os.path.join(folder, "wrong.token")
    with open(wrong, "w", encoding="utf-8") as f:
        f.write("0123456789" * 5)
    refused(Client(server, "--ca", ca, "--token-file", wrong)("list", expect=REFUSED),
            "none that this server knows")
    forged = os.path.join(folder, "forged")
    Client(server, "--ca", ca, "--cert", forged + ".pem", "--key",
           forged + ".key")("list", expect=UNREACHABLE)
    evil = Client(server, "--ca", os.path.join(folder, "evil.pem"))("list", expect=UNREACHABLE)
    refused(evil, "not signed by an authority in the file of --ca")
    harness.check(".cc:" not in evil.stderr, f"gRPC's own log: {evil.stderr}")
    refused(Client(server)("list", expect=UNREACHABLE), "a server with TLS needs --ca")


def test_reload(server, ca, tokens, tenants_file, job):
    ci = Client(server, "--ca", ca, "--token-file", tokens.file("ci"))

    def write(text):
        with open(tenants_file, "w", encoding="utf-8") as f:
            f.write(text)
        server.process.send_signal(signal.SIGHUP)

    write(tokens.tenants(ci_rights="[submit]"))
    harness.wait_for(lambda: ci("status", job, expect=None).returncode == REFUSED,
                     "end of a right that was taken away")
    write("format: 1\ntenants: {audio: {weigth: 2}}\n")
    harness.wait_for(lambda: "did you mean weight" in server.log(), "word of a bad tenants file")
    refused(ci("status", job, expect=REFUSED), "right 'read'")  # the old file still holds
    write(tokens.tenants())
    harness.wait_for(lambda: ci("status", job, expect=None).returncode == 0,
                     "a right that was given back")


def main(_):
    with tempfile.TemporaryDirectory(prefix="npuc_tenants_") as folder:
        tokens = Tokens(folder)
        authority = make_authority(folder, "authority")
        evil = make_authority(folder, "evil")
        made = make_certificate(folder, authority, "server", "server")
        make_certificate(folder, authority, "client", "client")
        make_certificate(folder, evil, "forged", "client")
        tenants_file = os.path.join(folder, "tenants.yaml")
        with open(tenants_file, "w", encoding="utf-8") as f:
            f.write(tokens.tenants())
        security = ["--tls-cert", made + ".pem", "--tls-key", made + ".key", "--client-ca",
                    authority + ".pem", "--tenants", tenants_file]
        with service.daemon(folder, security) as server:
            job = test_identities(folder, server, authority + ".pem", tokens)
            test_strangers(folder, server, authority + ".pem")
            test_reload(server, authority + ".pem", tokens, tenants_file, job)
            with open(os.path.join(folder, "npucd.log"), encoding="utf-8") as f:
                log = f.read()
            harness.check(not any(token in log for token in tokens.tokens.values()),
                          "a token stands in npucd's log")
            said = [line["text"] for line in service.json_lines(log)  # every line is JSON
                    if line["message"] == "gRPC says"]
            harness.check(any("Handshake failed" in text for text in said), f"gRPC said {said}")
    harness.figure("tenants: TLS with tokens and client certificates: right bytes, 8 refusals, "
                   "another tenant's job hidden, rights taken and given by SIGHUP")
