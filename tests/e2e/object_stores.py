"""Object stores for a cluster's content (--cluster-content): a folder, and S3 by npm's s3rver.

s3rver checks no signature. A gate in front of it does, by Amazon's botocore, speaks TLS, and can be
made to break connections or to answer nothing.
"""

import calendar
import hashlib
import http.client
import http.server
import os
import shutil
import ssl
import subprocess
import sys
import threading
import time

import aws_signer
import harness
import tenants

HERE = os.path.dirname(os.path.abspath(__file__))


def s3rver():
    """The program of s3rver, or why there is none."""
    if shutil.which("npm") is None:
        return None, "npm is not installed"
    if not aws_signer.IS_THERE:
        return None, "python3-botocore is not installed"
    folder = os.path.join(os.path.dirname(os.path.abspath(harness.BIN)), "e2e-s3")
    os.makedirs(folder, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(os.path.join(HERE, "s3", name), folder)
    program = os.path.join(folder, "node_modules", "s3rver", "bin", "s3rver.js")
    if not os.path.exists(program):
        done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
                              cwd=folder, check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, universal_newlines=True)
        if done.returncode != 0:
            print(done.stdout, file=sys.stderr)
            return None, "npm cannot install s3rver"
    return program, None


class Folder:
    """A folder that all nodes mount."""

    name = "folder"
    hangs = None  # a local folder cannot be made to hang

    def __init__(self, folder):
        self._root = os.path.join(folder, "share")
        os.makedirs(self._root)
        self.flags = ("--cluster-content", f"file://{self._root}")

    def objects(self):
        """name -> path, without the marker."""
        found = {}
        for where, _, files in os.walk(self._root):
            for file in files:
                path = os.path.join(where, file)
                if file != "marker":
                    found[os.path.relpath(path, self._root)] = path
        return found

    def put(self, name, content):
        path = os.path.join(self._root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(content)

    def go_away(self):
        """As a share that is no longer mounted."""
        os.rename(self._root, self._root + ".away")
        os.makedirs(self._root)

    def come_back(self):
        os.rmdir(self._root)
        os.rename(self._root + ".away", self._root)

    def end(self):
        pass


class S3:
    """A bucket of s3rver behind the gate."""

    name = "s3"
    KEY, SECRET, REGION = "NPUCFARM", "a/secret+of=the/farm", "eu-test-1"

    def __init__(self, folder, program):
        self._data = os.path.join(folder, "s3rver")
        os.makedirs(self._data)
        self._log = open(os.path.join(folder, "s3rver.log"), "wb")
        self._node = subprocess.Popen(
            ["node", program, "-d", self._data, "-a", "127.0.0.1", "-p", "0",
             "--configure-bucket", "farm"], stdout=self._log, stderr=self._log)
        port = harness.wait_for(lambda: self._port(folder), "port of s3rver", interval=0.05)
        self.credentials_file = os.path.join(folder, "s3_credentials")
        self.write_credentials(self.SECRET)
        authority = tenants.make_authority(folder, "store-authority")
        certificate = tenants.make_certificate(folder, authority, "gate", "localhost")
        self._gate = Gate(port, certificate, self)
        self.flags = (
            "--cluster-content", f"s3://farm/npuc?endpoint=https://localhost:{self._gate.port}"
            f"&region={self.REGION}", "--cluster-content-credentials-file", self.credentials_file,
            "--cluster-content-ca-file", authority + ".pem")

    def _port(self, folder):
        with open(os.path.join(folder, "s3rver.log"), encoding="utf-8") as log:
            said = log.read()
        code = self._node.poll()
        harness.check(code is None, f"s3rver ended with {code}: {said[-1000:]}")
        for line in said.splitlines():
            if "listening on" in line:
                return int(line.rsplit(":", 1)[1])
        return None

    def write_credentials(self, secret):
        beside = self.credentials_file + ".new"
        with open(beside, "w", encoding="utf-8", opener=lambda p, f: os.open(p, f, 0o600)) as f:
            f.write(f"[default]\naws_access_key_id = {self.KEY}\n"
                    f"aws_secret_access_key = {secret}\n")
        os.rename(beside, self.credentials_file)

    def objects(self):
        root, end = os.path.join(self._data, "farm", "npuc"), "._S3rver_object"
        found = {}
        for where, _, files in os.walk(root):
            for file in files:
                if file.endswith(end) and file != "marker" + end:
                    path = os.path.join(where, file)
                    found[os.path.relpath(path, root)[:-len(end)]] = path
        return found

    def put(self, name, content):
        connection = http.client.HTTPConnection("127.0.0.1", self._gate.target)
        connection.request("PUT", f"/farm/npuc/{name}", body=content)
        answer = connection.getresponse()
        harness.check(answer.status == 200, f"s3rver: {answer.status} {answer.read()}")

    def go_away(self):
        self._gate.mode = "break"

    def hangs(self):
        self._gate.mode = "hang"

    def come_back(self):
        self._gate.mode = "pass"

    def counts(self):
        """Requests that passed, and those whose signature or body botocore did not confirm."""
        return self._gate.passed, self._gate.refused

    def end(self):
        self._gate.end()
        self._node.kill()
        self._node.wait()
        self._log.close()


class Gate:
    """Lets requests through to s3rver that botocore would have signed the same way."""

    def __init__(self, target, certificate, store):
        self.target, self.store = target, store
        self.mode, self.passed, self.refused = "pass", 0, 0
        gate = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            do_GET = do_PUT = do_DELETE = lambda handler: gate.handle(handler)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate + ".pem", certificate + ".key")
        # The handshake is its connection's thread's.
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True,
                                                  do_handshake_on_connect=False)
        self._server.handle_error = lambda *_: None
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def is_signed(self, handler, body):
        sent = handler.headers
        given = sent.get("Authorization", "")
        if "SignedHeaders=" not in given:
            return False
        names = given.split("SignedHeaders=")[1].split(",")[0].split(";")
        own = ("host", "x-amz-date", "x-amz-content-sha256", "x-amz-security-token")
        seconds = calendar.timegm(time.strptime(sent["x-amz-date"], "%Y%m%dT%H%M%SZ"))
        expected = aws_signer.authorization(
            handler.command, f"https://{sent['Host']}{handler.path}",
            {name: sent[name] for name in names if name not in own}, body, self.store.KEY,
            self.store.SECRET, sent.get("x-amz-security-token"), self.store.REGION, seconds)
        return (given == expected and abs(time.time() - seconds) < 300
                and sent["x-amz-content-sha256"] == hashlib.sha256(body).hexdigest())

    def handle(self, handler):
        mode = self.mode
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        handler.close_connection = mode != "pass"
        if mode == "break":
            return
        if mode == "hang":
            while self.mode == "hang":
                time.sleep(0.05)
            return
        if not self.is_signed(handler, body):
            self.refused += 1
            self.answer(handler, 403, b"<Error><Code>SignatureDoesNotMatch</Code></Error>")
            return
        self.passed += 1
        connection = http.client.HTTPConnection("127.0.0.1", self.target)
        headers = {"Range": handler.headers["range"]} if "range" in handler.headers else {}
        connection.request(handler.command, handler.path, body=body or None, headers=headers)
        got = connection.getresponse()
        self.answer(handler, got.status, got.read())
        connection.close()

    @staticmethod
    def answer(handler, status, body):
        handler.send_response(status)
        if status != 204:
            handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def end(self):
        self.mode = "break"
        self._server.shutdown()
        self._server.server_close()
