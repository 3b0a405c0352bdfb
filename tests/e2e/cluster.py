"""Several npucds on one PostgreSQL: jobs, uploads and results are all nodes', whichever took them.

    cluster [--long]      --long: chaos for ten minutes instead of seconds

More faults, and clients that move between nodes: tests/fault/cluster_chaos.py.

The suite starts a PostgreSQL of its own (postgres.py), and is skipped where none is installed.
"""

import contextlib
import os
import random
import signal
import socket
import subprocess
import threading
import time

import harness
import postgres
import service

TTL_SECONDS = 3
CHAOS_SECONDS = {"short": 20, "long": 600}


def free_address():
    """Below the ports of outgoing connections, of which one could take that of a dead node."""
    for _ in range(1000):
        port = random.randrange(20000, 30000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return f"127.0.0.1:{port}"
    raise harness.Failure("no free port")


class Node(service.Daemon):
    """One npucd of a cluster."""

    def __init__(self, folder, name, server, url, workers=1, ttl=TTL_SECONDS, npucd=None,
                 extra=()):
        self._home = os.path.join(folder, name)
        os.makedirs(self._home, exist_ok=True)
        self.name = name
        self.server, self.url = server, url
        super().__init__(self._home, (
            "--insecure", "--spares", "0", "--cluster", url, "--cluster-secret-file",
            server.secret_file, "--node-name", name, "--node-ttl-seconds", str(ttl),
            "--workers", str(workers), *extra), npucd)
        self.address = free_address()


def migrate(server, url, **options):
    return harness.run(harness.program("npucd"), "--migrate", "--cluster", url,
                       "--cluster-secret-file", server.secret_file, **options)


def refused(node):
    """What a node says that does not start."""
    with open(os.path.join(node._home, "refused.log"), "wb") as log:
        process = subprocess.Popen(
            [harness.program("npucd"), "--data-dir", os.path.join(node._home, "data"), "--listen",
             "127.0.0.1:0", *node._security], stdout=log, stderr=log)
        code = process.wait(30)
    harness.check(code == 1, f"npucd ended with {code}")
    with open(os.path.join(node._home, "refused.log"), encoding="utf-8") as log:
        return log.read()


def test_schema(server, folder):
    url = server.new_database("schema")
    node = Node(folder, "schema", server, url)
    said = refused(node)
    harness.check("npucd --migrate" in said and "no tables" in said, said)
    migrate(server, url)
    migrate(server, url)  # nothing is left to do
    server.sql("UPDATE npuc.cluster SET schema_version = 1", "schema")
    said = refused(node)
    harness.check("tables of version 1" in said and "npucd --migrate" in said, said)
    server.sql("UPDATE npuc.cluster SET schema_version = 99, min_node_version = 99", "schema")
    said = refused(node)
    harness.check("version 99" in said, said)
    said = migrate(server, url, expect=1).stderr
    harness.check("version 99" in said, said)
    # A password where every user of the machine could read it.
    with_password = url.replace("npucd@", f"npucd:{server.PASSWORD}@")
    said = migrate(server, with_password, expect=1).stderr
    harness.check("password" in said and server.PASSWORD not in said, said)


class OldNode:
    """A node of a build without feature levels, as far as PostgreSQL knows it: it lives until it
    is stopped."""

    def __init__(self, server, database):
        self._server, self._database = server, database
        self._ends = threading.Event()
        self._id = self._sql("SELECT npuc.join_node('old', 'old build', '', 1)")
        self._thread = threading.Thread(target=self._beat)
        self._thread.start()

    def _sql(self, text):
        return self._server.sql(f"SET search_path = npuc; {text}", self._database)

    def _beat(self):
        while not self._ends.wait(TTL_SECONDS / 5):
            self._sql(f"SELECT beat_node({self._id})")

    def stop(self):
        self._ends.set()
        self._thread.join()
        self._sql(f"SELECT leave_node({self._id})")


def test_feature_level(server, folder):
    """The level rises after the last old node is gone; then older builds are refused."""
    url = server.new_database("levels")
    migrate(server, url)

    def level():
        return int(server.sql("SELECT feature_level FROM npuc.cluster", "levels"))

    old = OldNode(server, "levels")
    node = Node(folder, "levels", server, url, extra=("--feature-wait-hours", "0"))
    try:
        node.start()
        harness.check('"feature_level":"1"' in node.log(), "the level beside an old node")
        beat = "SELECT max(beat) FROM npuc.node WHERE name = 'levels'"
        begin = int(server.sql(beat, "levels"))
        harness.wait_for(lambda: int(server.sql(beat, "levels")) > begin + 2, "beats")
        harness.check(level() == 1, f"level {level()} beside an old node")
        old.stop()
        harness.wait_for(lambda: "feature level has risen" in node.log(), "the level's rise")
        harness.check(level() > 1, f"level {level()} without an old node")
        node.stop()
        server.sql("UPDATE npuc.cluster SET feature_level = 99", "levels")
        said = refused(node)
        harness.check("NODE_TOO_OLD: the cluster is at feature level 99" in said and
                      "start a newer npucd" in said, said)
    finally:
        old.stop()
        node.stop()
    harness.figure("cluster: the feature level rose after the last old node was gone; an older "
                   "npucd is refused")


def check_no_secret(server, node):
    """The password is in no log, no command line and no environment of the node's processes."""
    secret = server.PASSWORD.encode()
    with open(os.path.join(node._home, "npucd.log"), "rb") as log:
        harness.check(secret not in log.read(), "the log has the password")
    pids = [node.process.pid, *service.job_processes(node.process.pid)]
    for pid in pids:
        for name in ("cmdline", "environ"):
            try:
                with open(f"/proc/{pid}/{name}", "rb") as f:
                    harness.check(secret not in f.read(), f"/proc/{pid}/{name} has the password")
            except OSError:
                pass


def test_one_node(server, folder, config):
    """A job's whole life on one node, which is killed and started again."""
    url = server.new_database("one")
    migrate(server, url)
    node = Node(folder, "one", server, url)
    node.start()
    try:
        service.test_same_bytes_and_cache(node, os.path.join(folder, "one"))
        service.test_killed_daemon(node, config)
        job = node.json("compile", config, "--detach", "--no-cache")[-1]["job"]
        node.json("cancel", job)
        harness.check(node.job(job)["state"] in ("CANCELLED", "SUCCEEDED"), node.job(job))
        listed = [one["job"] for one in node.json("list")]
        harness.check(job in listed, f"{job} is not in {listed}")
        check_no_secret(server, node)
        # A node that starts while PostgreSQL is away waits for it.
        node.stop()
        server.kill()
        starting = threading.Thread(target=node.start)
        starting.start()
        harness.wait_for(lambda: "the store is away" in node.log(), "wait for PostgreSQL")
        server.start()
        starting.join()
        harness.check(node.job(job)["job"] == job, "a node that waited does not serve")
    finally:
        node.stop()


def start_all(nodes):
    for node in nodes:
        node.start()


def seconds_of(call):
    begin = time.monotonic()
    return call(), time.monotonic() - begin


def test_other_nodes(nodes, folder, config):
    """Submitted at a; watched, fetched, listed and cancelled at the others."""
    a, b, c = nodes
    submitted = a.json("compile", config, "--detach", "--no-cache")[-1]["job"]
    _, seconds = seconds_of(lambda: b.json("watch", submitted, expect=None))
    harness.check(c.job(submitted)["state"] == "SUCCEEDED", c.job(submitted))
    for node in nodes:
        service.check_events(node, submitted)
    folders = []
    for node in nodes:
        out = os.path.join(folder, f"fetched-{node.name}")
        node.json("fetch", submitted, "-o", out)
        folders.append(service.files_of(out))
    harness.check(folders[0] and folders[0] == folders[1] == folders[2],
                  "the nodes' artifacts differ")
    for node in nodes:
        harness.wait_for(lambda n=node: submitted in [j["job"] for j in n.json("list")],
                         f"{submitted} in the list of {node.name}", seconds=5, interval=0.05)
    # An equal compile at another node is a hit in the shared results.
    cached = os.path.join(folder, "cached")
    first = b.json("compile", os.path.join(harness.SAMPLE, "config.yaml"), "-o", cached + "1")[-1]
    again = c.json("compile", os.path.join(harness.SAMPLE, "config.yaml"), "-o", cached + "2")[-1]
    harness.check(first["state"] == "SUCCEEDED" and again["cache_hit"], f"{first}\n{again}")
    harness.figure(f"cluster: a job watched at another node to its end in {seconds:.2f} s, fetched "
                   "at three; an equal one at another node is a cache hit")


def test_usage(nodes):
    """Each node tells what tenants used at all of them, before its restart and after."""
    def jobs_of(node):
        return sum(int(row["jobs"]) for row in node.json("usage"))

    def await_all(jobs):
        for node in nodes:
            harness.wait_for(lambda n=node: jobs_of(n) == jobs,
                             f"usage of {jobs} jobs at {node.name}", seconds=20)

    sample = os.path.join(harness.SAMPLE, "config.yaml")
    for node in nodes:
        done = node.wait(node.json("submit", sample, "--no-cache")[-1]["job"])
        harness.check(done["state"] == "SUCCEEDED", done)
    ended = len(nodes[0].json("list"))
    await_all(ended)
    nodes[-1].stop()
    nodes[-1].start()
    await_all(ended)
    harness.figure("cluster: what tenants used at three nodes, told by each")


def test_operators_decisions(nodes):
    """A pause and a tenant's limits hold at all nodes, a cordon at its own."""
    one, other = nodes[0], nodes[1]
    sample = os.path.join(harness.SAMPLE, "config.yaml")

    def submit():
        return one.json("submit", sample, "--no-cache")[-1]["job"]

    def pauses():
        return [node for node in nodes if "paused by" in node.remote("admin", "tenants").stdout]

    for node in nodes[1:]:
        harness.check(node.json("admin", "cordon")[0]["node"] == node.name, "whose cordon it is")
    for _ in range(3):
        done = one.wait(submit())
        harness.check(done["state"] == "SUCCEEDED", done)
    one.json("admin", "cordon", "--reason", "all")
    waits = submit()
    other.json("admin", "uncordon")
    harness.check(other.wait(waits)["state"] == "SUCCEEDED", "the one that is not cordoned")
    for node in nodes:
        node.remote("admin", "uncordon")
    other.remote("admin", "pause", "--reason", "all of them")
    harness.wait_for(lambda: len(pauses()) == len(nodes), "pause at all nodes", seconds=20)
    waits = submit()
    limits = one.json("admin", "limit", "--tenant", "default", "--weight", "7", "--for", "1h")[0]
    harness.check(limits["weight"] == 7, limits)
    for node in nodes:
        harness.wait_for(lambda: node.json("quota")[0]["weight"] == 7, "limits at all nodes",
                         seconds=20)
    harness.check(one.job(waits)["state"] == "QUEUED", f"{waits} was started while paused")
    one.remote("admin", "resume")  # at another node
    harness.check(other.wait(waits)["state"] == "SUCCEEDED", f"{waits} after resume")
    harness.wait_for(lambda: not pauses(), "resume at all nodes", seconds=20)
    other.remote("admin", "unlimit", "--tenant", "default")
    harness.figure("cluster: a pause and limits of a tenant at all nodes, a cordon at its own")


def test_audit(nodes, config):
    """What is done at one node is found at the others: admin actions at once, others soon."""
    def found(node, *wanted):
        return node.json("admin", "audit", "--limit", "1000", *wanted)

    one, other, third = nodes
    one.remote("admin", "pause", "--reason", "audited")
    at_other = found(other, "--action", "admin.pause", "--at-node", one.name)[0]
    harness.check(at_other["node"] == one.name and "audited" in at_other["detail"], at_other)
    other.remote("admin", "resume")
    job = third.json("compile", config, "--detach", "--no-cache")[-1]["job"]
    harness.wait_for(lambda: found(one, "--about", job), f"the submit of {job} at another node",
                     seconds=20)
    entry = found(one, "--about", job)[0]
    harness.check((entry["action"], entry["node"]) == ("submit", third.name), entry)
    third.wait(job)
    whole = found(one)
    harness.check({e["node"] for e in whole} == {node.name for node in nodes}, "the nodes")
    times = [e["time"] for e in whole]
    harness.check(times == sorted(times, reverse=True), "the newest come first")
    # A node that stops leaves none of them behind.
    job = other.json("compile", config, "--detach", "--no-cache")[-1]["job"]
    other.stop()
    harness.check(found(one, "--about", job), "the audit of a node that stopped")
    other.start()
    harness.figure(f"cluster: {len(whole)} entries of the audit of three nodes, told by each")


def catch_anywhere(nodes, config):
    """Submits at the first node until a job is stopped in the middle; its id, node and process."""
    for _ in range(service.TRIES):
        job_id = nodes[0].json("compile", config, "--detach", "--no-cache")[-1]["job"]

        def running():
            for node in nodes:
                for pid in service.job_processes(node.process.pid):
                    try:
                        os.kill(pid, signal.SIGSTOP)
                        return node, pid
                    except ProcessLookupError:
                        pass
            state = nodes[0].job(job_id)["state"]
            return "ended" if state in service.TERMINAL else None

        found = harness.wait_for(running, "job process", interval=0.0005)
        if found != "ended" and nodes[0].job(job_id)["state"] == "RUNNING":
            return job_id, *found
        if found != "ended":
            try:
                os.kill(found[1], signal.SIGCONT)
            except ProcessLookupError:
                pass
    raise harness.Failure("no job was caught running")


def test_cancel_elsewhere(nodes, config):
    job_id, runs_at, _ = catch_anywhere(nodes, config)
    other = next(node for node in nodes if node is not runs_at)
    other.json("cancel", job_id)
    harness.check(other.job(job_id)["state"] == "CANCELLED", other.job(job_id))
    # The run ends where it runs.
    harness.wait_for(lambda: not service.job_processes(runs_at.process.pid),
                     "end of the cancelled run", seconds=20, interval=0.05)


def test_killed_node(nodes, folder, config):
    """A node dies in the middle of a job: another one ends it, within the time of its lease. A
    client that watched it at the dead node goes on at another."""
    job_id, runs_at, _ = catch_anywhere(nodes, config)
    others = [node for node in nodes if node is not runs_at]
    addresses = ",".join(node.address for node in [runs_at, *others])
    watched = os.path.join(folder, "watched")
    with open(watched, "wb") as out:
        watcher = subprocess.Popen([harness.program("npuc-remote"), "watch", job_id, "--json",
                                    "--server", addresses], stdout=out)
    harness.wait_for(lambda: os.path.getsize(watched), "event of the watcher")
    runs_at.kill()
    job, seconds = seconds_of(lambda: others[0].wait(job_id))
    harness.check(job["state"] == "SUCCEEDED" and job["attempts"] >= 2, f"{job}")
    harness.check(seconds < 4 * TTL_SECONDS + 10, f"taken over after {seconds} s only")
    count = service.check_events(others[1], job_id)
    code = watcher.wait(60)
    with open(watched, encoding="utf-8") as out:
        seen = [int(e["seq"]) for e in service.json_lines(out.read()) if "seq" in e]
    harness.check(code == 0 and seen == list(range(1, count + 1)),
                  f"the watcher ended with {code} and saw {seen}")
    runs_at.start()
    harness.check(runs_at.job(job_id)["state"] == "SUCCEEDED", "the node that came back differs")
    harness.figure(f"cluster: kill -9 of a node in the middle of a job: another ended it after "
                   f"{seconds:.1f} s (nodes are dead after {TTL_SECONDS} s), {count} events "
                   "without gap, also for a client that went on at another node")


def test_left_node(nodes, config):
    """A node that stops on purpose ends what it runs; the others serve on."""
    job_id, runs_at, pid = catch_anywhere(nodes, config)
    runs_at.process.terminate()
    time.sleep(0.2)
    try:
        os.kill(pid, signal.SIGCONT)  # it may finish
    except ProcessLookupError:
        pass
    others = [node for node in nodes if node is not runs_at]
    harness.check(others[0].wait(job_id)["state"] == "SUCCEEDED", "the job of a node that left")
    runs_at.process.wait(40)
    runs_at.start()


def chaos(server, nodes, configs, length, seed):
    """Nodes, sessions and the database are killed while jobs come; every accepted job ends."""
    seconds = CHAOS_SECONDS[length]
    chance = random.Random(seed)
    accepted, faults = [], 0
    begin = time.monotonic()
    end = begin + seconds
    next_crash = begin + seconds / 4
    down = None  # a node, and when it comes back
    while time.monotonic() < end:
        live = [node for node in nodes if down is None or node is not down[0]]
        done = chance.choice(live).remote("compile", chance.choice(configs), "--detach",
                                          "--no-cache", "--json", expect=None)
        if done.returncode == 0:
            accepted.append(service.json_lines(done.stdout)[-1]["job"])
        if down is not None and time.monotonic() > down[1]:
            down[0].start()
            down = None
        draw = chance.random()
        if draw < 0.1 and down is None:
            victim = chance.choice(nodes)
            victim.kill()
            faults += 1
            down = (victim, time.monotonic() + chance.uniform(0, 2 * TTL_SECONDS))
        elif time.monotonic() > next_crash:
            server.kill()
            server.start()
            faults += 1
            next_crash += 12
        elif draw < 0.25:
            server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                       "application_name = 'npucd' ORDER BY random() LIMIT 3", "three")
            faults += 1
    if down is not None:
        down[0].start()
    for job_id in accepted:
        job = nodes[0].wait(job_id)
        harness.check(job["state"] == "SUCCEEDED", f"{job} (seed {seed})")
    for job_id in accepted[:: max(1, len(accepted) // 20)]:
        service.check_events(chance.choice(nodes), job_id)
    left = server.sql("SELECT (SELECT count(*) FROM npuc.job_queue WHERE tenant <> '0canary') + "
                      "(SELECT count(*) FROM npuc.job_input WHERE name NOT LIKE 'blob/0canary/%')",
                      "three")
    harness.check(left == "0", f"{left} rows of ended jobs are left (seed {seed})")
    harness.figure(f"cluster: chaos of {seconds} s, seed {seed}: {faults} kills of nodes, "
                   f"sessions and PostgreSQL, {len(accepted)} accepted jobs, 0 lost")


def main(arguments):
    length = "long" if "--long" in arguments else "short"
    seed = int(arguments[arguments.index("--seed") + 1]) if "--seed" in arguments else 7
    with harness.scratch() as folder, postgres.server() as server:
        config = service.write_model(folder)
        nodes = []
        try:
            test_schema(server, folder)
            test_feature_level(server, folder)
            test_one_node(server, folder, config)
            url = server.new_database("three")
            migrate(server, url)
            nodes = [Node(folder, name, server, url) for name in ("a", "b", "c")]
            start_all(nodes)
            test_other_nodes(nodes, folder, config)
            test_cancel_elsewhere(nodes, config)
            test_usage(nodes)
            test_operators_decisions(nodes)
            test_audit(nodes, config)
            test_killed_node(nodes, folder, config)
            test_left_node(nodes, config)
            sample = os.path.join(harness.SAMPLE, "config.yaml")
            chaos(server, nodes, [config, sample], length, seed)
        except harness.Failure as error:
            logs = "\n".join(f"{node.name}:\n{node.log()}" for node in nodes)
            raise harness.Failure(f"{error}\n{logs}") from error
        finally:
            for node in nodes:
                node.stop()
