"""People sign in on the dashboard by an OpenID Connect provider: npm's oidc-provider, which this
suite starts, a real npucd with TLS, and Chromium (client/dashboard/tests/oidc.mjs)."""

import contextlib
import json
import os
import re
import shutil
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request

import dashboard
import harness
import service
import sign_in
import tenants

CLIENT, SECRET = "npuc-farm", "a secret of the farm's"


@contextlib.contextmanager
def provider(certificate):
    """The provider's process, which waits for the redirect URI as its first line, and its port."""
    build = os.path.dirname(os.path.abspath(harness.BIN))
    folder = os.path.join(build, "client", "dashboard", "npm")
    dashboard.need(os.path.isdir(os.path.join(folder, "node_modules", "oidc-provider")),
                   "oidc-provider")
    node = dashboard.need(shutil.which("node"), "node")
    env = {**os.environ, "NPUC_PROVIDER": json.dumps(
        {"certificate": certificate, "client": CLIENT, "secret": SECRET})}
    process = subprocess.Popen([node, os.path.join("tests", "provider.mjs")], cwd=folder, env=env,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               universal_newlines=True)
    try:
        line = process.stdout.readline()
        harness.check(line.strip().isdigit(), f"the provider printed '{line}'")
        yield process, int(line)
    finally:
        process.kill()
        process.communicate()


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


class Browser:
    """One that follows no redirect; it keeps the cookies of the last answer."""

    def __init__(self, web, authority):
        context = ssl.create_default_context(cafile=authority + ".pem")
        self._open = urllib.request.build_opener(
            NoRedirect, urllib.request.HTTPSHandler(context=context)).open
        self._web = web
        self._cookies = ""

    def get(self, path):
        """Status and headers, and the body."""
        request = urllib.request.Request(self._web + path, headers={"Cookie": self._cookies})
        try:
            answer = self._open(request, timeout=60)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            self._cookies = "; ".join(cookie.split(";")[0]
                                      for cookie in answer.headers.get_all("Set-Cookie", []))
            return answer.status, answer.headers, answer.read().decode()


def check_slow(web, authority):
    """The provider takes connections and answers nothing: sign-ins end in time, and nothing else
    waits for them."""
    browser, seconds = Browser(web, authority), []

    def start():
        began = time.monotonic()
        status, headers, _ = browser.get("/auth/start?to=/%23/jobs")
        seconds.append(time.monotonic() - began)
        harness.check(status == 303 and headers["Location"] == "/#/jobs",
                      f"a provider that hangs: {status} {headers}")

    waiting = threading.Thread(target=start)
    waiting.start()
    asked = 0
    while waiting.is_alive():
        began = time.monotonic()
        status, _, _ = Browser(web, authority).get("/v1/sign-in")
        harness.check(status == 200 and time.monotonic() - began < 5, "a sign-in delays others")
        asked += 1
        waiting.join(0.2)
    harness.check(seconds and seconds[0] < 30 and asked > 10,
                  f"a sign-in took {seconds} s, and {asked} others were answered meanwhile")
    said = json.loads(browser.get("/v1/sign-in")[2])
    harness.check("no answer in time" in said.get("problem", ""), f"the page says {said}")


def check_config(folder, options):
    """npucd --check-config reads the secret's file, and names what is wrong."""
    npucd = [harness.program("npucd"), "--data-dir", os.path.join(folder, "data"), *options,
             "--check-config"]
    harness.run(*npucd)
    done = harness.run(*npucd, "--oidc-client-secret-file", os.path.join(folder, "none"), expect=2)
    harness.check("--oidc-client-secret-file" in done.stderr, f"it says {done.stderr}")


def check_audit(folder):
    with open(os.path.join(folder, "data", "audit", "audit.log"), encoding="utf-8") as f:
        lines = [json.loads(line) for line in f]
    done = [(one["action"], one["identity"], one.get("detail")) for one in lines
            if one["action"] in ("sign_in", "sign_out")]
    harness.check(done[:3] == [("sign_in", "alice", "sub=alice"), ("sign_out", "alice", None),
                               ("sign_in", "alice", "sub=alice")], f"the audit log has {done}")
    refused = {one["result"] for one in lines if one.get("object") == "GET /auth/callback"}
    harness.check({"UNKNOWN_IDENTITY", "SIGN_IN_REFUSED", "SIGN_IN_UNKNOWN"} <= refused,
                  f"the audit log has {refused}")


def main(_):
    with harness.scratch() as folder:
        tokens = tenants.Tokens(folder)
        options = sign_in.secured(folder, tokens)
        authority = os.path.join(folder, "authority")
        with open(os.path.join(folder, "tenants.yaml"), "a", encoding="utf-8") as f:
            f.write("  guests:\n    identities:\n"
                    "      team: {oidc: [nobody@farm.example], rights: [read]}\n")
        with open(os.path.join(folder, "tenants.yaml"), encoding="utf-8") as f:
            text = f.read()
        with open(os.path.join(folder, "tenants.yaml"), "w", encoding="utf-8") as f:
            f.write(text.replace(
                "  vision:", "      alice: {oidc: alice@farm.example, rights: [submit, read]}\n"
                "  vision:"))
        secret = os.path.join(folder, "secret")
        with open(secret, "w", encoding="utf-8") as f:
            f.write(SECRET + "\n")
        os.chmod(secret, 0o600)
        certificate = tenants.make_certificate(folder, authority, "provider", "localhost")
        with provider(certificate) as (process, port):
            options += ["--oidc-issuer", f"https://localhost:{port}", "--oidc-client-id", CLIENT,
                        "--oidc-client-secret-file", secret, "--oidc-name", "Farm login",
                        "--oidc-ca-file", authority + ".pem"]
            check_config(folder, options)
            with service.daemon(folder, options) as server:
                try:
                    drive(folder, server, tokens, process, authority)
                except harness.Failure as error:
                    raise harness.Failure(f"{error}\nnpucd's log ends:\n{server.log()}") from error
        check_audit(folder)


def drive(folder, server, tokens, process, authority):
    with open(os.path.join(folder, "port"), encoding="utf-8") as f:
        web = "https://" + re.search(r"^web=(.*)$", f.read(), re.MULTILINE).group(1)
    check_slow(web, authority)
    process.stdin.write(f"{web}/auth/callback\n")
    process.stdin.flush()
    dashboard.drive("oidc.mjs", [], {"NPUC_OIDC": json.dumps(
        {"web": web, "job": sign_in.compile_sample(folder, server, tokens)})})
