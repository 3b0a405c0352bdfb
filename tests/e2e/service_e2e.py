"""npuc-remote and npucd under trouble: bad inputs, cancel, Ctrl-C, a daemon killed under a watcher,
two daemons on one data folder, SIGTERM in the middle of a job. service.py has the rest.
"""

import json
import os
import signal
import subprocess

import graphdef
import harness
import numpy as np
import service

CONFIG = """\
CORENAME: GRUS
NPU_UNIT: NPU32
FRAMEWORK: TF
OUTPUT_TYPE: c_code
MODEL_FILE: model.pb
OUTPUT_FILE: model.h
INPUT_OPS:
  x: [1, 4]
OUTPUT_OPS: [y]
"""
FLOAT = {"T": graphdef.DType(np.float32)}


def graph_of(build):
    graph = graphdef.Graph()
    graph.placeholder("x", [1, 4])
    build(graph)
    return graph.serialize()


def matmul(graph, weights, attrs=None):
    graph.const("w", weights)
    graph.node("MatMul", "y", ["x", "w"], attrs or FLOAT)


def cycle(graph):
    graph.node("Relu", "a", ["y"], FLOAT)
    graph.node("Relu", "y", ["a"], FLOAT)


def bad_models():
    """Bytes of .pb files that nothing can be made of, by what is wrong with them."""
    good = graph_of(lambda g: matmul(g, np.ones((4, 3), np.float32)))
    return {
        "truncated": good[:len(good) * 2 // 3],
        "empty": b"",
        # A node of 2^62 bytes, it says.
        "huge length": b"\x0a" + graphdef.varint(1 << 62) + good,
        "cyclic": graph_of(cycle),
        "wrong dtype": graph_of(lambda g: matmul(g, np.ones((4, 3), np.int32))),
        "shape mismatch": graph_of(lambda g: matmul(g, np.ones((5, 3), np.float32))),
        "random": np.random.RandomState(11).bytes(4096),
        "unknown operator": graph_of(lambda g: g.node("Frobnicate", "y", ["x"], FLOAT)),
        "missing output": graph_of(lambda g: g.node("Relu", "z", ["x"], FLOAT)),
    }


def bad_configs():
    bomb = "a: &a [x, x]\n" + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [*{chr(97 + i)}, "
                                      f"*{chr(97 + i)}]\n" for i in range(20))
    return {
        "wrong type": CONFIG.replace("[y]", "{a: b}"),
        "duplicate key": CONFIG + "CORENAME: GRUS\n",
        "exploding aliases": bomb,
        "missing file": CONFIG.replace("model.pb", "nowhere.pb"),
        "unknown key": CONFIG + "COMPRES: true\n",
        "not YAML": "\x00\x01{[",
        "empty": "",
    }


def check_diagnostics(what, diagnostics):
    harness.check(diagnostics, f"{what}: no diagnostics")
    for one in diagnostics:
        harness.check(one["id"].startswith("NPUC") and one["message"],
                      f"{what}: incomplete diagnostic {one}")
    harness.check(any(d["fix"] for d in diagnostics), f"{what}: nothing says what to do")


def write_case(folder, config, model):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "model.pb"), "wb") as f:
        f.write(model)
    path = os.path.join(folder, "config.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(config)
    return path


def test_bad_inputs(server, folder, big_config):
    """Each is told with a reason; the job that was there before them and the daemon go on."""
    bystander = server.json("submit", big_config, "--no-cache")[-1]["job"]
    models = bad_models()
    for what, model in models.items():
        config = write_case(os.path.join(folder, "model " + what), CONFIG, model)
        job = server.json("compile", config, expect=1)[-1]
        harness.check(job["state"] == "FAILED", f"{what}: {job}")
        check_diagnostics(what, job["diagnostics"])
        harness.check(not os.path.exists(os.path.join(os.path.dirname(config), "model.h")),
                      f"{what}: an artifact was written")
    configs = bad_configs()
    good = graph_of(lambda g: matmul(g, np.ones((4, 3), np.float32)))
    for what, text in configs.items():
        config = write_case(os.path.join(folder, "config " + what), text, good)
        check_diagnostics(what, server.json("compile", config, expect=3)[-1]["diagnostics"])
    harness.check(server.wait(bystander)["state"] == "SUCCEEDED", "the bystander did not succeed")
    config = write_case(os.path.join(folder, "good"), CONFIG, good)
    harness.check(server.json("compile", config)[-1]["state"] == "SUCCEEDED", "a good job failed")
    harness.figure(f"service: {len(models)} bad models FAILED and {len(configs)} bad configs were "
                   "refused, all with diagnostics; the job beside them and the next one succeeded")


def test_cancel(server, config):
    job_id, pid = service.catch_job(server, config)
    job = server.json("cancel", job_id, "--reason", "e2e")[-1]
    harness.check(job["state"] == "CANCELLED" and job["reason"] == "e2e", f"cancel: {job}")
    server.json("watch", job_id, expect=5)
    harness.wait_for(lambda: not os.path.exists(f"/proc/{pid}"), "end of the cancelled process")
    harness.check(server.json("compile", config, "--no-cache")[-1]["state"] == "SUCCEEDED",
                  "the job after a cancelled one failed")
    again = server.json("cancel", job_id)[-1]
    harness.check(again["state"] == "CANCELLED", f"second cancel: {again}")


def start_remote(server, *arguments):
    return subprocess.Popen([harness.program("npuc-remote"), *arguments], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, universal_newlines=True,
                            env={**os.environ, "NPUC_SERVER": server.address})


def test_interrupt(server, config):
    """Ctrl-C says how to come back and leaves the job alone."""
    job_id, pid = service.catch_job(server, config)
    watcher = start_remote(server, "watch", job_id, "--json")
    watcher.stdout.readline()  # it follows
    watcher.send_signal(signal.SIGINT)
    _, err = watcher.communicate(timeout=20)
    harness.check(watcher.returncode == 130, f"exit {watcher.returncode} after SIGINT: {err}")
    harness.check(f"npuc-remote watch {job_id}" in err, f"no way back in: {err}")
    harness.check(server.job(job_id)["state"] == "RUNNING", "SIGINT ended the job")
    os.kill(pid, signal.SIGCONT)
    harness.check(server.wait(job_id)["state"] == "SUCCEEDED", "the job did not succeed")


def test_watch_over_restart(server, config):
    """One watcher, never restarted, sees each event once although its daemon is killed."""
    job_id, _ = service.catch_job(server, config)
    watcher = start_remote(server, "watch", job_id, "--from", "1", "--json")
    first = watcher.stdout.readline()
    server.kill()
    server.start()  # on the same port
    # Not communicate(): it reads past the buffer that readline() may have filled beyond its line.
    out = watcher.stdout.read()
    _, err = watcher.communicate(timeout=90)
    harness.check(watcher.returncode == 0, f"the watcher's exit: {watcher.returncode}\n{err}")
    events = [json.loads(line) for line in (first + out).splitlines()]
    numbers = [event["seq"] for event in events]
    harness.check(numbers == list(range(1, len(numbers) + 1)), f"gap or repeat: {numbers}")
    harness.check(events[-1].get("state") == "SUCCEEDED", f"the last event: {events[-1]}")
    harness.figure(f"service: a watcher over kill -9 of the daemon saw events 1 to {len(numbers)} "
                   "once each")


def test_two_daemons(server, folder):
    second = harness.run(harness.program("npucd"), "--data-dir", os.path.join(folder, "data"),
                         "--listen", "127.0.0.1:0", "--insecure", expect=None, timeout=30)
    harness.check(second.returncode not in (0, None), "a second daemon took the same data folder")
    harness.check("in use" in second.stderr + second.stdout, f"no reason given: {second.stderr}")
    server.remote("server")


def test_drain(server, config):
    """SIGTERM in the middle of a job: a clean exit in bounded time; nothing is lost."""
    job_id, _ = service.catch_job(server, config)
    waiting = server.json("submit", config, "--no-cache")[-1]["job"]
    server.process.terminate()
    code = server.process.wait(60)
    harness.check(code == 0, f"npucd ended with {code} on SIGTERM:\n{server.log()}")
    gone = harness.run(harness.program("npuc-remote"), "--server", server.address, "--patience",
                       "0", "status", job_id, expect=4)
    harness.check("no answer" in gone.stderr, f"unclear: {gone.stderr}")
    server.start()
    for one in (job_id, waiting):
        job = server.wait(one)
        harness.check(job["state"] == "SUCCEEDED", f"after SIGTERM and a restart: {job}")
        service.check_events(server, one)


def test_refusals(server, folder):
    server.remote("status", "j00000000000000000000000000", expect=3)
    server.remote("status", "../../etc", expect=3)
    server.remote("compile", expect=2)
    health = server.remote("health").stdout
    harness.check(health == "ready\n", f"health: {health}")
    cores = server.remote("cores").stdout.split()
    harness.check("GRUS" in cores, f"cores: {cores}")
    ops = server.json("ops", "-c", "GRUS", "-f", "TF")
    harness.check(any(o["op"] == "MatMul" for o in ops), "no MatMul among GRUS's operators")
    config = os.path.join(harness.SAMPLE, "config.yaml")
    done = server.json("compile", config, "-o", os.path.join(folder, "fetched"))[-1]
    one = os.path.join(folder, "one")
    server.remote("fetch", done["job"], done["artifacts"][0]["name"], "-o", one)
    harness.check(os.listdir(one) == [done["artifacts"][0]["name"]], "fetch of one artifact")


def test_failed_starts(folder):
    """On the data of a daemon that has ended: what an operator reads says what to do."""
    data = os.path.join(folder, "data")

    def start(*flags, code=1):
        return harness.run(harness.program("npucd"), "--data-dir", data, "--listen", "127.0.0.1:0",
                           "--insecure", *flags, expect=code, timeout=30).stderr

    said = start("--worker", "2", code=2)
    harness.check(said.splitlines() == ["npucd: unknown option '--worker'; did you mean "
                                        "'--workers'?", "npucd --help lists the options."], said)
    said = start("--port-file", os.path.join(folder, "nowhere", "port"))
    harness.check("port.tmp: No such file or directory" in said, said)
    old = os.path.join(folder, "old_port")
    for store, advice in (("artifacts", "; delete it: jobs compile again"),
                          ("jobs", "; put the data directory's backup in its place, or delete it")):
        with open(os.path.join(data, store, "CURRENT"), "r+", encoding="utf-8") as f:
            sound = f.read()
            f.seek(0)
            f.write("damaged")
        with open(old, "w", encoding="utf-8") as f:
            f.write("grpc=127.0.0.1:1\n")
        said = start("--port-file", old)
        harness.check(advice in said, said)
        harness.check(not os.path.exists(old), "the port file of an earlier daemon is still there")
        with open(os.path.join(data, store, "CURRENT"), "w", encoding="utf-8") as f:
            f.write(sound)


def main(arguments):
    with harness.scratch() as folder:
        config = service.write_model(folder)
        with service.daemon(folder, service.NO_SPARES) as server:
            try:
                test_refusals(server, folder)
                test_bad_inputs(server, folder, config)
                test_cancel(server, config)
                test_interrupt(server, config)
                test_watch_over_restart(server, config)
                test_two_daemons(server, folder)
                test_drain(server, config)
            except harness.Failure as error:
                raise harness.Failure(f"{error}\nnpucd's log ends:\n{server.log()}") from error
        test_failed_starts(folder)
