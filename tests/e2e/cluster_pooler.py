"""Two npucds whose PostgreSQL is behind pgbouncer in transaction mode, with fewer sessions than
they would open: jobs of both, a node that is killed, a pooler that starts again.

    cluster_pooler

Skipped where PostgreSQL or pgbouncer is not installed.
"""

import contextlib
import os
import shutil
import subprocess
import sys

import cluster
import harness
import postgres
import service

DATABASE = "pooled"
SESSIONS = 6  # of PostgreSQL, for all nodes


class Pooler:
    """A pgbouncer on a port of its own."""

    def __init__(self, program, folder, server):
        self._program, self._folder = program, folder
        self.port = int(cluster.free_address().split(":")[1])
        self._process = None
        users = os.path.join(folder, "users.txt")
        with open(users, "w", encoding="utf-8") as f:
            f.write(f'"{server.USER}" "{server.PASSWORD}"\n')
        with open(os.path.join(folder, "pgbouncer.ini"), "w", encoding="utf-8") as f:
            f.write(f"[databases]\n* = host={server.folder}\n[pgbouncer]\n"
                    f"listen_addr = 127.0.0.1\nlisten_port = {self.port}\n"
                    f"unix_socket_dir =\nauth_type = scram-sha-256\nauth_file = {users}\n"
                    f"pool_mode = transaction\ndefault_pool_size = {SESSIONS}\n")
        os.chmod(folder, 0o755)  # nobody reads there

    def start(self):
        user = {"user": postgres.NOBODY} if os.geteuid() == 0 else {}
        with open(os.path.join(self._folder, "log"), "ab") as log:
            self._process = subprocess.Popen(
                [self._program, os.path.join(self._folder, "pgbouncer.ini")], stdout=log,
                stderr=log, **user)

    def stop(self):
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        self._process = None


def sessions(server):
    return int(server.sql("SELECT count(*) FROM pg_stat_activity WHERE usename = "
                          f"'{server.USER}'", DATABASE))


def test(server, pooler, folder, config):
    cluster.migrate(server, server.new_database(DATABASE))
    url = server.url(DATABASE, port=pooler.port)

    def compile_at(node):
        """A compile that waits for its job, from the upload on."""
        node.remote("compile", config, "--no-cache", "-o", os.path.join(folder, f"out_{node.name}"))

    with contextlib.ExitStack() as stack:
        nodes = [cluster.Node(folder, name, server, url, extra=("--cluster-pooler",))
                 for name in ("a", "b")]
        for node in nodes:
            node.start()
            stack.callback(node.stop)
        a, b = nodes
        compile_at(a)
        # Taken and watched at a, run by b.
        a.remote("admin", "cordon")
        compile_at(a)
        a.remote("admin", "uncordon")
        b.kill()
        for _ in range(3):
            compile_at(a)
        b.start()
        # All sessions end, and statements under way have no answer.
        pooler.stop()
        pooler.start()
        compile_at(b)
        count = int(server.sql("SELECT count(*) FROM pg_stat_activity WHERE usename = "
                               f"'{server.USER}'", DATABASE))
        harness.check(0 < count <= SESSIONS, f"{count} sessions of PostgreSQL")
        left = server.sql("SELECT count(*) FROM npuc.job WHERE ended_us IS NULL AND tenant <> "
                          "'0canary'", DATABASE)
        harness.check(left == "0", f"{left} jobs have not ended")


def test_refusals(server, pooler, folder):
    """A role without the settings, and a migration through the pooler."""
    url = server.url(DATABASE, port=pooler.port)
    done = harness.run(harness.program("npucd"), "--migrate", "--cluster", url, "--cluster-pooler",
                       "--cluster-secret-file", server.secret_file, expect=1)
    harness.check("without --cluster-pooler" in done.stderr, done.stderr)
    server.sql(f"ALTER ROLE {server.USER} IN DATABASE {DATABASE} RESET ALL", "postgres")
    pooler.stop()
    pooler.start()
    said = cluster.refused(cluster.Node(folder, "c", server, url, extra=("--cluster-pooler",)))
    harness.check("ALTER ROLE" in said and "search_path = npuc" in said, said)


def main(_):
    program = shutil.which("pgbouncer", path="/usr/sbin:" + os.environ.get("PATH", ""))
    postgres.programs()
    if program is None:
        print("skipped: pgbouncer is not installed (apt-get install pgbouncer)")
        sys.exit(harness.SKIPPED)
    with harness.scratch() as folder, postgres.server() as server:
        config = service.write_model(folder)
        pooler_folder = os.path.join(folder, "pooler")
        os.makedirs(pooler_folder)
        os.chmod(folder, 0o755)
        pooler = Pooler(program, pooler_folder, server)
        pooler.start()
        try:
            test(server, pooler, folder, config)
            test_refusals(server, pooler, folder)
        finally:
            pooler.stop()
