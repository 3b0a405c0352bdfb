"""People sign in on the dashboard, in Chromium against a real npucd with TLS
(client/dashboard/tests/sign_in.mjs)."""

import json
import os
import re

import dashboard
import harness
import service
import tenants


def secured(folder, tokens):
    """The options of a npucd with TLS, tokens and client certificates."""
    authority = tenants.make_authority(folder, "authority")
    made = tenants.make_certificate(folder, authority, "server", "server")
    tenants.make_certificate(folder, authority, "client", "client")
    path = os.path.join(folder, "tenants.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(tokens.tenants())
    return ["--tls-cert", made + ".pem", "--tls-key", made + ".key", "--client-ca",
            authority + ".pem", "--tenants", path, "--web", "127.0.0.1:0"]


def compile_sample(folder, server, tokens):
    """The id of a job of tenant audio that succeeded."""
    remote = tenants.Client(server, "--ca", os.path.join(folder, "authority.pem"), "--token-file",
                            tokens.file("ci"))
    remote("compile", os.path.join(harness.SAMPLE, "config.yaml"), "-o",
           os.path.join(folder, "out"))
    return service.json_lines(remote("list", "--json").stdout)[0]["job"]


def main(_):
    with harness.scratch() as folder:
        tokens = tenants.Tokens(folder)
        with service.daemon(folder, secured(folder, tokens)) as server:
            try:
                with open(os.path.join(folder, "port"), encoding="utf-8") as f:
                    web = re.search(r"^web=(.*)$", f.read(), re.MULTILINE).group(1)
                dashboard.drive("sign_in.mjs", [], {"NPUC_SIGN_IN": json.dumps({
                    "web": f"https://{web}", "tokens": tokens.tokens,
                    "certificate": os.path.join(folder, "client"),
                    "job": compile_sample(folder, server, tokens)})})
            except harness.Failure as error:
                raise harness.Failure(f"{error}\nnpucd's log ends:\n{server.log()}") from error
        with open(os.path.join(folder, "data", "audit", "audit.log"), encoding="utf-8") as f:
            done = [(line["action"], line["identity"]) for line in map(json.loads, f)
                    if line["action"] in ("sign_in", "sign_out")]
        harness.check(done[:3] == [("sign_in", "ci"), ("sign_out", "ci"), ("sign_in", "ci")],
                      f"the audit log has {done}")
