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
INITDB = "/usr/lib/postgresql/*/bin/initdb"


def is_installed():
    return bool(glob.glob(INITDB))


def programs():
    """The folder of PostgreSQL's programs; skips the suite where it is not installed."""
    if not is_installed():
        print("skipped: PostgreSQL is not installed (apt-get install postgresql-15)")
        sys.exit(harness.SKIPPED)
    return os.path.dirname(sorted(glob.glob(INITDB))[-1])


class Postgres:
    """One server. It does not run as root, so that a test that does becomes nobody for it."""

    USER = "npucd"  # an ordinary role, which owns its databases
    SUPERUSER = "root"
    PASSWORD = "fourteen-words"
    STANDBY = "standby"  # as synchronous_standby_names knows it

    def __init__(self, disk_mib=None):
        """With disk_mib: on a disk of that size, where this user may mount one."""
        self._bin = programs()
        # A socket's path may have 107 bytes.
        self.folder = tempfile.mkdtemp(prefix="npuc-pg-", dir="/tmp")
        self.process = None
        self._is_new = False
        self._settings = ()
        self.has_own_disk = disk_mib is not None and self._mount(disk_mib)
        if os.geteuid() == 0:
            os.chown(self.folder, NOBODY, NOBODY)
        self.secret_file = os.path.join(self.folder, "password")
        with open(self.secret_file, "w", encoding="utf-8") as f:
            f.write(self.PASSWORD + "\n")
        os.chmod(self.secret_file, 0o600)

    def _mount(self, disk_mib):
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={disk_mib}m", "tmpfs",
                                  self.folder], stderr=subprocess.DEVNULL, check=False)
        if mounted.returncode != 0:
            return False
        # Logs and rows that are no more leave room.
        self._settings = ("-c", f"max_wal_size={disk_mib // 8}MB", "-c", "autovacuum_naptime=2s",
                          "-c", "autovacuum_vacuum_cost_delay=0")
        return True

    def fill_disk(self):
        """Takes all room of its disk; False: that is so already."""
        path = os.path.join(self.folder, "filler")
        if os.path.exists(path):
            return False
        harness.fill_disk(path, 0)
        return True

    def empty_disk(self):
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(self.folder, "filler"))

    def make(self):
        """A new database cluster."""
        os.chmod(self.secret_file, 0o644)
        self._run("initdb", "-D", self._data(), "-A", "scram-sha-256", "-U", self.SUPERUSER,
                  "--pwfile", self.secret_file, "--no-sync", "--encoding=UTF8", "--locale=C")
        os.chmod(self.secret_file, 0o600)
        self._is_new = True

    def follow(self, primary):
        """A copy of that server, and its standby from the start on."""
        shutil.rmtree(self._data(), ignore_errors=True)
        link = (f"host={primary.folder} user={self.SUPERUSER} password={self.PASSWORD} "
                f"application_name={self.STANDBY}")
        self._run("pg_basebackup", "-D", self._data(), "-d", link, "-c", "fast", "--no-sync", "-R")

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

    def start(self, is_up=None):
        """The server's own settings of durability: npucd refuses others. It is up where it answers,
        or as is_up says."""
        def answers():
            # After a crash it is refused until all processes of the old one are gone.
            if self.process is None or self.process.poll() is not None:
                with open(os.path.join(self.folder, "log"), "ab") as log:
                    self.process = subprocess.Popen(
                        self._command("postgres", "-D", self._data(), "-k", self.folder, "-c",
                                      "listen_addresses=", "-c", "max_connections=200",
                                      *self._settings),
                        stdout=log, stderr=log, cwd="/")
            if is_up is not None:
                return is_up()
            return self.sql("SELECT 1", database="postgres", check=False) == "1"

        try:
            harness.wait_for(answers, "answer of PostgreSQL", interval=0.1)
        except harness.Failure as failure:
            raise harness.Failure(f"{failure}; the end of its log:\n{self._log_end()}") from failure
        if self._is_new:
            self.sql(f"CREATE ROLE {self.USER} LOGIN PASSWORD '{self.PASSWORD}'", "postgres")
            self._is_new = False

    def _log_end(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as log:
            return "".join(log.readlines()[-12:])

    def kill(self):
        """As a crash."""
        self.process.kill()
        self.process.wait()

    def _processes(self):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/cwd") == self._data():
                    found.append(int(pid))
        return found

    def cpu_seconds(self):
        """Processor time of its processes, those that have ended included."""
        ticks = 0
        for pid in self._processes():
            with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8") as f:
                fields = f.read().rsplit(")", 1)[1].split()
                ticks += int(fields[11]) + int(fields[12])
                if pid == self.process.pid:
                    ticks += int(fields[13]) + int(fields[14])
        return ticks / os.sysconf("SC_CLK_TCK")

    def kill_all(self):
        """As a crash of its machine: no process of it is left."""
        self.kill()

        def is_gone():
            for pid in self._processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return not self._processes()

        harness.wait_for(is_gone, "end of PostgreSQL's processes")

    def promote(self):
        """From a standby to a server that takes writes."""
        self._run("pg_ctl", "promote", "-D", self._data(), "-w", "-t", "60")

    def socket(self):
        return os.path.join(self.folder, ".s.PGSQL.5432")

    def url(self, database, port=None, standby=None, user=USER):
        """By its socket, or by a port of this machine that leads there; with a standby, by the one
        of both that takes writes."""
        if port is not None:
            return f"postgres://{user}@127.0.0.1:{port}/{database}"
        folders = self.folder if standby is None else f"{self.folder},{standby.folder}"
        return f"postgres://{user}@/{database}?host={folders}"

    def sql(self, statement, database, check=True):
        """As the superuser."""
        url = self.url(database, user=self.SUPERUSER)
        done = subprocess.run(["psql", "-qAtX", "-c", statement, url],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              universal_newlines=True,
                              env={**os.environ, "PGPASSWORD": self.PASSWORD})
        harness.check(not check or done.returncode == 0, f"psql {statement}: {done.stderr}")
        return done.stdout.strip()

    def new_database(self, name):
        self.sql(f"CREATE DATABASE {name} OWNER {self.USER}", database="postgres")
        return self.url(name)

    def end(self):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(30)
        if self.has_own_disk:
            harness.run("umount", self.folder)
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def server(disk_mib=None):
    one = Postgres(disk_mib)
    try:
        one.make()
        one.start()
        yield one
    finally:
        one.end()
