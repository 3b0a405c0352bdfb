"""Traces of jobs against a collector of the suite's own: OTLP/HTTP's JSON, parents, times in order,
the client's trace by gRPC and HTTP, a lost run, a cluster; collectors that are away, slow, busy, or
answer nonsense, which costs spans and no job."""

import collections
import http.server
import json
import os
import re
import signal
import ssl
import threading
import time
import urllib.request

import cluster
import harness
import http_api
import postgres
import service
import tenants

CLIENT_TRACE = "0af7651916cd43dd8448eb211c80319c"
CLIENT_SPAN = "b7ad6b7169203331"
TRACEPARENT = f"00-{CLIENT_TRACE}-{CLIENT_SPAN}-01"
SAMPLE = os.path.join(harness.SAMPLE, "config.yaml")
# Where a part may end after what it is a part of: a job outlives the call that brought it, and
# transfers come before and after.
OUTLIVES = {"job", "UploadBlob", "DownloadArtifact"}


class Collector:
    """Takes POST /v1/traces and checks what it gets. `answer(handler)` may answer otherwise.
    certificate: path without .pem and .key, for TLS."""

    def __init__(self, port=0, certificate=None):
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.take(self, body)

            def log_message(self, *_arguments):
                pass

        self.spans, self.wrong, self.requests = [], [], 0
        self.headers = {}
        self.answer = None
        self._lock = threading.Lock()
        http.server.ThreadingHTTPServer.allow_reuse_address = True
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # daemons that go away, or trust nobody
        self.port = self._server.server_address[1]
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate + ".pem", certificate + ".key")
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False)
        scheme = "http" if certificate is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def take(self, handler, body):
        with self._lock:
            self.requests += 1
            self.headers = dict(handler.headers)
            answer = self.answer
        if answer is not None and not answer(handler):
            return
        try:
            spans = read_request(handler, json.loads(body))
        except (harness.Failure, KeyError, ValueError, TypeError) as error:
            with self._lock:
                self.wrong.append(f"{error!r}: {body[:2000]}")
            handler.send_error(400)
            return
        with self._lock:
            self.spans += spans
        reply = b'{"partialSuccess":{}}'
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(reply)))
        handler.end_headers()
        handler.wfile.write(reply)

    def of(self, trace):
        with self._lock:
            harness.check(not self.wrong, f"not OTLP: {self.wrong[:1]}")
            return [span for span in self.spans if span["trace"] == trace]

    def await_spans(self, trace, *names, root=None):
        """The spans of a trace, once each of these names came as often as it stands here, and each
        span's parent but `root`: a daemon may send any span a second before the next."""
        wanted = collections.Counter(names)

        def come():
            spans = self.of(trace)
            known = {span["id"] for span in spans} | {root, None}
            missing = wanted - collections.Counter(span["name"] for span in spans)
            closed = all(span["parent"] in known for span in spans)
            return spans if closed and not missing else None
        return harness.wait_for(come, f"spans {names} of {trace}", seconds=30, interval=0.02)

    def close(self):
        self._server.shutdown()
        self._server.server_close()


def value_of(value):
    harness.check(len(value) == 1, value)
    (kind, found), = value.items()
    if kind == "intValue":
        harness.check(isinstance(found, str), value)
        return int(found)
    types = {"stringValue": str, "doubleValue": (int, float), "boolValue": bool}
    harness.check(isinstance(found, types[kind]), value)
    return found


def attributes_of(holder):
    found = {one["key"]: value_of(one["value"]) for one in holder["attributes"]}
    harness.check(len(found) == len(holder["attributes"]), "a key twice")
    return found


def read_span(span, instance):
    known = {"traceId", "spanId", "parentSpanId", "name", "kind", "startTimeUnixNano",
             "endTimeUnixNano", "attributes", "status"}
    harness.check(set(span) <= known, set(span) - known)
    for key, digits in (("traceId", 32), ("spanId", 16), ("parentSpanId", 16)):
        if key != "parentSpanId" or key in span:
            harness.check(re.fullmatch(f"[0-9a-f]{{{digits}}}", span[key]), span)
    harness.check(span["kind"] in (1, 2) and set(span["status"]) <= {"code", "message"}, span)
    harness.check(span["status"].get("code", 0) in (0, 1, 2), span)
    begin, end = span["startTimeUnixNano"], span["endTimeUnixNano"]
    harness.check(isinstance(begin, str) and isinstance(end, str) and int(begin) <= int(end), span)
    return {"trace": span["traceId"], "id": span["spanId"], "parent": span.get("parentSpanId"),
            "name": span["name"], "start": int(begin), "end": int(end), "kind": span["kind"],
            "error": span["status"].get("code") == 2, "attributes": attributes_of(span),
            "node": instance}


def read_request(handler, body):
    harness.check(handler.path == "/v1/traces", handler.path)
    harness.check(handler.headers["Content-Type"] == "application/json", str(handler.headers))
    spans = []
    for of_resource in body["resourceSpans"]:
        resource = attributes_of(of_resource["resource"])
        harness.check(resource["service.name"] == "npucd" and resource["service.version"], resource)
        for of_scope in of_resource["scopeSpans"]:
            harness.check(of_scope["scope"]["name"] == "npucd", of_scope["scope"])
            spans += [read_span(one, resource["service.instance.id"]) for one in of_scope["spans"]]
    harness.check(spans, "no spans")
    return spans


def check_tree(spans, root=None):
    """Each span once; parents are there, or are `root`; a part lies within what it is a part of.
    Returns the "PARENT > NAME" pairs, sorted."""
    by_id = {span["id"]: span for span in spans}
    harness.check(len(by_id) == len(spans), "a span came twice")
    tree = []
    for span in spans:
        parent = by_id.get(span["parent"])
        if parent is None:
            harness.check(span["parent"] == root, f"an unknown parent: {span}")
            tree.append(f"> {span['name']}")
            continue
        tree.append(f"{parent['name']} > {span['name']}")
        harness.check(parent["start"] <= span["start"], f"before its parent: {span}\n{parent}")
        if span["name"] not in OUTLIVES:
            harness.check(span["end"] <= parent["end"], f"after its parent: {span}\n{parent}")
    return sorted(tree)


def named(spans, name):
    found = [span for span in spans if span["name"] == name]
    harness.check(len(found) == 1, f"{len(found)} spans {name}")
    return found[0]


def check_stages(spans):
    """The stages of the compile, one behind the other within the worker."""
    stages = sorted((s for s in spans if s["name"].startswith("stage ")), key=lambda s: s["start"])
    harness.check(len(stages) >= 5, [s["name"] for s in stages])
    for before, after in zip(stages, stages[1:]):
        harness.check(before["end"] <= after["start"], f"{before}\n{after}")
    worker = named(spans, "worker")
    harness.check(all(s["parent"] == worker["id"] for s in stages), "a stage of no worker")
    covered = sum(s["end"] - s["start"] for s in stages)
    harness.check(covered <= worker["end"] - worker["start"], "stages longer than their worker")
    return len(stages)


def metrics(folder):
    with open(os.path.join(folder, "port"), encoding="utf-8") as f:
        address = dict(line.strip().split("=", 1) for line in f)["http"]
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    return {name: float(value) for name, value in
            (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))}


def remote(server, *arguments, traceparent=None):
    env = {"NPUC_SERVER": server.address}
    if traceparent is not None:
        env["TRACEPARENT"] = traceparent
    said = harness.run(harness.program("npuc-remote"), *arguments, "--json", env=env).stdout
    return service.json_lines(said)


def log_lines(folder, job):
    with open(os.path.join(folder, "npucd.log"), encoding="utf-8", errors="replace") as f:
        lines = [json.loads(line) for line in f if line.startswith("{")]
    return [line for line in lines if line.get("job") == job and "trace" in line]


def check_client_trace(server, collector, folder):
    job = remote(server, "compile", SAMPLE, "-o", os.path.join(folder, "out"), "--no-cache",
                 traceparent=TRACEPARENT)[-1]
    harness.check(job["state"] == "SUCCEEDED" and job["trace_id"] == CLIENT_TRACE, job)
    spans = collector.await_spans(CLIENT_TRACE, "job", "run", "UploadBlob",
                                  *["DownloadArtifact"] * len(job["artifacts"]), root=CLIENT_SPAN)
    tree = check_tree(spans, CLIENT_SPAN)
    for wanted in ("> submit", "> UploadBlob", "> DownloadArtifact", "submit > job", "job > queue",
                   "job > run", "run > inputs", "run > worker", "run > store"):
        harness.check(wanted in tree, f"no {wanted} in {tree}")
    stages = check_stages(spans)
    attributes = named(spans, "job")["attributes"]
    harness.check(attributes["npuc.job.id"] == job["job"] and
                  attributes["npuc.state"] == "SUCCEEDED", attributes)
    downloads = [s for s in spans if s["name"] == "DownloadArtifact"]
    harness.check(len(downloads) == len(job["artifacts"]), downloads)
    bytes_of = {a["name"]: a["size"] for a in job["artifacts"]}
    for one in downloads:
        name = one["attributes"]["npuc.object"].split("/", 1)[1]
        harness.check(one["attributes"]["npuc.bytes"] == bytes_of[name], one)
    lines = log_lines(folder, job["job"])
    harness.check(len(lines) >= 2 and all(one["trace"] == CLIENT_TRACE for one in lines), lines)
    text = json.dumps(spans)
    harness.check("secret" not in text, "a header's value in a span")
    harness.check(collector.headers.get("X-Collector-Key") == "secret", collector.headers)
    return len(spans), stages


def check_own_trace(server, collector):
    """Without a client's trace: one of the server's own; a hit has no run."""
    first = remote(server, "submit", SAMPLE)[-1]["job"]
    first = server.wait(first)
    harness.check(re.fullmatch("[0-9a-f]{32}", first["trace_id"]), first)
    collector.await_spans(first["trace_id"], "job")
    again = server.wait(remote(server, "submit", SAMPLE)[-1]["job"])
    harness.check(again["cache_hit"] and again["trace_id"] != first["trace_id"], again)
    spans = collector.await_spans(again["trace_id"], "job", "submit", "cache lookup")
    harness.check(check_tree(spans) == ["> submit", "submit > cache lookup", "submit > job"],
                  check_tree(spans))
    harness.check(named(spans, "cache lookup")["attributes"]["npuc.cache.hit"] is True, spans)
    return first


def check_unsampled(server, collector):
    trace = "1" * 32
    job = remote(server, "submit", SAMPLE, "--no-cache",
                 traceparent=f"00-{trace}-{CLIENT_SPAN}-00")[-1]["job"]
    harness.check(server.wait(job)["trace_id"] == trace, server.job(job))
    # It would have come before those of the next job.
    check_own_trace(server, collector)
    harness.check(not collector.of(trace), "spans of a trace that the client does not record")


def check_http(server, collector, folder, job):
    web = http_api.Web(folder)
    spec = web.json("GET", f"/v1/jobs/{job}")["job"]["spec"]
    spec["noCache"] = True

    def create(request_id, traceparent):
        body = {"requestId": request_id, "spec": spec}
        made = web.json("POST", "/v1/jobs", body, {"traceparent": traceparent})["job"]["jobId"]
        return server.wait(made)["trace_id"]

    trace = "2" * 32
    harness.check(create("by-http", f"00-{trace}-{CLIENT_SPAN}-01") == trace, "by HTTP")
    check_tree(collector.await_spans(trace, "job", root=CLIENT_SPAN), CLIENT_SPAN)
    for i, wrong in enumerate((f"00-{'0' * 32}-{CLIENT_SPAN}-01", f"ff-{trace}-{CLIENT_SPAN}-01",
                               f"00-{trace}-{CLIENT_SPAN}", f"00-{trace.replace('2', 'A')}-"
                               f"{CLIENT_SPAN}-01")):
        own = create(f"malformed-{i}", wrong)
        harness.check(own != trace and re.fullmatch("[0-9a-f]{32}", own), f"{wrong}: {own}")
        spans = collector.await_spans(own, "submit")
        harness.check(named(spans, "submit")["parent"] is None, spans)


def check_lost_run(server, collector, folder):
    """A worker is killed: the job waits again and runs again, in the same trace."""
    job_id, pid = service.catch_job(server, service.write_model(folder))
    os.kill(pid, signal.SIGKILL)
    job = server.wait(job_id)
    harness.check(job["state"] == "SUCCEEDED" and job["attempts"] == 2, job)
    spans = collector.await_spans(job["trace_id"], "job", "store")
    tree = check_tree(spans)
    harness.check(tree.count("job > run") == 2 and tree.count("job > queue") == 2, tree)
    runs = sorted((s for s in spans if s["name"] == "run"), key=lambda s: s["start"])
    queues = sorted((s for s in spans if s["name"] == "queue"), key=lambda s: s["start"])
    harness.check(runs[0]["error"] and not runs[1]["error"], runs)
    harness.check(runs[0]["end"] <= queues[1]["start"] <= runs[1]["start"], f"{runs}\n{queues}")


def jobs_succeed(server, count=3):
    for _ in range(count):
        job = server.wait(remote(server, "submit", SAMPLE, "--no-cache")[-1]["job"])
        harness.check(job["state"] == "SUCCEEDED", job)
    return job


def dropped(folder, reason):
    return metrics(folder).get(f'npuc_trace_spans_dropped_total{{reason="{reason}"}}', 0)


def check_bad_collectors(server, collector, folder):
    """Returns the collector, started again."""
    # Busy: asks to come back, and gets all of it then.
    def busy(handler):
        handler.send_response(429)
        handler.send_header("Retry-After", "1")
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return False
    collector.answer = busy
    before = collector.requests
    job = jobs_succeed(server)
    harness.wait_for(lambda: collector.requests > before, "request to the busy collector")
    collector.answer = None
    check_tree(collector.await_spans(job["trace_id"], "job", "submit", "run"))

    # Slow: no job waits for it.
    release = threading.Event()
    collector.answer = lambda _handler: release.wait(30)
    before = collector.requests
    job = jobs_succeed(server)
    harness.wait_for(lambda: collector.requests > before, "request to the slow collector")
    harness.check(not collector.of(job["trace_id"]), "the slow collector has answered")
    jobs_succeed(server)
    release.set()
    collector.answer = None
    collector.await_spans(job["trace_id"], "job")

    # Nonsense: lost and counted, and not sent again.
    def nonsense(handler):
        handler.wfile.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
        return False
    collector.answer = nonsense
    lost = dropped(folder, "refused")
    job = jobs_succeed(server)
    harness.wait_for(lambda: dropped(folder, "refused") > lost, "count of what is lost",
                     interval=0.05)
    harness.wait_for(lambda: metrics(folder)["npuc_trace_spans_queued"] == 0, "an empty queue",
                     interval=0.05)
    collector.answer = None

    # Away: sent once it is back.
    port = collector.port
    collector.close()
    job = jobs_succeed(server)
    harness.wait_for(lambda: metrics(folder).get("npuc_trace_retries_total", 0) > 2, "retry",
                     interval=0.05)
    collector = Collector(port)
    collector.await_spans(job["trace_id"], "job")
    return collector


def check_away_at_the_end(server, collector, folder):
    """A daemon stops in time though nobody takes its spans."""
    collector.close()
    jobs_succeed(server, 1)
    begin = time.monotonic()
    server.stop()
    seconds = time.monotonic() - begin
    harness.check(server.process.returncode == 0 and seconds < 20,
                  f"{server.process.returncode} after {seconds:.1f} s")


def check_flags(folder):
    data = os.path.join(folder, "flags")
    headers = os.path.join(folder, "bad-headers")
    with open(headers, "w", encoding="utf-8") as f:
        f.write("Content-Length: 3\n")
    os.chmod(headers, 0o600)
    npucd = harness.program("npucd")
    for flags, wanted in ((("--otlp-endpoint=ftp://a",), "https://HOST:4318"),
                          (("--otlp-endpoint=http://a", "--otlp-sampling-ratio=2"), "0 to 1"),
                          ((f"--otlp-headers-file={headers}",), "needs --otlp-endpoint"),
                          ((f"--otlp-ca-file={headers}",), "needs --otlp-endpoint"),
                          (("--otlp-endpoint=http://a", f"--otlp-headers-file={headers}"),
                           "content-length")):
        said = harness.run(npucd, "--check-config", "--insecure", "--data-dir", data, *flags,
                           expect=2).stderr
        harness.check(wanted in said, said)


def check_daemon(folder):
    headers = os.path.join(folder, "headers")
    with open(headers, "w", encoding="utf-8") as f:
        f.write("# of the collector\nX-Collector-Key: secret\n")
    os.chmod(headers, 0o600)
    collector = Collector()
    flags = (*service.NO_SPARES, "--web", "127.0.0.1:0", "--http", "127.0.0.1:0",
             "--otlp-endpoint", collector.url, "--otlp-headers-file", headers)
    with service.daemon(folder, flags) as server:
        try:
            spans, stages = check_client_trace(server, collector, folder)
            first = check_own_trace(server, collector)
            check_unsampled(server, collector)
            check_http(server, collector, folder, first["job"])
            check_lost_run(server, collector, folder)
            harness.wait_for(lambda: metrics(folder)["npuc_trace_spans_exported_total"] ==
                             len(collector.spans), "exported as received", interval=0.05)
            collector = check_bad_collectors(server, collector, folder)
            check_away_at_the_end(server, collector, folder)
        except harness.Failure as error:
            raise harness.Failure(f"{error}\nnpucd's log ends:\n{server.log()}") from error
        with open(os.path.join(folder, "npucd.log"), encoding="utf-8") as f:
            harness.check("X-Collector-Key" not in f.read(), "a header in the log")
    return spans, stages


def check_tls(folder):
    """Spans go to a collector whose certificate an authority has signed that the daemon was given,
    and to no other."""
    authority = tenants.make_authority(folder, "authority")
    certificate = tenants.make_certificate(folder, authority, "collector", "server")
    collector = Collector(certificate=certificate)
    for name, trusted in (("stranger", ()), ("trusted", ("--otlp-ca-file", authority + ".pem"))):
        inside = os.path.join(folder, name)
        os.mkdir(inside)
        flags = (*service.NO_SPARES, "--otlp-endpoint", collector.url, *trusted)
        with service.daemon(inside, flags) as server:
            job = jobs_succeed(server, 1)
            if trusted:
                collector.await_spans(job["trace_id"], "submit", "job", "run")
            else:
                harness.wait_for(lambda: "spans cannot be sent" in server.log(), "a complaint")
                harness.check(collector.requests == 0, "a stranger got spans")
    collector.close()


def check_none(folder):
    """Without the flags: the client's trace is kept for the log, and no other is made."""
    with service.daemon(folder, service.NO_SPARES) as server:
        job = remote(server, "submit", SAMPLE, "--no-cache", traceparent=TRACEPARENT)[-1]["job"]
        harness.check(server.wait(job)["trace_id"] == CLIENT_TRACE, server.job(job))
        job = remote(server, "submit", SAMPLE, "--no-cache")[-1]["job"]
        harness.check(server.wait(job)["trace_id"] == "", server.job(job))


def check_cluster(folder):
    """Submitted at one node and run by another: one trace, whose spans know their node."""
    collector = Collector()
    with postgres.server() as database:
        url = database.new_database("traces")
        cluster.migrate(database, url)
        nodes = [cluster.Node(folder, name, database, url, extra=("--otlp-endpoint", collector.url))
                 for name in ("front", "back")]
        try:
            for node in nodes:
                node.start()
            front, back = nodes
            front.json("admin", "pause")
            job = remote(front, "submit", SAMPLE, "--no-cache", traceparent=TRACEPARENT)[-1]["job"]
            harness.check(back.wait(job)["trace_id"] == CLIENT_TRACE, back.job(job))
            spans = collector.await_spans(CLIENT_TRACE, "submit", "job", "run", "worker", "store",
                                          root=CLIENT_SPAN)
            check_tree(spans, CLIENT_SPAN)
            where = {span["name"]: span["node"] for span in spans}
            found = (where["submit"], where["run"], where["job"])
            harness.check(found == ("front", "back", "back"), where)
        finally:
            for node in nodes:
                node.stop()
            collector.close()


def main(_arguments):
    with harness.scratch() as folder:
        check_flags(folder)
        for part in ("daemon", "none", "cluster", "tls"):
            os.mkdir(os.path.join(folder, part))
        check_none(os.path.join(folder, "none"))
        check_tls(os.path.join(folder, "tls"))
        spans, stages = check_daemon(os.path.join(folder, "daemon"))
        check_cluster(os.path.join(folder, "cluster"))
    harness.figure(f"traces: {spans} spans of a compile with {stages} stages, in the trace of the "
                   "client by gRPC and HTTP, over a lost run and over two nodes; busy, slow, "
                   "absent and nonsensical collectors cost no job")
