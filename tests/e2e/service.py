"""The service against the plain compiler: same bytes, cache hits, and kill -9 of daemon and worker.

To catch a job in the middle, the suite stops (SIGSTOP) the job's own process, a child of the warm
npuc-worker, as soon as it appears; a compile that was over before is submitted again.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess

import graphdef
import harness
import numpy as np
import torch_nets

TRIES = 40
# The job's end, and what may precede it.
TERMINAL = {"SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED"}
# Their content depends on when and where the job ran, and only that.
NOT_COMPARED = {"compile.log"}


def json_lines(text):
    return [json.loads(line) for line in text.splitlines() if line.strip()]


# For daemons whose jobs are to be caught: only a job has processes.
NO_SPARES = ("--insecure", "--spares", "0")


class Daemon:
    """One npucd on a data folder; may be killed and started again on the same,
    and on the same port."""

    def __init__(self, folder, security=("--insecure",), npucd=None):
        self._folder = folder
        self._npucd = npucd or harness.program("npucd")
        self._security = security
        self.process = None
        self.address = None

    def start(self):
        port_file = os.path.join(self._folder, "port")
        with contextlib.suppress(FileNotFoundError):
            os.remove(port_file)
        with open(os.path.join(self._folder, "npucd.log"), "ab") as log:
            self.process = subprocess.Popen(
                [self._npucd, "--data-dir", os.path.join(self._folder, "data"),
                 "--listen", self.address or "127.0.0.1:0", "--workers", "1",
                 "--port-file", port_file, *self._security], stdout=log, stderr=log,
                env={**os.environ, "SOURCE_DATE_EPOCH": harness.EPOCH})

        def address():
            harness.check(self.process.poll() is None, f"npucd ended:\n{self.log()}")
            with contextlib.suppress(FileNotFoundError):
                with open(port_file, encoding="utf-8") as f:
                    lines = dict(l.strip().split("=", 1) for l in f if "=" in l)
                return lines.get("grpc")
            return None

        self.address = harness.wait_for(address, "port file of npucd")

    def log(self):
        with open(os.path.join(self._folder, "npucd.log"), errors="replace",
                  encoding="utf-8") as f:
            return f.read()[-4000:]

    def set_program(self, npucd):
        """From the next start on."""
        self._npucd = npucd

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()
                raise harness.Failure("npucd did not drain within 30 s of SIGTERM")

    def remote(self, *arguments, **options):
        return harness.run(harness.program("npuc-remote"), *arguments,
                           env={"NPUC_SERVER": self.address}, **options)

    def json(self, *arguments, **options):
        """The JSON lines that `npuc-remote --json` prints."""
        return json_lines(self.remote(*arguments, "--json", **options).stdout)

    def job(self, job_id):
        return self.json("status", job_id)[-1]

    def wait(self, job_id):
        def ended():
            job = self.job(job_id)
            return job if job["state"] in TERMINAL else None
        return harness.wait_for(ended, f"end of job {job_id}", seconds=60, interval=0.02)


@contextlib.contextmanager
def daemon(folder, security=("--insecure",)):
    one = Daemon(folder, security)
    one.start()
    try:
        yield one
    finally:
        one.stop()


def _stat(pid):
    """(command name, parent) of a process, or None."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            text = f.read()
    except OSError:
        return None
    name = text[text.index("(") + 1:text.rindex(")")]
    rest = text[text.rindex(")") + 2:].split()
    return name, int(rest[1])


def job_processes(daemon_pid):
    """Processes of running jobs: below the daemon's warm worker, not that one itself."""
    table = {int(p): _stat(p) for p in os.listdir("/proc") if p.isdigit()}
    table = {pid: entry for pid, entry in table.items() if entry}

    def depth(pid):
        steps = 0
        while pid != daemon_pid:
            if pid not in table or steps > 8:
                return None
            pid, steps = table[pid][1], steps + 1
        return steps

    return [pid for pid in table if (depth(pid) or 0) >= 2]


def write_model(folder):
    """A net that takes the compiler long enough to be caught at it, and its config."""
    rng = np.random.RandomState(3)
    graph = graphdef.Graph()
    last = graph.placeholder("x", [1, 250])
    t = {"T": graphdef.DType(np.float32)}
    for i in range(8):
        weights = graph.const(f"w{i}", (rng.random_sample((250, 250)) - 0.5).astype(np.float32))
        product = graph.node("MatMul", f"y{i}", [last, weights], t)
        last = graph.node("Relu", f"relu{i}", [product], t)
    with open(os.path.join(folder, "big.pb"), "wb") as f:
        f.write(graph.serialize())
    config = os.path.join(folder, "big.yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write("CORENAME: GRUS\nNPU_UNIT: NPU32\nFRAMEWORK: TF\nOUTPUT_TYPE: c_code\n"
                "MODEL_FILE: big.pb\nOUTPUT_FILE: big.h\nCOMPRESS: true\n"
                f"INPUT_OPS:\n  x: [1, 250]\nOUTPUT_OPS: [{last}]\n")
    return config


def catch_job(server, config):
    """Submits until a job's process is stopped in the middle; (job id, process)."""
    for _ in range(TRIES):
        job_id = server.json("compile", config, "--detach", "--no-cache")[-1]["job"]

        def running():
            found = job_processes(server.process.pid)
            if found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(found[0], signal.SIGSTOP)
                    return found[0]
            return "ended" if server.job(job_id)["state"] in TERMINAL else None

        pid = harness.wait_for(running, "job process", interval=0.0005)
        if pid != "ended" and server.job(job_id)["state"] == "RUNNING":
            return job_id, pid
        if pid != "ended":
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    raise harness.Failure(f"no job was caught running in {TRIES} tries")


def files_of(folder):
    found = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as f:
            found[name] = f.read()
    return found


def test_same_bytes_and_cache(server, folder):
    config = os.path.join(harness.SAMPLE, "config.yaml")
    local, first, second = (os.path.join(folder, n) for n in ("local", "first", "second"))
    for path in (local, first, second):
        os.makedirs(path)
    harness.npuc(config, "-o", local)
    done = server.json("compile", config, "-o", first)[-1]
    harness.check(done["state"] == "SUCCEEDED" and not done["cache_hit"], f"first: {done}")
    harness.check(done["attempts"] == 1, f"first: {done}")
    ours, theirs = files_of(local), files_of(first)
    harness.check("kws_cnn.h" in ours and "kws_cnn.h" in theirs, f"no header in {list(theirs)}")
    harness.check(set(theirs) - NOT_COMPARED == set(ours) - NOT_COMPARED,
                  f"npuc made {sorted(ours)}, the service {sorted(theirs)}")
    different = [n for n in ours if n not in NOT_COMPARED and ours[n] != theirs[n]]
    harness.check(not different, f"the service's bytes differ from npuc's: {different}")
    again = server.json("compile", config, "-o", second)[-1]
    harness.check(again["state"] == "SUCCEEDED" and again["cache_hit"], f"second: {again}")
    harness.check(again["attempts"] == 0, f"a worker ran in spite of the cache hit: {again}")
    harness.check(files_of(second) == theirs, "the cache hit's bytes differ")
    harness.figure(f"service: {len(theirs)} artifacts, bytes as npuc's; the second compile is a "
                   "cache hit without a worker")


def check_events(server, job_id):
    """Events numbered without gap or repeat, from first to terminal; returns their number."""
    events = server.json("watch", job_id, "--from", "0", expect=None)
    events = [e for e in events if "seq" in e]
    numbers = [int(e["seq"]) for e in events]
    harness.check(numbers, f"job {job_id} has no events")
    harness.check(numbers[0] in (0, 1) and
                  numbers == list(range(numbers[0], numbers[0] + len(numbers))),
                  f"event numbers of {job_id} have a gap or a repeat: {numbers}")
    for event in events:
        harness.check(event["job"] == job_id, f"an event of another job: {event}")
    return len(events)


def test_killed_daemon(server, config):
    job_id, _ = catch_job(server, config)
    queued = [server.json("compile", config, "--detach", "--no-cache")[-1]["job"]
              for _ in range(3)]
    server.kill()
    harness.check(server.process.returncode == -signal.SIGKILL, "npucd was not killed")
    server.start()
    counts = []
    for one in [job_id] + queued:
        job = server.wait(one)
        harness.check(job["state"] == "SUCCEEDED", f"after kill -9 of the daemon: {job}")
        counts.append(check_events(server, one))
    attempts = server.job(job_id)["attempts"]
    harness.check(attempts >= 2, f"the job was to be run again, attempts {attempts}")
    harness.figure("service: kill -9 of npucd in the middle of a job with 3 queued: all 4 finished "
                   f"after the restart, attempts of the first {attempts}, events "
                   f"{'/'.join(map(str, counts))} without gap or repeat")


def test_killed_worker(server, config):
    job_id, pid = catch_job(server, config)
    os.kill(pid, signal.SIGKILL)
    job = server.wait(job_id)
    if job["state"] == "FAILED":
        harness.check(job["diagnostics"] and job["diagnostics"][0]["message"],
                      f"failed without a reason: {job}")
    else:
        harness.check(job["state"] == "SUCCEEDED" and job["attempts"] >= 2, f"unexpected: {job}")
    check_events(server, job_id)
    after = server.json("compile", config, "--no-cache")[-1]
    harness.check(after["state"] == "SUCCEEDED", f"the next job: {after}")
    harness.figure(f"service: kill -9 of a worker: the job ended {job['state']} after "
                   f"{job['attempts']} attempts, the next one succeeded")


def test_bad_model(server, folder):
    """A damaged model fails its job with diagnostics and exit 1; the daemon goes on."""
    shutil.copy(os.path.join(harness.SAMPLE, "config.yaml"), folder)
    with open(os.path.join(harness.SAMPLE, "kws_cnn.pb"), "rb") as f:
        data = f.read()
    with open(os.path.join(folder, "kws_cnn.pb"), "wb") as f:
        f.write(data[:len(data) // 2])
    job = server.json("compile", os.path.join(folder, "config.yaml"), expect=1)[-1]
    harness.check(job["state"] == "FAILED" and job["diagnostics"], f"truncated model: {job}")
    for diagnostic in job["diagnostics"]:
        harness.check(diagnostic["id"].startswith("NPUC") and diagnostic["message"]
                      and diagnostic["fix"], f"incomplete diagnostic: {diagnostic}")


def test_torchscript(server, folder):
    """A PyTorch archive through the daemon: npuc's bytes."""
    net = next(n for n in torch_nets.read_nets(os.path.join(torch_nets.RECORDED, "guide.tar.xz"))
               if n.name == "guide_conv_gru")
    net.unpack(folder)
    for name in ("scripted.yaml", "traced.nxc.yaml"):
        local, remote = (os.path.join(folder, f"{name}.{n}") for n in ("local", "remote"))
        config = os.path.join(folder, name)
        harness.npuc(config, "-o", local)
        done = server.json("compile", config, "-o", remote)[-1]
        harness.check(done["state"] == "SUCCEEDED", f"{name}: {done}")
        ours, theirs = files_of(local), files_of(remote)
        different = [n for n in ours if n not in NOT_COMPARED and ours[n] != theirs.get(n)]
        harness.check("model.h" in ours and not different,
                      f"{name}: the service's bytes differ from npuc's: {different}")
    harness.figure("service: TorchScript configs, scripted and traced: bytes as npuc's")


def compile_remotely(server, folder, name, tag):
    """Whether it was a cache hit, and the artifacts."""
    out = os.path.join(folder, f"{name}.{tag}")
    done = server.json("compile", os.path.join(folder, f"{name}.yaml"), "-o", out)[-1]
    harness.check(done["state"] == "SUCCEEDED", f"{name}: {done}")
    return done["cache_hit"], files_of(out)


def check_same_as_npuc(server, folder, name, text):
    """A config of this name: npuc's bytes from the service, and then from its cache."""
    with open(os.path.join(folder, f"{name}.yaml"), "w", encoding="utf-8") as f:
        f.write(text)
    local = os.path.join(folder, f"{name}.local")
    harness.npuc(os.path.join(folder, f"{name}.yaml"), "-o", local)
    ours = files_of(local)
    hit, theirs = compile_remotely(server, folder, name, "remote")
    harness.check(not hit and set(ours) == set(theirs), f"{name}: {sorted(theirs)}")
    different = [n for n in ours if n not in NOT_COMPARED and ours[n] != theirs[n]]
    harness.check(not different, f"{name}: the service's bytes differ from npuc's: {different}")
    harness.check(compile_remotely(server, folder, name, "again")[0],
                  f"{name}: the same again is no cache hit")


def test_quantizing(server, folder):
    """Calibration data, statistics, a template and an IR's .bin go along: the same bytes, keys of
    their own."""
    write_model(folder)
    random = np.random.default_rng(5)
    samples = os.path.join(folder, "samples.npy")
    np.save(samples, random.normal(size=[16, 250]).astype(np.float32))
    base = ("CORENAME: X2_1204\nMODEL_FILE: big.pb\nOUTPUT_FILE: m.h\nINPUT_OPS: {x: [1, 250]}\n"
            "OUTPUT_OPS: [relu7]\n")
    check_same_as_npuc(server, folder, "calibrated", base +
                       "QUANT:\n  calibration_data: {x: samples.npy}\n"
                       "  calibration_strategy_for_activation: auto\n"
                       "  save_statistic_info: true\n")
    check_same_as_npuc(server, folder, "reused", base +
                       "QUANT: {statistic_file: calibrated.local/statistics.json}\n"
                       "OPT_CONFIG: calibrated.local/opt_template.json\n")
    harness.npuc("ir", "write", os.path.join(folder, "calibrated.yaml"), "-o",
                 os.path.join(folder, "ir"))
    check_same_as_npuc(server, folder, "from_ir", "CORENAME: X2_1204\nFRAMEWORK: COMPASS\n"
                       "MODEL_FILE: ir/big.txt\nOUTPUT_FILE: m.h\n")
    np.save(samples, random.normal(size=[16, 250]).astype(np.float32))
    harness.check(not compile_remotely(server, folder, "calibrated", "changed")[0],
                  "other samples hit the cache")
    with open(os.path.join(folder, "ir", "big.bin"), "r+b") as f:
        byte = f.read(1)[0]
        f.seek(0)
        f.write(bytes([byte ^ 1]))
    harness.check(not compile_remotely(server, folder, "from_ir", "changed")[0],
                  "another .bin hit the cache")
    harness.figure("service: quantizing on samples, on statistics and a template, and the IR of it:"
                   " bytes as npuc's")


def main(arguments):
    with harness.scratch() as folder:
        config = write_model(folder)
        with daemon(folder, NO_SPARES) as server:
            try:
                test_same_bytes_and_cache(server, folder)
                torch = os.path.join(folder, "torch")
                os.makedirs(torch)
                test_torchscript(server, torch)
                quantizing = os.path.join(folder, "quantizing")
                os.makedirs(quantizing)
                test_quantizing(server, quantizing)
                test_killed_daemon(server, config)
                test_killed_worker(server, config)
                bad = os.path.join(folder, "bad")
                os.makedirs(bad)
                test_bad_model(server, bad)
            except harness.Failure as error:
                raise harness.Failure(f"{error}\nnpucd's log ends:\n{server.log()}") from error
