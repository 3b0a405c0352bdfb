"""An operator's actions against a real npucd: pause over a restart, cancel and requeue by filter,
the tenants, connections, usage, and a line of the audit log for each action, by npuc-remote and by
HTTP."""

import json
import os
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


def check_usage(server, web):
    """What npuc-remote's list has, summed up, is what the usage says."""
    jobs = [one for one in server.json("list", "--limit", "1000") if "end_time" in one]
    used = server.json("usage")
    harness.check({one["tenant"] for one in used} == {"default"}, used)
    harness.check(sum(one["jobs"] for one in used) == len(jobs) > 5, (used, len(jobs)))
    failed = sum(one["state"] == "FAILED" for one in jobs)
    harness.check(sum(one["failed"] for one in used) == failed, (used, failed))
    # The kill -9 may have taken some of what came before it.
    harness.check(sum(one["uploaded_bytes"] for one in used) >= 20_000, used)
    harness.check(sum(one["processor_seconds"] for one in used) > 0, used)
    lines = server.remote("usage", "--csv").stdout.split()
    harness.check(lines[0].startswith("day,tenant,jobs,") and len(lines) == len(used) + 1, lines)
    answer = web.json("GET", f"/v1/usage?fromDay={used[-1]['day']}&tenant=default")["usage"]
    harness.check(answer[-1]["tenant"] == "default", answer)


def check_peers(folder):
    harness.check(all(e["peer"] == "127.0.0.1" for e in audit(folder)), "a line without an address")


def main(_arguments):
    with harness.scratch() as folder:
        with service.daemon(folder, (*service.NO_SPARES, "--web", "127.0.0.1:0")) as server:
            try:
                check_pause(server, folder)
                check_cancel(server, folder)
                check_requeue(server, folder)
                web = http_api.Web(folder)
                check_http(web, folder)
                check_connections(server, web, folder)
                check_usage(server, web)
                check_peers(folder)
            except harness.Failure as error:
                raise harness.Failure(f"{error}\nnpucd's log ends:\n{server.log()}") from error
            lines = len(audit(folder))
    harness.figure("operator: pause over kill -9, cancel, requeue, tenants, connections, usage, by "
                   f"npuc-remote and HTTP; {lines} lines of audit log")
