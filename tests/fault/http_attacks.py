#!/usr/bin/python3
"""Attacks on npucd's ports by raw sockets and gRPC: none may cost the others more than a moment.

    http_attacks.py [--long]    long: larger bombs and more connections
"""

import argparse
import concurrent.futures
import contextlib
import gzip
import io
import json
import os
import re
import socket
import struct
import sys
import time
import urllib.error
import urllib.request

import grpc

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import harness  # noqa: E402
import service  # noqa: E402
import tenants  # noqa: E402

MIB = 1 << 20
# Bounds: growth of the daemon's memory by a refused bomb; time of an answer beside an attack.
MAX_GROWTH = 48 * MIB
MAX_SECONDS = 2.0


class Target:
    """A daemon with tokens and both HTTP ports."""

    def __init__(self, folder, server, tokens):
        self.server, self._tokens = server, tokens
        with open(os.path.join(folder, "port"), encoding="utf-8") as f:
            ports = dict(line.strip().split("=", 1) for line in f)
        self.grpc = ports["grpc"]
        self.web, self.http = (int(ports[name].rsplit(":", 1)[1]) for name in ("web", "http"))

    def token(self, name="ci"):
        return f"Bearer {self._tokens.tokens[name]}"

    def resident(self, field="VmRSS"):
        with open(f"/proc/{self.server.process.pid}/status", encoding="utf-8") as f:
            return next(int(line.split()[1]) * 1024 for line in f if line.startswith(field))

    @contextlib.contextmanager
    def bounded_memory(self, what):
        """The highest resident memory in between is little more than before."""
        with open(f"/proc/{self.server.process.pid}/clear_refs", "w", encoding="utf-8") as f:
            f.write("5")  # resets VmHWM
        before = self.resident()
        yield
        growth = self.resident("VmHWM") - before
        harness.check(growth < MAX_GROWTH, f"{what}: npucd grew by {growth >> 20} MiB")
        harness.figure(f"attacks: {what}: npucd grew by {max(0, growth) >> 20} MiB")

    def get(self, port, path, **headers):
        """(status, seconds) of one ordinary request on a connection of its own."""
        begin = time.monotonic()
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=20) as response:
                status = response.status
                response.read()
        except urllib.error.HTTPError as error:
            status = error.code
        return status, time.monotonic() - begin

    def check_served(self, what):
        """Health and a call with a token are answered at once."""
        status, seconds = self.get(self.http, "/healthz")
        harness.check(status == 200 and seconds < MAX_SECONDS,
                      f"{what}: /healthz gave {status} after {seconds:.1f} s")
        status, seconds = self.get(self.web, "/v1/server", Authorization=self.token())
        harness.check(status == 200 and seconds < MAX_SECONDS,
                      f"{what}: /v1/server gave {status} after {seconds:.1f} s")


def dial(port, data=b""):
    connection = socket.create_connection(("127.0.0.1", port), timeout=15)
    with contextlib.suppress(OSError):
        connection.sendall(data)
    return connection


def talk(port, data):
    """All that comes back."""
    with dial(port, data) as connection:
        answer = b""
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
            while True:
                part = connection.recv(65536)
                if not part:
                    break
                answer += part
        return answer


def status_of(answer):
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0


def bomb(size):
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as out:
        for _ in range(size // MIB):
            out.write(bytes(MIB))
    return packed.getvalue()


def http_bomb(target, long):
    data = bomb((1024 if long else 256) * MIB)
    head = (f"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Encoding: gzip\r\nContent-Length: {len(data)}\r\n")
    with target.bounded_memory(f"a gzip body of {len(data) >> 10} KiB by HTTP"):
        status = status_of(talk(target.web, head.encode() + b"\r\n" + data))
        harness.check(status in (0, 401), f"without a token: {status}, not 401")
        head += f"Authorization: {target.token()}\r\n"
        status = status_of(talk(target.web, head.encode() + b"\r\n" + data))
        harness.check(status in (0, 415), f"with a token: {status}, not 415")


def grpc_bomb(target, long):
    size = (400 if long else 200) * MIB
    with target.bounded_memory(f"a gzip message of {size >> 20} MiB by gRPC"):
        with grpc.insecure_channel(target.grpc, options=[
                ("grpc.max_send_message_length", -1)]) as channel:
            call = channel.unary_unary("/npuc.v1.CompileService/CreateCompileJob")
            try:
                call(bytes(size), timeout=60, compression=grpc.Compression.Gzip)
                raise harness.Failure("a compressed message was taken")
            except grpc.RpcError as error:
                harness.check(error.code() == grpc.StatusCode.UNIMPLEMENTED,
                              f"{error.code()}: {error.details()}")


def smuggling(target, _long):
    """Each request has two readings; what is behind it is no second request."""
    second = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    get, post = b"GET /v1/server HTTP/1.1\r\n", b"POST /v1/jobs HTTP/1.1\r\n"
    host = b"Host: localhost\r\n"
    requests = {
        "a body of GET": get + host + b"Content-Length: %d\r\n\r\n" % len(second),
        "two lengths": post + host + b"Content-Length: 0\r\nContent-Length: 5\r\n\r\n",
        "length and chunks": post + host + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"
                             b"\r\n0\r\n\r\n",
        "an odd encoding": post + host + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "a list of encodings": post + host + b"Transfer-Encoding: chunked, identity\r\n\r\n",
        "a signed length": post + host + b"Content-Length: +2\r\n\r\n{}",
        "two hosts": get + host + b"Host: other\r\n\r\n",
        "no host": get + b"\r\n",
        "a blank before the colon": post + host + b"Content-Length : 2\r\n\r\n{}",
        "bare line feeds": b"GET /v1/server HTTP/1.1\nHost: localhost\n\n",
    }
    for port in (target.web, target.http):
        for name, request in requests.items():
            answer = talk(port, request + second)
            harness.check(status_of(answer) == 400, f"{name}: {answer[:200]}")
            harness.check(len(re.findall(rb"HTTP/1\.1 \d{3} ", answer)) == 1,
                          f"{name}: two answers: {answer[:900]}")
    two = talk(target.web, get + host + b"Authorization: " + target.token().encode() +
               b"\r\nAuthorization: Bearer x\r\n\r\n")
    harness.check(status_of(two) == 401, f"two tokens: {two[:200]}")
    harness.figure(f"attacks: {2 * len(requests)} requests with two readings: each 400, and closed")


def slow_connections(target, long):
    """Half requests, silent connections and kept ones, more than there are places."""
    half = (b"", b"GET /v1/ser", b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Le",
            b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    count = 2000 if long else 600
    held = []
    try:
        for i in range(count):
            held.append(dial(target.web, half[i % len(half)]))
            if i < 100:
                held.append(dial(target.http, half[i % len(half)]))
            if i in (4, 130, count - 1):
                target.check_served(f"beside {i + 1} slow connections")
        for i in range(20):
            target.check_served("beside all slow connections")
    finally:
        for connection in held:
            connection.close()
    harness.figure(f"attacks: beside {count} slow connections health and API answer within "
                   f"{MAX_SECONDS} s")


def drip(target, _long):
    """A byte now and then does not keep a place: the deadline is the request's."""
    def one(port):
        begin = time.monotonic()
        with dial(port) as connection:
            with contextlib.suppress(OSError):
                for byte in b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 200:
                    connection.sendall(bytes([byte]))
                    time.sleep(0.2)
        return time.monotonic() - begin
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for seconds in pool.map(one, (target.web, target.http)):
            harness.check(seconds < 14, f"a request that drips was kept for {seconds:.0f} s")


def wrong_tokens(target, long):
    answers = {}
    for i in range(2000 if long else 200):
        status, _ = target.get(target.web, "/v1/server", Authorization=f"Bearer {'w' * 40}{i}")
        answers[status] = answers.get(status, 0) + 1
    harness.check(set(answers) == {401, 429}, f"answers: {answers}")
    with grpc.insecure_channel(target.grpc) as channel:
        call = channel.unary_unary("/npuc.v1.CompileService/ListCompileJobs")
        try:
            call(b"", timeout=20, metadata=[("authorization", "Bearer " + "w" * 40)])
        except grpc.RpcError as error:
            harness.check(error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED, f"{error}")
        try:
            call(b"", timeout=20, metadata=[("authorization", target.token()),
                                            ("authorization", "Bearer x")])
            raise harness.Failure("two tokens were taken")
        except grpc.RpcError as error:
            harness.check(error.code() == grpc.StatusCode.UNAUTHENTICATED, f"{error}")
    target.check_served("after many wrong tokens")
    lines = [json.loads(line) for line in target.server.log().splitlines() if "wrong" in line]
    peers = [line for line in lines if line.get("peer") == "127.0.0.1"]
    harness.check(len(peers) == 1, f"lines of the log about wrong tokens: {lines}")
    harness.figure(f"attacks: wrong tokens by HTTP: {answers}; one line with the peer in the log")


def problems(target, _long):
    """A config with 100 problems: their first ones reach a default gRPC client."""
    config = "".join(f"NO_SUCH_KEY_{i}: {'x' * 60}\n" for i in range(100)).encode()

    def field(number, data):
        return bytes([number << 3 | 2]) + varint(len(data)) + data

    def varint(value):
        return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)

    model = field(1, b"f" * 64) + b"\x10\x01"
    spec = field(1, config) + field(2, b"config.yaml") + field(3, model)
    with grpc.insecure_channel(target.grpc) as channel:
        call = channel.unary_unary("/npuc.v1.CompileService/CreateCompileJob")
        try:
            call(field(2, spec), timeout=20, metadata=[("authorization", target.token())])
            raise harness.Failure("a config with 100 problems was taken")
        except grpc.RpcError as error:
            harness.check(error.code() == grpc.StatusCode.INVALID_ARGUMENT,
                          f"{error.code()}: {error.details()}")
            details = dict(error.trailing_metadata())["grpc-status-details-bin"]
            harness.check(b" more" in details and len(details) < 6 << 10,
                          f"{len(details)} bytes of details")
            harness.figure(f"attacks: 100 problems reach a default client in {len(details)} bytes")


def broken_tls(target, _long):
    """Bytes that are no HTTP at all."""
    for data in (struct.pack(">BHH", 22, 0x301, 65535) + os.urandom(2000), b"\0" * 5000,
                 b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"):
        for port in (target.web, target.http):
            talk(port, data)
    target.check_served("after bytes that are no HTTP")


ATTACKS = (http_bomb, grpc_bomb, smuggling, slow_connections, drip, problems, broken_tls,
           wrong_tokens)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--only", help="one attack's name")
    options = parser.parse_args()
    failed = 0
    with harness.scratch() as folder:
        tokens = tenants.Tokens(folder)
        tenants_file = os.path.join(folder, "tenants.yaml")
        with open(tenants_file, "w", encoding="utf-8") as f:
            f.write(tokens.tenants())
        with service.daemon(folder, ("--insecure", "--tenants", tenants_file, "--web",
                                     "127.0.0.1:0", "--http", "127.0.0.1:0")) as server:
            target = Target(folder, server, tokens)
            for attack in ATTACKS:
                if options.only not in (None, attack.__name__):
                    continue
                begin = time.monotonic()
                try:
                    attack(target, options.long)
                    print(f"{attack.__name__}: held ({time.monotonic() - begin:.1f} s)", flush=True)
                except (harness.Failure, OSError) as error:
                    failed += 1
                    print(f"{attack.__name__}: FAILED: {error}", flush=True)
                    time.sleep(1)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
