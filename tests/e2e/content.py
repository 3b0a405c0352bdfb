"""A cluster whose uploads and results lie in an object store: a folder, then S3 (npm's s3rver).

    content [--long] [--seed N] [--store folder|s3]      --long: 60 kills of nodes instead of 6

The suite starts a PostgreSQL of its own, and is skipped where none is installed. Where s3rver is
missing and cannot be installed, the folder alone is tried, and the suite says so.
"""

import os
import random
import shutil
import subprocess

import cluster
import harness
import object_stores
import postgres
import service

KILLS = {"short": 6, "long": 60}
# Ahead of PostgreSQL's clock for contents alone: what nothing knows is old then.
THREE_DAYS_LATER = ("CREATE OR REPLACE FUNCTION npuc.server_us() RETURNS bigint LANGUAGE sql "
                    "VOLATILE AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)"
                    "::bigint + 259200000000 $$")


class Farm:
    """Three nodes on one database and one store."""

    def __init__(self, server, store, folder):
        self.server, self.store, self.folder = server, store, folder
        self.database = f"content_{store.name}"
        url = server.new_database(self.database)
        cluster.migrate(server, url)
        self.nodes = [cluster.Node(folder, f"{store.name}-{name}", server, url, extra=store.flags)
                      for name in "abc"]
        self.config = service.write_model(folder)
        self.sample = os.path.join(harness.SAMPLE, "config.yaml")
        self.expected = self.compile_locally(self.sample)

    def compile_locally(self, config):
        out = os.path.join(self.folder, "local")
        os.makedirs(out, exist_ok=True)
        harness.npuc(config, "-o", out)
        return service.files_of(out)

    def sql(self, statement):
        return self.server.sql(statement, self.database)

    def fetch(self, node, job_id):
        out = os.path.join(self.folder, f"fetched-{node.name}")
        shutil.rmtree(out, ignore_errors=True)
        node.json("fetch", job_id, "-o", out)
        return service.files_of(out)

    def check_bytes(self, node, job_id):
        got = self.fetch(node, job_id)
        different = [name for name, content in self.expected.items()
                     if name not in service.NOT_COMPARED and got.get(name) != content]
        harness.check(not different, f"{node.name}: other bytes than npuc's: {different}")

    def forget_copies(self):
        """What the nodes have on their disks is a cache."""
        for node in self.nodes:
            node.stop()
            shutil.rmtree(os.path.join(node._home, "data"))
        cluster.start_all(self.nodes)

    def rows(self):
        lines = self.sql("SELECT object || ' ' || bytes FROM npuc.content WHERE object <> ''")
        return {name: int(size) for name, size in (line.split() for line in lines.splitlines())}

    def check_rows(self):
        """Where a row is, all bytes are."""
        rows, objects = self.rows(), self.store.objects()
        for name, size in rows.items():
            harness.check(name in objects, f"{name} has a row and no bytes")
            found = os.path.getsize(objects[name])
            harness.check(found == size, f"{name} has {found} bytes in place of {size}")
        return rows, objects


def test_three_nodes(farm):
    """Uploaded at a, run at b, fetched at c."""
    a, b, c = farm.nodes
    for node in (a, c):
        node.json("admin", "cordon")
    job_id = a.json("compile", farm.sample, "--detach")[-1]["job"]
    done = c.wait(job_id)
    harness.check(done["state"] == "SUCCEEDED", done)
    farm.check_bytes(c, job_id)
    for node in (a, c):
        node.json("admin", "uncordon")
    again = c.json("compile", farm.sample, "-o", os.path.join(farm.folder, "again"))[-1]
    harness.check(again["cache_hit"], f"an equal job at another node is no hit: {again}")
    rows, objects = farm.check_rows()
    pieces = farm.sql("SELECT count(*) FROM npuc.piece")
    harness.check(len(rows) >= 2 and pieces == "0", f"{len(rows)} objects, {pieces} pieces")
    total = sum(rows.values())
    harness.figure(f"content: {farm.store.name}: uploaded, run and fetched at three nodes, npuc's "
                   f"bytes; {len(objects)} objects of {total >> 10} KiB, no piece in PostgreSQL")
    return job_id


def damage(path, chance):
    size = os.path.getsize(path)
    kind = chance.randrange(3)
    if kind == 0:
        with open(path, "r+b") as f:
            f.seek(chance.randrange(size))
            byte = f.read(1)[0]
            f.seek(-1, os.SEEK_CUR)
            f.write(bytes([byte ^ 1 << chance.randrange(8)]))
    elif kind == 1:
        os.truncate(path, chance.randrange(size))
    else:
        os.remove(path)


def test_damage(farm, job_id, chance):
    """Damaged results are compiled again as they are fetched; damaged uploads are sent again."""
    def hurt(kind):
        names = farm.sql("SELECT object FROM npuc.content WHERE object <> '' AND "
                         f"name LIKE '{kind}/default/%' AND bytes > 0").splitlines()
        objects = farm.store.objects()
        for name in names:
            damage(objects[name], chance)
        harness.check(names, f"no {kind} to damage")
        return len(names)

    farm.forget_copies()
    results = hurt("result")
    farm.check_bytes(farm.nodes[1], job_id)
    farm.check_bytes(farm.nodes[2], job_id)
    farm.forget_copies()
    uploads = hurt("blob")
    # The store still has the row of each; the client learns that it must send them again.
    first = farm.nodes[0].remote("compile", farm.sample, "--no-cache", "-o",
                                 os.path.join(farm.folder, "damaged"), expect=None)
    last = farm.nodes[0].json("compile", farm.sample, "--no-cache", "-o",
                              os.path.join(farm.folder, "sent-again"))[-1]
    harness.check(last["state"] == "SUCCEEDED", last)
    farm.check_bytes(farm.nodes[1], last["job"])
    farm.check_rows()
    harness.figure(f"content: {farm.store.name}: {results} damaged results compiled again, "
                   f"{uploads} damaged uploads sent again (the first job after it ended with "
                   f"{first.returncode}), no wrong byte")


class Log:
    """What nodes write from now on."""

    def __init__(self, nodes):
        self._begins = {node: os.path.getsize(self._path(node)) for node in nodes}

    @staticmethod
    def _path(node):
        return os.path.join(node._home, "npucd.log")

    def of(self, node):
        with open(self._path(node), encoding="utf-8", errors="replace") as log:
            log.seek(self._begins[node])
            return log.read()

    def wait(self, nodes, text, seconds=90):
        harness.wait_for(lambda: all(text in self.of(node) for node in nodes),
                         f"'{text}' in the log", seconds=seconds, interval=0.1)


def test_away(farm, leave, what):
    """A run that ends while the store is away keeps its result; nothing fails, nothing goes."""
    runs_at, other, third = farm.nodes
    for node in farm.nodes:
        node.json("admin", "cordon")
    job_id = runs_at.json("compile", farm.config, "--detach", "--no-cache")[-1]["job"]
    before = farm.rows()
    log = Log(farm.nodes)
    leave()
    log.wait(farm.nodes, '"condition":"store","why":"shared content')
    runs_at.json("admin", "uncordon")
    log.wait([runs_at], "a result waits for room")
    harness.check(other.job(job_id)["state"] == "RUNNING", other.job(job_id))
    harness.check(farm.rows() == before, "rows went while the store was away")
    farm.store.come_back()
    done, seconds = cluster.seconds_of(lambda: other.wait(job_id))
    harness.check(done["state"] == "SUCCEEDED" and done["attempts"] == 1, done)
    farm.fetch(third, job_id)
    log.wait(farm.nodes, '"message":"condition holds","condition":"store"')
    for node in (other, third):
        node.json("admin", "uncordon")
    harness.figure(f"content: {farm.store.name}: the store {what}: the result waited, and the job "
                   f"SUCCEEDED with one attempt {seconds:.1f} s after it was back")


def test_credentials(farm):
    """A wrong secret is refused, and a new file needs no restart."""
    store, node = farm.store, farm.nodes[0]
    _, none = store.counts()
    log = Log(farm.nodes)
    store.write_credentials("wrong")
    log.wait(farm.nodes, "403 SignatureDoesNotMatch")
    node.stop()
    said = cluster.refused(node)
    harness.check("--cluster-content" in said and "s3:GetObject" in said, said)
    store.write_credentials(store.SECRET)
    node.start()
    done = node.json("compile", farm.sample, "--no-cache", "-o",
                     os.path.join(farm.folder, "secret"))[-1]
    harness.check(done["state"] == "SUCCEEDED", done)
    for one in farm.nodes:
        with open(os.path.join(one._home, "npucd.log"), encoding="utf-8") as log:
            harness.check(store.SECRET not in log.read(), "the log has the secret")
    passed, refused = store.counts()
    harness.check(none == 0, f"botocore signs {none} requests otherwise than npucd")
    harness.figure(f"content: s3: botocore confirms the signatures of {passed} requests; a wrong "
                   f"secret was refused {refused} times, and the right one needed no restart")


def test_other_store(farm):
    """A node that is started on another store than that of the cluster's objects does not serve."""
    node = farm.nodes[0]
    node.stop()
    right = node._security
    empty = os.path.join(farm.folder, "empty")
    os.makedirs(empty, exist_ok=True)
    url = node.url
    for flags, words in (((), "lie in an object store"),
                         (("--cluster-content", f"file://{empty}"), "lie in another store")):
        other = cluster.Node(farm.folder, node.name, farm.server, url, extra=flags)
        said = cluster.refused(other)
        harness.check(words in said, said)
    harness.check(node._security == right and not os.listdir(empty), "the refused store was used")
    node.start()


def test_kills(farm, kills, chance):
    """Nodes are killed while they put and remove; no row is without its bytes, ever, and in the end
    no bytes are without their row."""
    accepted = []
    for number in range(kills):
        clients = [subprocess.Popen(
            [harness.program("npuc-remote"), "compile", chance.choice([farm.config, farm.sample]),
             "--no-cache", "--detach", "--json", "--server", node.address],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True)
            for node in farm.nodes]
        for client in clients:
            out, _ = client.communicate(timeout=60)
            if client.returncode == 0:
                accepted.append(service.json_lines(out)[-1]["job"])
        farm.sql("SET search_path = npuc; SELECT remove_content(name) FROM content "
                 "WHERE name LIKE 'result/%' AND random() < 0.5")
        victim = chance.choice(farm.nodes)
        before = len(farm.store.objects())
        # As soon as a further object appears, or by chance.
        if number % 2 == 0:
            try:
                harness.wait_for(lambda b=before: len(farm.store.objects()) > b, "object",
                                 seconds=5, interval=0.0005)
            except harness.Failure:
                pass
        victim.kill()
        farm.check_rows()
        victim.start()
    for job_id in accepted:
        job = farm.nodes[0].wait(job_id)
        harness.check(job["state"] == "SUCCEEDED", job)
    rows, objects = farm.check_rows()
    left = len(objects) - len(rows)
    # One more, of a node that died long ago.
    folder = farm.sql("SELECT cluster_id FROM npuc.cluster")
    farm.store.put(f"{folder}/0006000/000000000-0123456789abcdef", b"orphan")
    farm.sql(THREE_DAYS_LATER)

    def is_clean():
        rows, objects = farm.rows(), farm.store.objects()
        return set(rows) == set(objects)

    _, seconds = cluster.seconds_of(lambda: harness.wait_for(
        is_clean, "end of the orphans", seconds=240, interval=1))
    doomed = farm.sql("SELECT count(*) FROM npuc.piece_set WHERE object <> ''")
    harness.check(doomed == "0", f"{doomed} rows of removed objects are left")
    farm.check_rows()
    harness.figure(f"content: {farm.store.name}: {kills} kills of nodes, {len(accepted)} jobs, all "
                   f"SUCCEEDED; no row without bytes; {left + 1} objects without a row, gone after "
                   f"{seconds:.0f} s of sweeps")


def run(server, store, folder, length, seed):
    chance = random.Random(seed)
    farm = Farm(server, store, folder)
    try:
        cluster.start_all(farm.nodes)
        job_id = test_three_nodes(farm)
        test_damage(farm, job_id, chance)
        test_away(farm, store.go_away, "is away")
        if store.hangs is not None:
            test_away(farm, store.hangs, "hangs")
        test_other_store(farm)
        if store.name == "s3":
            test_credentials(farm)
        test_kills(farm, KILLS[length], chance)
    except harness.Failure as error:
        logs = "\n".join(f"{node.name}:\n{node.log()}" for node in farm.nodes)
        raise harness.Failure(f"{error} (seed {seed})\n{logs}") from error
    finally:
        for node in farm.nodes:
            node.stop()
        store.end()


def main(arguments):
    length = "long" if "--long" in arguments else "short"
    seed = int(arguments[arguments.index("--seed") + 1]) if "--seed" in arguments else 5
    program, why = object_stores.s3rver()
    with harness.scratch() as folder, postgres.server() as server:
        only = arguments[arguments.index("--store") + 1] if "--store" in arguments else None
        for name in ("folder", "s3") if only is None else (only,):
            if name == "s3" and program is None:
                harness.figure(f"content: S3 was not tried: {why}")
                continue
            home = os.path.join(folder, name)
            os.makedirs(home)
            store = (object_stores.Folder(home) if name == "folder"
                     else object_stores.S3(home, program))
            run(server, store, home, length, seed)
