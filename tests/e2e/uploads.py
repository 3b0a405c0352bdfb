"""A large upload through a line that breaks, to a daemon that is killed: what is sent again?

Between npuc-remote and npucd stands a proxy that counts the client's bytes and, when it has passed
so many of them, breaks the connection; at some of these points the daemon is killed as well
(SIGKILL) and started on its data. After each break the client may send one chunk again and no more.
In the end the blob's bytes are those of the file.

Where PostgreSQL is installed, also between two nodes of a cluster: at each break the client is
led to the other node, and one of them is killed. There a break may cost a part of 8 MiB.

    run_e2e.py uploads [--long] [--seed N]      --long: 1 GiB and 100 breaks; else 48 MiB and 12
"""

import argparse
import hashlib
import os
import random
import socket
import struct
import threading
import time

import cluster
import harness
import postgres
import service

# What one break may cost: a message of npuc-remote (384 KiB), and what the stream's window (64 KiB)
# and the proxy's last read hold of the next one.
CHUNK_BYTES = 512 << 10
# Frames of HTTP/2 and heads of messages, as a share; calls that are no upload, once a connection.
FRAMING = 0.003
CALLS_BYTES = 8 << 10
# An upload goes on at another node behind the last whole part.
PART_BYTES = 8 << 20
CONFIG = ("CORENAME: GRUS\nNPU_UNIT: NPU32\nFRAMEWORK: TF\nOUTPUT_TYPE: c_code\n"
          "MODEL_FILE: model.pb\nOUTPUT_FILE: model.h\nINPUT_OPS:\n  x: [1, 4]\nOUTPUT_OPS: [y]\n")


class Proxy:
    """Passes connections on to `target` and counts what clients send. `on_break` is called, with
    the connection just broken, each time the count passes the next of `points`."""

    def __init__(self, target, points, on_break):
        self.lead_to(target)
        self._points = list(points)
        self._on_break = on_break
        self._lock = threading.Lock()
        self.sent_bytes = 0
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def lead_to(self, target):
        """New connections go to this address."""
        host, port = target.rsplit(":", 1)
        self._target = (host, int(port))

    def close(self):
        self._listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._target)
            except OSError:
                client.close()
                continue
            threading.Thread(target=self._pump, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self._pump, args=(server, client, False), daemon=True).start()

    def _pump(self, source, sink, counted):
        try:
            while True:
                data = source.recv(64 << 10)
                if not data:
                    break
                sink.sendall(data)
                if counted and self._count(len(data)):
                    # A reset and not an end, as a line that breaks gives.
                    for one in (source, sink):
                        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                       struct.pack("ii", 1, 0))
                    break
        except OSError:
            pass
        for one in (source, sink):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()

    def _count(self, count):
        """True where the connection is to break now."""
        with self._lock:
            self.sent_bytes += count
            if not self._points or self.sent_bytes < self._points[0]:
                return False
            self._points.pop(0)
            self._on_break(self.sent_bytes)
            return True

    def left(self):
        return len(self._points)


def write_model(path, size, rng):
    sha256, md5 = hashlib.sha256(), hashlib.md5()
    with open(path, "wb") as f:
        while f.tell() < size:
            block = rng.randbytes(min(1 << 20, size - f.tell()))
            f.write(block)
            sha256.update(block)
            md5.update(block)
    return sha256.hexdigest(), md5.hexdigest()


def check_blob(path, sha256):
    found = hashlib.sha256()
    with open(path, "rb") as f:
        for block in iter(lambda: f.read(1 << 20), b""):
            found.update(block)
    harness.check(found.hexdigest() == sha256, "the blob's bytes are not the file's")


def test_other_node(folder, config, size, sha256, md5):
    """An upload that goes on at another node after each break."""
    points = [20 << 20, 40 << 20]
    with postgres.server() as server:
        url = server.new_database("uploads")
        cluster.migrate(server, url)
        nodes = [cluster.Node(folder, name, server, url) for name in ("a", "b")]
        try:
            for node in nodes:
                node.start()
            broken = []

            def on_break(_sent):
                broken.append(1)
                proxy.lead_to(nodes[len(broken) % 2].address)
                if len(broken) == len(points):
                    nodes[1].kill()  # the client was there

            proxy = Proxy(nodes[0].address, points, on_break)
            harness.run(harness.program("npuc-remote"), "--server", proxy.address, "submit", config,
                        timeout=600)
            proxy.close()
            harness.check(proxy.left() == 0, f"{proxy.left()} breaks did not happen")
            blobs = os.path.join(folder, "a", "data", "blobs", "blobs", "default")
            check_blob(os.path.join(blobs, sha256[:2], f"{sha256}-{md5}"), sha256)
        finally:
            for node in nodes:
                node.stop()
    extra = proxy.sent_bytes * (1 - FRAMING) - size
    allowed = len(points) * (PART_BYTES + CHUNK_BYTES)
    harness.check(extra <= allowed,
                  f"{extra:.0f} bytes were sent again, at most {allowed} are allowed")
    harness.figure(f"uploads: {size >> 20} MiB over {len(points)} changes of the node: "
                   f"{extra / len(points) / (1 << 20):.1f} MiB sent again for each")


def main(arguments):
    parser = argparse.ArgumentParser(prog="uploads")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    size = (1 << 30) + 12345 if options.long else (48 << 20) + 12345
    breaks = 100 if options.long else 12
    rng = random.Random(options.seed)
    with harness.scratch() as folder:
        sha256, md5 = write_model(os.path.join(folder, "model.pb"), size, rng)
        config = os.path.join(folder, "config.yaml")
        with open(config, "w", encoding="utf-8") as f:
            f.write(CONFIG)
        # At least two chunks apart, so that each break finds an upload that goes on.
        gap = 2 * CHUNK_BYTES
        spots = sorted(rng.randrange(size - breaks * gap) for _ in range(breaks))
        points = [spot + i * gap for i, spot in enumerate(spots)]
        kills = set(rng.sample(range(breaks), breaks // 3))
        with service.daemon(folder) as server:
            stored = os.path.join(folder, "data", "blobs", "uploads", "default",
                                  f"{sha256}-{size}")
            done = []  # (sent, committed) at each break

            def committed():
                return os.path.getsize(stored) if os.path.exists(stored) else 0

            def on_break(sent):
                if len(done) in kills:
                    server.kill()
                    done.append((sent, committed()))
                    server.start()
                else:
                    # What it has received it may still store; the client comes back later.
                    done.append((sent, committed()))

            proxy = Proxy(server.address, points, on_break)
            begin = time.monotonic()
            harness.run(harness.program("npuc-remote"), "--server", proxy.address, "submit", config,
                        timeout=1800)
            took = time.monotonic() - begin
            proxy.close()
            harness.check(proxy.left() == 0, f"{proxy.left()} breaks did not happen")
            check_blob(os.path.join(folder, "data", "blobs", "blobs", "default", sha256[:2],
                                    f"{sha256}-{md5}"), sha256)
            harness.check(not os.path.exists(stored), "the upload is still open")
        again = []  # what had been sent and was not there, at each break
        before_sent = before_stored = 0
        for sent, there in done:
            again.append((sent - before_sent) * (1 - FRAMING) - CALLS_BYTES -
                         (there - before_stored))
            before_sent, before_stored = sent, there
        allowed = CHUNK_BYTES
        harness.check(max(again) <= allowed,
                      f"a break cost {max(again):.0f} bytes, {allowed} are allowed: {done}")
        extra = proxy.sent_bytes * (1 - FRAMING) - size
        harness.check(extra <= breaks * allowed,
                      f"{extra:.0f} bytes were sent again, at most {breaks * allowed} are allowed")
        harness.figure(
            f"uploads: {size >> 20} MiB over {breaks} breaks, {len(kills)} of them kill -9 of the "
            f"daemon (seed {options.seed}): at most {max(again) / CHUNK_BYTES:.2f} of a chunk of "
            f"{CHUNK_BYTES >> 10} KiB sent again for a break, "
            f"{extra / breaks / CHUNK_BYTES:.2f} on the average; bytes verified; {took:.1f} s")
        if postgres.is_installed():
            test_other_node(folder, config, size, sha256, md5)
