"""The Debian packages in a system of their own: installed, used, upgraded and purged.

    run_e2e.py packages [--bare [--mirror URL]]

cpack makes npucd, npuc and python3-npuc from the programs of this build. The system is this one's
files below an overlay, which takes every change and goes with the suite; needs root, and a kernel
that mounts overlays. In it: install; the config checked and the daemon started by it as its user;
the sample compiled by one command; an upgrade keeps an edited config, and the job of before keeps
its artifacts; a removal keeps data; a purge leaves nothing.

With --bare the system is Debian's smallest, which debootstrap fetches from the mirror, and apt
brings all that the packages depend on: a dependency that a package does not state is seen. Needs
the network.
"""

import argparse
import contextlib
import glob
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys

import harness

BUILD = os.path.dirname(harness.BIN)
VERSIONS = ("0.1.0", "0.1.1")
PATH = "PATH=/usr/sbin:/usr/bin:/sbin:/bin"


def packages(folder, version):
    """Builds the packages; returns their files."""
    where = os.path.join(folder, version)
    harness.run("cpack", "--config", os.path.join(BUILD, "CPackConfig.cmake"), "-B", where,
                "-D", "CPACK_COMPONENTS_ALL=server;tools;python",
                "-D", f"CPACK_PACKAGE_VERSION={version}",
                timeout=600)
    found = sorted(glob.glob(os.path.join(where, "*.deb")))
    names = [os.path.basename(path).split("_")[0] for path in found]
    harness.check(names == ["npuc", "npucd", "python3-npuc"], f"packages: {found}")
    return found


def bind(root):
    for name in ("proc", "dev"):
        subprocess.run(["mount", "--rbind", f"/{name}", f"{root}/{name}"], check=True)
        # An unmount in here leaves the outer mounts alone.
        subprocess.run(["mount", "--make-rslave", f"{root}/{name}"], check=True)
    # No service manager is asked, and no work folder is seen.
    for name in ("run", "tmp"):
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", f"{root}/{name}"], check=True)


class System:
    """A chroot on an overlay of `lower`: this system, or a bare one."""

    def __init__(self, folder, lower):
        self.root = os.path.join(folder, "root")
        self._folder = folder
        self._lower = lower

    def __enter__(self):
        for name in ("upper", "work", "root"):
            os.mkdir(os.path.join(self._folder, name))
        options = ",".join(f"{key}={os.path.join(self._folder, name)}" for key, name in
                           (("upperdir", "upper"), ("workdir", "work")))
        # An overlay cannot lie on an overlay's own folders, so its changes are in memory.
        mounted = subprocess.run(["mount", "-t", "overlay", "overlay", "-o",
                                  f"lowerdir={self._lower},{options}", self.root], check=False,
                                 capture_output=True)
        if mounted.returncode:
            print(f"skipped: no overlay can be mounted: {mounted.stderr.decode().strip()}")
            sys.exit(harness.SKIPPED)
        bind(self.root)
        return self

    def __exit__(self, *_):
        for name in ("proc", "dev", "run", "tmp", ""):
            subprocess.run(["umount", "-R", "-l", os.path.join(self.root, name)], check=False)

    def run(self, *command, expect=0, timeout=300):
        # Without the variables of this test, which name the programs of the build.
        return harness.run("chroot", self.root, "env", "-i", "DEBIAN_FRONTEND=noninteractive",
                           "LC_ALL=C", PATH, *command, expect=expect, timeout=timeout)

    def install(self, paths):
        """The packages; on a bare system with all that they depend on."""
        inside = self.take(paths)
        if self._lower == "/":
            self.run("dpkg", "-i", *inside)
            return
        shutil.copy("/etc/resolv.conf", self.path("/etc/resolv.conf"))
        self.run("apt-get", "update")
        self.run("apt-get", "install", "-y", "--no-install-recommends", *inside, timeout=600)

    def start(self, *command):
        return subprocess.Popen(["chroot", self.root, "env", "-i", PATH, *command],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def take(self, paths):
        """Copies files in; returns their paths inside."""
        for path in paths:
            shutil.copy(path, os.path.join(self.root, "tmp"))
        return ["/tmp/" + os.path.basename(path) for path in paths]

    def path(self, inside):
        return self.root + inside

    def read(self, inside):
        with open(self.path(inside), encoding="utf-8") as f:
            return f.read()


def installed(system):
    """What the packages put where, and that it works."""
    for path in ("/usr/bin/npucd", "/usr/bin/npuc-worker", "/usr/bin/npuc", "/usr/bin/npuc-remote",
                 "/usr/bin/npuc-operator", "/usr/include/npuc/npuc_operator.h",
                 "/usr/bin/aipubuild", "/usr/lib/systemd/system/npucd.service",
                 "/etc/npuc/npucd.yaml", "/usr/share/man/man8/npucd.8",
                 "/usr/share/man/man1/npuc.1",
                 "/usr/share/bash-completion/completions/npucd"):
        harness.check(os.path.exists(system.path(path)), f"{path} is missing")
    unit = system.read("/usr/lib/systemd/system/npucd.service")
    harness.check("ExecStart=/usr/bin/npucd --config /etc/npuc/npucd.yaml" in unit, unit)
    data = os.stat(system.path("/var/lib/npuc"))
    user = system.run("id", "-u", "npuc").stdout.strip()
    harness.check(str(data.st_uid) == user and data.st_mode & 0o777 == 0o700,
                  f"/var/lib/npuc belongs to {data.st_uid}, mode {data.st_mode:o}")
    said = system.run("npucd", "--config", "/etc/npuc/npucd.yaml", "--check-config").stdout
    harness.check("would do" in said, said)
    said = system.run("/usr/bin/python3", "-c",
                      "import npuc; npuc.Client('127.0.0.1:1'); print(npuc.run)").stdout
    harness.check("function run" in said, f"python3-npuc: {said}")
    page = system.read("/usr/share/man/man8/npucd.8")
    for option in ("\\-\\-backup DIR", "\\-\\-config FILE", "\\-\\-listen HOST:PORT"):
        harness.check(option in page, f"npucd(8) lacks {option}")
    harness.check("npuc run" in system.read("/usr/share/man/man1/npuc.1").replace("\\-", "-"),
                  "npuc(1) lacks its commands")


def completions(system):
    """The words that bash offers."""
    for program, words, found in (("npuc", "npuc re", "report"),
                                  ("npuc", "npuc run --pro", "--profile"),
                                  ("npucd", "npucd --bac", "--backup")):
        script = (f"source /usr/share/bash-completion/completions/{program}; COMP_WORDS=({words});"
                  "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); "
                  f"_{program}_words; echo ${{COMPREPLY[@]}}")
        offered = system.run("bash", "-c", script).stdout.split()
        harness.check(found in offered, f"'{words}' offers {offered}")


def compiles(system):
    """One command to a compiled sample, through the installed daemon on the installed config."""
    config = system.path("/etc/npuc/npucd.yaml")
    with open(config, encoding="utf-8") as f:
        text = f.read()
    # Ports of this machine, which may serve others.
    for port in ("8470", "8471", "8480"):
        text = text.replace(f"127.0.0.1:{port}", "127.0.0.1:0")
    with open(config, "w", encoding="utf-8") as f:
        f.write(text + "workers: 1\nport-file: /var/lib/npuc/ports\n")
    with served(system) as remote:
        remote("compile", "/usr/share/doc/npuc/samples/kws/config.yaml", "-o", "/tmp/out")
        header = system.path("/tmp/out/kws_cnn.h")
        with open(header, encoding="utf-8") as f:
            harness.check("ops_content" in f.read() or os.path.getsize(header) > 1000,
                          "the sample's header")
        job = json.loads(remote("list", "--json").stdout.splitlines()[0])["job"]
        return job, digest_of(header)


def digest_of(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def keeps(system, job, digest):
    """The job of before, at the daemon of now."""
    with served(system) as remote:
        remote("fetch", job, "-o", "/tmp/again")
        harness.check(digest_of(system.path("/tmp/again/kws_cnn.h")) == digest,
                      "the upgrade changed an artifact of an older job")
        remote("compile", "/usr/share/doc/npuc/samples/kws/config.yaml", "-o", "/tmp/more")


@contextlib.contextmanager
def served(system):
    """npuc-remote at the installed daemon, which runs as its user on the installed config."""
    with contextlib.suppress(FileNotFoundError):
        os.remove(system.path("/var/lib/npuc/ports"))
    daemon = system.start("setpriv", "--reuid=npuc", "--regid=npuc", "--clear-groups", "npucd",
                          "--config", "/etc/npuc/npucd.yaml")
    try:
        ports = harness.wait_for(
            lambda: os.path.exists(system.path("/var/lib/npuc/ports"))
            and dict(line.split("=", 1) for line in system.read("/var/lib/npuc/ports").split()),
            "the installed daemon", seconds=60)
        yield lambda *arguments: system.run("npuc-remote", "--server", ports["grpc"], *arguments)
    finally:
        daemon.send_signal(signal.SIGTERM)
        try:
            daemon.wait(40)
        finally:
            daemon.kill()


def lifecycle(system, old, new):
    system.install(old)
    harness.check("install ok installed" in system.run(
        "dpkg-query", "-W", "-f", "${Status}", "npucd").stdout, "npucd is not installed")
    installed(system)
    completions(system)
    job, digest = compiles(system)
    jobs = os.listdir(system.path("/var/lib/npuc/jobs"))
    system.run("dpkg", "-i", *system.take(new))
    version = system.run("dpkg-query", "-W", "-f", "${Version}", "npucd").stdout
    harness.check(version == VERSIONS[1], f"the upgrade left {version}")
    harness.check("workers: 1" in system.read("/etc/npuc/npucd.yaml"),
                  "the upgrade replaced an edited config")
    harness.check(set(jobs) <= set(os.listdir(system.path("/var/lib/npuc/jobs"))),
                  "the upgrade lost data")
    keeps(system, job, digest)
    system.run("dpkg", "--remove", "npucd")
    harness.check(os.path.exists(system.path("/var/lib/npuc/jobs")), "a removal took the data")
    harness.check(os.path.exists(system.path("/etc/npuc/npucd.yaml")), "a removal took the config")
    harness.check(not os.path.exists(system.path("/usr/bin/npucd")), "a removal left the program")
    system.run("dpkg", "--purge", "npucd", "python3-npuc", "npuc")
    for path in ("/var/lib/npuc", "/etc/npuc", "/usr/bin/npuc", "/usr/share/npuc",
                 "/usr/lib/systemd/system/npucd.service"):
        harness.check(not os.path.exists(system.path(path)), f"a purge left {path}")
    harness.check(system.run("id", "npuc", expect=None).returncode != 0, "a purge left the user")


def bare_system(folder, mirror):
    """The folder of a new bare system of this system's release; "/" where none is asked for."""
    if mirror is None:
        return "/"
    if shutil.which("debootstrap") is None:
        print("skipped: needs debootstrap")
        sys.exit(harness.SKIPPED)
    release = harness.run("bash", "-c", ". /etc/os-release; echo $VERSION_CODENAME").stdout.strip()
    lower = os.path.join(folder, "bare")
    harness.run("debootstrap", "--variant=minbase", release, lower, mirror, timeout=1200)
    return lower


def main(arguments):
    parser = argparse.ArgumentParser(prog="run_e2e.py packages")
    parser.add_argument("--bare", action="store_true", help="in Debian's smallest system")
    parser.add_argument("--mirror", default="http://deb.debian.org/debian")
    options = parser.parse_args(arguments)
    if os.geteuid() != 0 or shutil.which("cpack") is None:
        print("skipped: needs root and cpack")
        sys.exit(harness.SKIPPED)
    with harness.scratch() as folder:
        lower = bare_system(folder, options.mirror if options.bare else None)
        os.mkdir(os.path.join(folder, "system"))
        old, new = (packages(folder, version) for version in VERSIONS)
        sizes = ", ".join(f"{os.path.basename(p)} {os.path.getsize(p) / 1e6:.1f} MB" for p in old)
        harness.figure(f"packages: {sizes}")
        # Changes of the overlay are in memory: it cannot lie on itself.
        system_folder = os.path.join(folder, "system")
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", system_folder], check=True)
        try:
            with System(system_folder, lower) as system:
                lifecycle(system, old, new)
            where = "in a bare system" if options.bare else "on this system"
            harness.figure(f"packages: installed, used, upgraded, removed and purged {where}")
        finally:
            subprocess.run(["umount", "-R", "-l", system_folder], check=False)
