"""An operator's actions against a real npucd: pause and cordon over a restart, cancel and requeue
by filter, uploads dropped, blobs and results evicted, the tenants, connections, usage, and a line
of the audit log for each action, by npuc-remote and by HTTP. The suite tenant_actions has the
limits and tokens of tenants."""

import hashlib
import json
import os
import socket
import subprocess

import harness
import http_api
import service


def audit(folder):
    path = os.path.join(folder, "data", "audit", "audit.log")
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def actions(folder):
    return [entry["action"] for entry in audit(folder)]


def submit(server, config, *arguments):
    return server.json("submit", config, *arguments)[-1]["job"]


def failing_config(folder):
    """A job that is accepted and fails."""
    with open(os.path.join(harness.SAMPLE, "kws_cnn.pb"), "rb") as f:
        model = f.read()
    with open(os.path.join(folder, "kws_cnn.pb"), "wb") as f:
        f.write(model[:20_000])
    with open(os.path.join(harness.SAMPLE, "config.yaml"), encoding="utf-8") as f:
        text = f.read()
    path = os.path.join(folder, "failing.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def check_pause(server, folder):
    sample = os.path.join(harness.SAMPLE, "config.yaml")
    state = server.json("admin", "pause", "--reason", "disk swap")[0]
    harness.check(state["paused"] and state["reason"] == "disk swap", state)
    first = submit(server, sample, "--no-cache")
    server.kill()
    server.start()
    second = submit(server, sample, "--no-cache", "--label", "half=two")
    dispatch = server.remote("admin", "tenants").stdout
    harness.check("paused by local" in dispatch and "disk swap" in dispatch, dispatch)
    for job in (first, second):
        harness.check(server.job(job)["state"] == "QUEUED", f"{job} was started while paused")
    server.remote("admin", "resume")
    for job in (first, second):
        harness.check(server.wait(job)["state"] == "SUCCEEDED", f"{job} after resume")
    harness.check({"admin.pause", "admin.resume", "submit"} <= set(actions(folder)),
                  actions(folder))


def check_cordon(server, folder):
    """It holds beside a pause, which it outlives, and over a restart."""
    state = server.json("admin", "cordon", "--reason", "new memory")[0]
    harness.check((state["cordoned"], state["reason"], state["node"]) ==
                  (True, "new memory", "npucd"), state)
    server.remote("admin", "pause")
    server.remote("admin", "resume")
    job = submit(server, os.path.join(harness.SAMPLE, "config.yaml"), "--no-cache")
    server.stop()
    server.start()
    said = server.remote("admin", "tenants").stdout
    harness.check("npucd is cordoned by local" in said and "new memory" in said, said)
    harness.check(server.job(job)["state"] == "QUEUED", f"{job} was started by a cordoned server")
    harness.check(server.remote("health").returncode == 0, "a cordoned server serves")
    state = server.json("admin", "uncordon")[0]
    harness.check(not state["cordoned"], state)
    harness.check(server.wait(job)["state"] == "SUCCEEDED", f"{job} after uncordon")
    line = [e for e in audit(folder) if e["action"] == "admin.cordon"][-1]
    harness.check((line["object"], line["detail"], line["result"]) == ("npucd", "new memory", "OK"),
                  line)
    harness.check("admin.uncordon" in actions(folder), actions(folder))


def check_uploads(server, web, folder):
    """An upload under way is dropped, by its tenant or its idleness; its client begins anew."""
    model = os.urandom(50_000)
    sha256 = hashlib.sha256(model).hexdigest()
    path = f"/v1/blobs/{sha256}?sizeBytes={len(model)}"

    def send(begin, end, expect=200):
        return web.call("PATCH", f"{path}&offset={begin}", model[begin:end],
                        {"Content-Type": "application/octet-stream"}, expect)[0]

    send(0, 20_000)
    tenant = server.json("admin", "tenants")[0]
    harness.check(tenant["open_uploads"] == 1 and tenant["stored_bytes"] >= 20_000, tenant)
    said = server.json("admin", "drop-uploads", "--tenant", "default", "--for", "1h")[0]
    harness.check(said == {"dropped": 0, "dropped_bytes": 0}, said)
    harness.check(server.remote("admin", "drop-uploads", expect=2).returncode == 2, "whose?")
    said = server.json("admin", "drop-uploads", "--all", "--reason", "stuck")[0]
    harness.check(said == {"dropped": 1, "dropped_bytes": 20_000}, said)
    harness.check(server.json("admin", "tenants")[0]["open_uploads"] == 0, "it is still there")
    harness.check("committedBytes" not in web.json("GET", path), "it would go on in the middle")
    send(20_000, 50_000, expect=400)
    send(0, 50_000)
    harness.check(web.json("GET", path)["complete"], "an upload begun anew")
    line = [e for e in audit(folder) if e["action"] == "admin.drop_uploads"][-1]
    harness.check((line["object"], line["detail"]) == ("of all tenants", "1 dropped; stuck"), line)
    return sha256


def check_evict(server, folder, sha256):
    """A blob, a job's result, a result by its key: gone, and made again where somebody asks."""
    evicted = server.json("admin", "evict", "--blob", sha256, "--reason", "poisoned")[0]["evicted"]
    harness.check(evicted == ["default/" + sha256], evicted)
    harness.check(server.json("admin", "evict", "--blob", sha256)[0]["evicted"] == [], "twice")
    config = os.path.join(harness.SAMPLE, "config.yaml")

    def hit():
        job = server.wait(submit(server, config))
        harness.check(job["state"] == "SUCCEEDED", job)
        return job["job"], job["cache_hit"]

    hit()
    job, is_hit = hit()
    harness.check(is_hit, "the cache has no result to evict")
    key = server.json("admin", "evict", "--job", job)[0]["evicted"]
    harness.check(len(key) == 1 and key[0].startswith("default/"), key)
    # A job whose result has gone is compiled again by who fetches it.
    server.remote("fetch", job, "-o", os.path.join(folder, "again"))
    harness.check(os.path.getsize(os.path.join(folder, "again", "kws_cnn.h")) > 1000, "its header")
    harness.check(server.json("admin", "evict", "--result", key[0])[0]["evicted"] == key, key)
    harness.check(not hit()[1], "a result that was evicted is a hit")
    server.remote("admin", "pause")
    with open(os.path.join(harness.SAMPLE, "kws_cnn.pb"), "rb") as f:
        model = hashlib.sha256(f.read()).hexdigest()
    waits = submit(server, config, "--no-cache")
    said = server.remote("admin", "evict", "--blob", model, expect=3).stderr
    harness.check("needs the blob" in said, said)
    server.remote("admin", "resume")
    harness.check(server.wait(waits)["state"] == "SUCCEEDED", f"{waits} lost its model")
    lines = [e for e in audit(folder) if e["action"] == "admin.evict"]
    harness.check(lines[0]["detail"] == "1 evicted; poisoned" and sha256 in lines[0]["object"],
                  lines[0])
    harness.check(lines[-1]["result"] == "BLOB_IN_USE", lines[-1])


def check_cancel(server, folder):
    sample = os.path.join(harness.SAMPLE, "config.yaml")
    server.remote("admin", "pause")
    mine = [submit(server, sample, "--no-cache", "--label", "wave=1") for _ in range(3)]
    other = submit(server, sample, "--no-cache", "--label", "wave=2")
    harness.check(server.remote("admin", "cancel", expect=2).returncode == 2, "no filter, no --all")
    said = server.json("admin", "cancel", "--label", "wave=1", "--reason", "flood")[0]
    harness.check(said == {"cancelled": 3}, said)
    for job in mine:
        harness.check(server.job(job)["state"] == "CANCELLED", job)
    server.remote("admin", "resume")
    harness.check(server.wait(other)["state"] == "SUCCEEDED", "the filter took another's job")
    entry = [e for e in audit(folder) if e["action"] == "admin.cancel_jobs"][-1]
    harness.check(entry["detail"] == "3 cancelled; flood" and "wave=1" in entry["object"], entry)


def check_requeue(server, folder):
    failed = submit(server, failing_config(folder), "--label", "night=1")
    harness.check(server.wait(failed)["state"] == "FAILED", "the job did not fail")
    said = server.json("admin", "requeue", "--label", "night=1")[0]
    harness.check(said["requeued"] == 1 and not said["failures"], said)
    jobs = server.json("list", "--label", "night=1", "--sort", "newest")
    harness.check(len(jobs) == 2, jobs)
    server.wait(jobs[0]["job"])
    # The new one has failed, too: it is requeued, the old one is not again.
    said = server.json("admin", "requeue", "--label", "night=1")[0]
    harness.check((said["requeued"], said["already_requeued"]) == (1, 1), said)


def check_http(web, folder):
    state = web.json("POST", "/v1/admin/dispatch", {"paused": True, "reason": "by HTTP"})["state"]
    harness.check(state["paused"] and state["by"] == "local", state)
    state = web.json("POST", "/v1/admin/dispatch", {"paused": False})["state"]
    harness.check("paused" not in state, state)
    web.json("POST", "/v1/admin/jobs:cancel", {"filter": {"labels": ["none"]}})
    web.json("POST", "/v1/admin/jobs:requeue", {"filter": {"labels": ["none"]}})
    tenants = web.json("GET", "/v1/admin/tenants")["tenants"]
    harness.check([t["name"] for t in tenants] == ["default"], tenants)
    caller = web.json("GET", "/v1/caller")
    harness.check(caller["rights"] == ["submit", "read", "cancel", "admin"], caller)
    harness.check(audit(folder)[-1]["action"] == "admin.requeue_jobs", audit(folder)[-1])


def check_connections(server, web, folder):
    """A watch that goes on is a stream of its connection; both are gone after its end."""
    server.remote("admin", "pause")
    job = submit(server, os.path.join(harness.SAMPLE, "config.yaml"), "--no-cache")
    with open(os.path.join(folder, "watched"), "wb") as out:
        watcher = subprocess.Popen([harness.program("npuc-remote"), "watch", job, "--json"],
                                   stdout=out, env={**os.environ, "NPUC_SERVER": server.address})

    def streams():
        return [one for one in server.json("admin", "connections")
                if one["kind"] == "stream" and one["object"] == job]

    stream = harness.wait_for(streams, "stream of the watcher", interval=0.05)[0]
    harness.check((stream["method"], stream["protocol"], stream["identity"], stream["tenant"]) ==
                  ("WatchCompileJob", "gRPC", "local", "default"), stream)
    open_now = [one for one in server.json("admin", "connections") if one["kind"] == "connection"]
    own = [one for one in open_now if one["last_method"] == "ListConnections"]
    watching = [one for one in open_now if one["last_method"] == "WatchCompileJob"]
    harness.check(own and watching and watching[0]["received_bytes"] > 0, open_now)
    answer = web.json("GET", "/v1/admin/connections?limit=1")
    harness.check(len(answer["connections"]) == 1 and int(answer["openConnections"]) >= 2, answer)
    answer = web.json("GET", "/v1/admin/connections?limit=1000")
    by_http = [one for one in answer["connections"] if one["protocol"] == "HTTP"]
    harness.check(by_http and by_http[0]["lastMethod"] == "GET /v1/admin/connections", answer)
    web.json("GET", "/v1/admin/connections?limit=1001", expect=400)
    harness.check("streams are open" in server.remote("admin", "connections").stdout, "as text")
    server.remote("admin", "resume")
    harness.check(watcher.wait(60) == 0, "the watcher")
    harness.wait_for(lambda: not streams(), "end of the stream", interval=0.05)


def check_usage(server, web, folder):
    """What npuc-remote's list has, summed up, is what the usage says."""
    jobs = [one for one in server.json("list", "--limit", "1000") if "end_time" in one]
    used = server.json("usage")
    harness.check({one["tenant"] for one in used} == {"default"}, used)
    harness.check(sum(one["jobs"] for one in used) == len(jobs) > 5, (used, len(jobs)))
    for state, field in (("FAILED", "failed"), ("SUCCEEDED", "succeeded")):
        count = sum(one["state"] == state for one in jobs)
        harness.check(sum(one[field] for one in used) == count > 0, (used, field, count))
    hits = sum(one["cache_hit"] for one in jobs)
    harness.check(sum(one["cache_hits"] for one in used) == hits > 0, (used, hits))
    header = os.path.getsize(os.path.join(folder, "fetched", "kws_cnn.h"))
    harness.check(sum(one["downloaded_bytes"] for one in used) >= header, (used, header))
    # The kill -9 may have taken some of what came before it.
    harness.check(sum(one["uploaded_bytes"] for one in used) >= 20_000, used)
    harness.check(sum(one["processor_seconds"] for one in used) > 0, used)
    lines = server.remote("usage", "--csv").stdout.split()
    harness.check(lines[0].startswith("day,tenant,jobs,") and len(lines) == len(used) + 1, lines)
    answer = web.json("GET", f"/v1/usage?fromDay={used[-1]['day']}&tenant=default")["usage"]
    harness.check(answer[-1]["tenant"] == "default", answer)


def check_users_lines(server, web, folder):
    """What users do is in the audit log: who, what, to what, with which result; no content."""
    sample = os.path.join(harness.SAMPLE, "config.yaml")
    done = server.wait(submit(server, sample))["job"]
    server.remote("fetch", done, "-o", os.path.join(folder, "fetched"))
    web.call("GET", f"/v1/jobs/{done}/artifacts/none.h", expect=404)
    server.remote("inspect", os.path.join(harness.SAMPLE, "kws_cnn.pb"))
    server.remote("cancel", done, "--reason", "too late")
    with open(os.path.join(harness.SAMPLE, "kws_cnn.pb"), "rb") as f:
        model = hashlib.sha256(f.read()).hexdigest()
    lines = [(one["action"], one["object"], one["result"], one["identity"], one["tenant"])
             for one in audit(folder)]
    for action, of, result in (("submit", done, "OK"), ("download", f"{done}/kws_cnn.h", "OK"),
                               ("download", f"{done}/none.h", "ARTIFACT_NOT_FOUND"),
                               ("inspect", model, "OK"), ("cancel", done, "OK")):
        harness.check((action, of, result, "local", "default") in lines,
                      f"no line {action} {of} {result} in {lines[-8:]}")
    with open(os.path.join(folder, "data", "audit", "audit.log"), encoding="utf-8") as f:
        harness.check("CORENAME" not in f.read(), "the audit log has a config")


def check_syslog(folder, syslog):
    """Each line went to the syslog, too, as far as that has read."""
    said = []
    syslog.setblocking(False)
    while True:
        try:
            said.append(syslog.recv(65536).decode())
        except BlockingIOError:
            break
    # authpriv.info
    harness.check(said and all(one.startswith("<86>") for one in said), said[:2])
    kept = {(one["action"], one["object"]) for one in audit(folder)}
    for one in said:
        line = json.loads(one[one.index("{"):])
        harness.check((line["action"], line["object"]) in kept, f"not in audit.log: {line}")
    return len(said)


def check_peers(folder):
    harness.check(all(e["peer"] == "127.0.0.1" for e in audit(folder)), "a line without an address")


def main(_arguments):
    with harness.scratch() as folder:
        syslog = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        syslog.bind(os.path.join(folder, "log"))
        with service.daemon(folder, (*service.NO_SPARES, "--web", "127.0.0.1:0", "--audit-syslog",
                                     os.path.join(folder, "log"))) as server, syslog:
            try:
                check_pause(server, folder)
                check_cordon(server, folder)
                check_cancel(server, folder)
                check_requeue(server, folder)
                web = http_api.Web(folder)
                check_http(web, folder)
                check_evict(server, folder, check_uploads(server, web, folder))
                check_connections(server, web, folder)
                check_users_lines(server, web, folder)
                check_usage(server, web, folder)
                check_peers(folder)
                to_syslog = check_syslog(folder, syslog)
            except harness.Failure as error:
                raise harness.Failure(f"{error}\nnpucd's log ends:\n{server.log()}") from error
            lines = len(audit(folder))
    harness.figure("operator: pause and cordon over restarts, cancel, requeue, uploads dropped, "
                   "blobs and results evicted, tenants, connections, usage, by "
                   f"npuc-remote and HTTP; {lines} lines of audit log, {to_syslog} at a syslog")
