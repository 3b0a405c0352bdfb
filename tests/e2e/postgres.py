"""A PostgreSQL of the test's own: unprivileged, in a temporary folder, on a socket there."""

import contextlib
import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile

import harness

NOBODY = 65534


def programs():
    """The folder of PostgreSQL's programs; skips the suite where it is not installed."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    if not found:
        print("skipped: PostgreSQL is not installed (apt-get install postgresql-15)")
        sys.exit(harness.SKIPPED)
    return os.path.dirname(found[-1])


class Postgres:
    """One server. It does not run as root, so that a test that does becomes nobody for it."""

    USER = "npucd"
    PASSWORD = "fourteen-words"

    def __init__(self):
        self._bin = programs()
        # A socket's path may have 107 bytes.
        self.folder = tempfile.mkdtemp(prefix="npuc-pg-", dir="/tmp")
        self.process = None
        if os.geteuid() == 0:
            os.chown(self.folder, NOBODY, NOBODY)
        secret = os.path.join(self.folder, "password")
        with open(secret, "w", encoding="utf-8") as f:
            f.write(self.PASSWORD + "\n")
        os.chmod(secret, 0o644)
        self._run("initdb", "-D", self._data(), "-A", "scram-sha-256", "-U", self.USER,
                  "--pwfile", secret, "--no-sync", "--encoding=UTF8", "--locale=C")
        os.chmod(secret, 0o600)
        self.secret_file = secret

    def _data(self):
        return os.path.join(self.folder, "data")

    def _command(self, name, *arguments):
        command = [os.path.join(self._bin, name), *arguments]
        if os.geteuid() == 0:
            command = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", *command]
        return command

    def _run(self, name, *arguments):
        done = subprocess.run(self._command(name, *arguments), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, cwd="/", check=False,
                              universal_newlines=True)
        harness.check(done.returncode == 0, f"{name}: {done.stdout}")

    def start(self):
        """The server's own settings of durability: npucd refuses others."""
        def answers():
            # After a crash it is refused until all processes of the old one are gone.
            if self.process is None or self.process.poll() is not None:
                with open(os.path.join(self.folder, "log"), "ab") as log:
                    self.process = subprocess.Popen(
                        self._command("postgres", "-D", self._data(), "-k", self.folder, "-c",
                                      "listen_addresses=", "-c", "max_connections=200"),
                        stdout=log, stderr=log, cwd="/")
            return self.sql("SELECT 1", database="postgres", check=False) == "1"

        harness.wait_for(answers, "answer of PostgreSQL", interval=0.1)

    def kill(self):
        """As a crash."""
        self.process.kill()
        self.process.wait()

    def url(self, database):
        return f"postgres://{self.USER}@/{database}?host={self.folder}"

    def sql(self, statement, database, check=True):
        done = subprocess.run(["psql", "-qAtX", "-c", statement, self.url(database)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              universal_newlines=True,
                              env={**os.environ, "PGPASSWORD": self.PASSWORD})
        harness.check(not check or done.returncode == 0, f"psql {statement}: {done.stderr}")
        return done.stdout.strip()

    def new_database(self, name):
        self.sql(f"CREATE DATABASE {name}", database="postgres")
        return self.url(name)

    def end(self):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(30)
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def server():
    one = Postgres()
    try:
        one.start()
        yield one
    finally:
        one.end()
