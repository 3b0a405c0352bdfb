"""HTTP/JSON against a real npucd: openapi.json holds for each answer, a compile by HTTP alone gives
npuc's bytes, events go on over a kill -9, and identities are those of gRPC over TLS."""

import hashlib
import http.client
import json
import os
import re
import ssl

import harness
import service
import tenants

OPENAPI = os.path.join(harness.ROOT, "proto", "openapi.json")
CHUNK = 10_000  # so that the sample's model takes several


class Web:
    """HTTP to a daemon, each answer held against openapi.json."""

    def __init__(self, folder, context=None):
        self._folder, self._context = folder, context
        with open(OPENAPI, encoding="utf-8") as f:
            self.spec = json.load(f)
        self.called = set()

    def address(self):
        with open(os.path.join(self._folder, "port"), encoding="utf-8") as f:
            return dict(line.strip().split("=", 1) for line in f)["web"]

    def connect(self, timeout=30):
        host, port = self.address().rsplit(":", 1)
        if self._context is None:
            return http.client.HTTPConnection(host, int(port), timeout=timeout)
        return http.client.HTTPSConnection(host, int(port), timeout=timeout, context=self._context)

    def call(self, verb, path, body=None, headers=None, expect=200):
        connection = self.connect()
        connection.request(verb, path, body, headers or {})
        response = connection.getresponse()
        data = response.read()
        connection.close()
        harness.check(response.status == expect,
                      f"{verb} {path}: {response.status}, not {expect}: {data[:500]}")
        self._check(verb, path.split("?")[0], response, data)
        return data, response

    def json(self, verb, path, body=None, headers=None, expect=200):
        headers = {"Content-Type": "application/json", **(headers or {})}
        text = None if body is None else json.dumps(body)
        return json.loads(self.call(verb, path, text, headers, expect)[0])

    def _operation(self, verb, path):
        for pattern, verbs in self.spec["paths"].items():
            regex = re.sub(r"\\\{\w+\\\}", "[^/:]+", re.escape(pattern))
            if re.fullmatch(regex, path) and verb.lower() in verbs:
                return pattern, verbs[verb.lower()]
        return None, None

    def _check(self, verb, path, response, data):
        pattern, operation = self._operation(verb, path)
        if response.status >= 400:
            self.validate(json.loads(data), {"$ref": "#/components/schemas/Status"}, path)
            described = operation is None or str(response.status) in operation["responses"]
            harness.check(described, f"{verb} {path}: {response.status} is not in openapi.json")
            return
        harness.check(operation is not None, f"{verb} {path} is not in openapi.json")
        self.called.add((verb.lower(), pattern))
        content = operation["responses"]["200"]["content"]
        kind = response.headers["Content-Type"]
        harness.check(kind in content, f"{verb} {path}: {kind}, not {list(content)}")
        if kind == "application/json":
            self.validate(json.loads(data), content[kind]["schema"], path)

    def validate(self, value, schema, where):
        """The part of JSON schema that openapi.json uses."""
        if "$ref" in schema:
            schema = self.spec["components"]["schemas"][schema["$ref"].split("/")[-1]]
        for part in schema.get("allOf", []):
            self.validate(value, part, where)
        types = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool,
                 "number": (int, float)}
        if "type" in schema:
            harness.check(isinstance(value, types[schema["type"]]), f"{where}: {value!r}: {schema}")
        harness.check(value in schema.get("enum", [value]), f"{where}: {value!r} is no value")
        if "pattern" in schema:
            harness.check(re.search(schema["pattern"], value), f"{where}: {value!r}")
        if isinstance(value, list):
            for i, item in enumerate(value):
                self.validate(item, schema["items"], f"{where}[{i}]")
        if isinstance(value, dict):
            for name, item in value.items():
                known = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
                harness.check(known is not False, f"{where}.{name} is not in openapi.json")
                if isinstance(known, dict):
                    self.validate(item, known, f"{where}.{name}")


def upload(web, data, headers=None):
    digest = {"sha256": hashlib.sha256(data).hexdigest(), "sizeBytes": str(len(data))}
    found = web.json("POST", "/v1/blobs:findMissing", {"digests": [digest]}, headers)
    path = f"/v1/blobs/{digest['sha256']}?sizeBytes={len(data)}"
    while found.get("missing"):
        state = web.json("GET", path, None, headers)
        if state.get("complete"):
            break
        offset = int(state.get("committedBytes", 0))
        web.call("PATCH", f"{path}&offset={offset}", data[offset:offset + CHUNK],
                 {"Content-Type": "application/octet-stream", **(headers or {})})
    return digest


def events(web, job, last=0, stop=None):
    """Reads a stream to its end, or until `stop` says so; (kept events, newest id)."""
    connection = web.connect(timeout=20)
    connection.request("GET", f"/v1/jobs/{job}/events",
                       headers={"Last-Event-ID": str(last)} if last else {})
    response = connection.getresponse()
    harness.check(response.status == 200, f"events: {response.status}")
    found, block = [], {}
    try:
        while not (stop and stop(found)):
            line = response.readline().decode()
            if not line:
                break
            if line.strip():
                name, _, text = line.rstrip("\n").partition(": ")
                block[name] = text
                continue
            if block.get("event"):
                harness.check(block["event"] == "end", f"the stream ends with {block}")
                break
            if "id" in block:
                event = json.loads(block["data"])
                web.validate(event, {"$ref": "#/components/schemas/JobEvent"}, "event")
                harness.check(event["seq"] == block["id"], f"id and seq differ: {block}")
                found.append(event)
                last = int(block["id"])
            block = {}
    except (OSError, http.client.HTTPException):
        pass  # the daemon was killed
    connection.close()
    return found, last


def sample_spec(web, headers=None, **more):
    with open(os.path.join(harness.SAMPLE, "config.yaml"), encoding="utf-8") as f:
        config = f.read()
    with open(os.path.join(harness.SAMPLE, "kws_cnn.pb"), "rb") as f:
        model = upload(web, f.read(), headers)
    return {"configText": config, "configName": "config.yaml", "model": model, **more}


def test_compile(web, folder):
    local = os.path.join(folder, "local")
    harness.npuc(os.path.join(harness.SAMPLE, "config.yaml"), "-o", local)
    created = web.json("POST", "/v1/jobs", {"requestId": "one", "spec": sample_spec(web)})
    job = created["job"]["jobId"]
    again = web.json("POST", "/v1/jobs", {"requestId": "one", "spec": sample_spec(web)})
    harness.check(again["alreadyExisted"] and again["job"]["jobId"] == job, f"{again}")
    kept, last = events(web, job)
    harness.check([int(e["seq"]) for e in kept] == list(range(1, last + 1)), "gaps in events")
    web.call("GET", f"/v1/jobs/{job}/events?fromSeq={last}")
    web.call("GET", f"/v1/events?jobs={job}:{last}")
    harness.check(web.json("GET", "/v1/sign-in") == {"needed": False}, "a sign-in is needed")
    harness.check(web.json("POST", "/v1/session")["identity"] == "local", "session")
    web.json("POST", "/v1/session:end")
    done = web.json("GET", f"/v1/jobs/{job}")["job"]
    harness.check("succeeded" in done and int(done["lastSeq"]) == last, f"{done}")
    ours = service.files_of(local)
    for artifact in done["artifacts"]:
        path = f"/v1/jobs/{job}/artifacts/{artifact['name']}"
        data, response = web.call("GET", path)
        harness.check(response.headers["ETag"] == f'"{artifact["sha256"]}"', "wrong ETag")
        harness.check(hashlib.sha256(data).hexdigest() == artifact["sha256"], "wrong bytes")
        if artifact["name"] not in service.NOT_COMPARED:
            harness.check(data == ours[artifact["name"]], f"{artifact['name']} is not npuc's")
        half = len(data) // 2
        rest, _ = web.call("GET", path, headers={"Range": f"bytes={half}-"}, expect=206)
        harness.check(rest == data[half:], f"{path}: a wrong range")
    harness.check(len(web.json("GET", "/v1/jobs?states=JOB_STATE_SUCCEEDED")["jobs"]) == 1, "list")
    ended = web.json("POST", f"/v1/jobs/{job}:cancel", {"reason": "late"})["job"]
    harness.check("succeeded" in ended, f"{ended}")
    health = web.json("GET", "/v1/health")
    harness.check(health["ready"] and health["conditions"]["canary"] == "ok", f"{health}")
    info = web.json("GET", "/v1/server")
    harness.check(web.json("GET", "/v1/cores")["cores"] == info["cores"], "cores differ")
    harness.check(len(web.json("GET", "/v1/ops?core=GRUS&framework=TF")["operators"]) > 10, "ops")
    totals = web.json("GET", "/v1/jobs?withTotals=true&cores=GRUS&createdFrom=2026-01-01T00:00:00Z"
                      "&order=JOB_ORDER_TOOK&mine=true")["totals"]
    harness.check(totals["jobs"] == "1" and totals["cores"] == {"GRUS": "1"}, f"{totals}")
    test_operator(web)
    every = {(verb, path) for path, verbs in web.spec["paths"].items() for verb in verbs}
    every.remove(("post", "/v1/admin/tokens:rotate"))  # test_tls has identities
    harness.check(web.called == every, f"never called: {every - web.called}")
    harness.figure(f"http: {len(every)} calls of openapi.json made against npucd, each answer as "
                   f"its schema; {len(done['artifacts'])} artifacts as npuc's")


def test_operator(web):
    harness.check(web.json("GET", "/v1/caller")["identity"] == "local", "caller")
    with open(os.path.join(harness.SAMPLE, "kws_cnn.pb"), "rb") as f:
        model = upload(web, f.read())
    told = web.json("POST", "/v1/models:inspect", {"model": model, "modelName": "kws_cnn.pb"})
    harness.check(told["inspection"]["framework"] == "TF", f"{told}")
    state = web.json("POST", "/v1/admin/dispatch", {"paused": True})["state"]
    harness.check(state["paused"], f"{state}")
    web.json("POST", "/v1/admin/dispatch", {})
    web.json("POST", "/v1/admin/jobs:cancel", {"filter": {"labels": ["none"]}})
    web.json("POST", "/v1/admin/jobs:requeue", {"filter": {"labels": ["none"]}})
    open_now = web.json("GET", "/v1/admin/connections?limit=5")
    harness.check(open_now["connections"] and open_now["node"] == "npucd", open_now)
    names = [one["name"] for one in web.json("GET", "/v1/admin/tenants")["tenants"]]
    harness.check(names == ["default"], f"{names}")
    state = web.json("POST", "/v1/admin/cordon", {"cordoned": True, "reason": "swap"})["state"]
    harness.check((state["node"], state["reason"]) == ("npucd", "swap"), state)
    web.json("POST", "/v1/admin/cordon", {})
    now = web.json("POST", "/v1/admin/tenants:limit", {
        "tenant": "default", "limits": {"weight": 3, "maxRunningJobs": 9}, "duration": "60s"})
    harness.check(now["tenant"]["temporary"]["limits"] == {"weight": 3, "maxRunningJobs": "9"}, now)
    harness.check(web.json("GET", "/v1/quota") == now, "a quota is what the operator set")
    web.json("POST", "/v1/admin/tenants:limit", {"tenant": "default"})
    web.json("POST", "/v1/admin/tenants:limit", {"tenant": "nobody"}, expect=404)
    web.json("POST", "/v1/admin/tokens:rotate", {
        "tenant": "default", "identity": "local", "tokenSha256": "7" * 64}, expect=404)
    harness.check(web.json("POST", "/v1/admin/uploads:drop", {}) == {}, "no upload is under way")
    evicted = web.json("POST", "/v1/admin/content:evict", {"blobSha256": model["sha256"]})
    harness.check(evicted["evicted"] == ["default/" + model["sha256"]], evicted)
    web.json("POST", "/v1/admin/content:evict", {}, expect=400)
    done = web.json("GET", "/v1/admin/audit?pageSize=1&action=admin.evict&result=OK")["entries"]
    harness.check([one["object"] for one in done] == ["blob */" + model["sha256"]], f"{done}")
    web.json("GET", "/v1/admin/audit?pageToken=x", expect=400)
    used = web.json("GET", "/v1/usage?tenant=default")["usage"]
    harness.check(int(used[-1]["jobs"]) >= 1, f"{used}")


def test_killed_daemon(web, server, config):
    job, _ = service.catch_job(server, config)
    seen, last = events(web, job, stop=lambda found: len(found) >= 2)
    server.kill()
    server.start()
    more, last = events(web, job, last)
    kept, _ = events(web, job)
    harness.check(seen + more == kept, "events differ after a kill -9 in the middle")
    harness.check([int(e["seq"]) for e in kept] == list(range(1, last + 1)), "gaps in events")
    harness.figure(f"http: kill -9 of npucd under an event stream: {len(kept)} events, resumed "
                   f"after {len(seen)}, none lost or repeated")


def test_tls(folder):
    ca, evil = (tenants.make_authority(folder, name) for name in ("ca", "evil"))
    cert = tenants.make_certificate(folder, ca, "server", "server")
    mine = tenants.make_certificate(folder, ca, "client", "client")
    forged = tenants.make_certificate(folder, evil, "forged", "client")
    tokens = tenants.Tokens(folder)
    tenants_file = os.path.join(folder, "tenants.yaml")
    with open(tenants_file, "w", encoding="utf-8") as f:
        f.write(tokens.tenants())
    security = ("--tls-cert", cert + ".pem", "--tls-key", cert + ".key", "--client-ca",
                ca + ".pem", "--tenants", tenants_file, "--web", "127.0.0.1:0")

    def context(pair=None):
        made = ssl.create_default_context(cafile=ca + ".pem")
        if pair:
            made.load_cert_chain(pair + ".pem", pair + ".key")
        return made

    with service.daemon(folder, security):
        ci = {"Authorization": f"Bearer {tokens.tokens['ci']}"}
        web = Web(folder, context())
        spec = sample_spec(web, ci)
        job = web.json("POST", "/v1/jobs", {"spec": spec}, ci)["job"]["jobId"]
        _, response = web.call("GET", "/v1/server", headers=ci)
        harness.check("max-age" in response.headers["Strict-Transport-Security"], "no HSTS")
        for wrong in ({}, {"Authorization": "Bearer " + "0123456789" * 5}):
            _, response = web.call("GET", "/v1/jobs", headers=wrong, expect=401)
            harness.check(response.headers["WWW-Authenticate"] == "Bearer", "no challenge")
        reader = {"Authorization": f"Bearer {tokens.tokens['reader']}"}
        web.json("POST", "/v1/jobs", {"spec": spec}, reader, expect=403)
        other = {"Authorization": f"Bearer {tokens.tokens['other']}"}
        web.json("GET", f"/v1/jobs/{job}", None, other, expect=404)
        by_certificate = Web(folder, context(mine))
        by_certificate.json("GET", f"/v1/jobs/{job}")
        by_certificate.json("POST", "/v1/jobs", {"spec": spec}, expect=403)
        operator = {"Authorization": f"Bearer {tokens.tokens['operator']}"}
        fresh = "f" * 40
        rotate = {"tenant": "audio", "identity": "ci", "grace": "60s",
                  "tokenSha256": hashlib.sha256(fresh.encode()).hexdigest()}
        web.json("POST", "/v1/admin/tokens:rotate", rotate, reader, expect=403)
        end = web.json("POST", "/v1/admin/tokens:rotate", rotate, operator)["oldTokensEndTime"]
        harness.check(end.endswith("Z"), end)
        for both in (ci, {"Authorization": f"Bearer {fresh}"}):
            harness.check(web.json("GET", "/v1/caller", None, both)["identity"] == "ci", both)
        for stranger in (ssl.create_default_context(), context(forged)):
            try:
                Web(folder, stranger).call("GET", "/v1/server")
            except (OSError, http.client.HTTPException):
                continue
            raise harness.Failure("a handshake that had to fail did not")
    harness.figure("http: TLS with tokens, rights, client certificates: as gRPC's; a forged "
                   "certificate and a foreign authority are refused")


def check_etags(web, job):
    """An answer that the client has is not sent again; another one is."""
    for path in ("/v1/jobs?withTotals=true", f"/v1/jobs/{job}", "/v1/cores"):
        _, first = web.call("GET", path)
        etag = first.headers["ETag"]
        harness.check(etag and etag.startswith('W/"'), f"{path}: ETag {etag}")
        connection = web.connect()
        connection.request("GET", path, headers={"If-None-Match": etag, "Accept-Encoding": "gzip"})
        again = connection.getresponse()
        body = again.read()
        harness.check((again.status, body, again.headers["ETag"]) == (304, b"", etag),
                      f"{path}: {again.status}, {body[:100]}, {again.headers}")
        connection.close()
        web.call("GET", path, headers={"If-None-Match": 'W/"00000000000000000000000000000000"'})


def main(arguments):
    harness.run("/usr/bin/python3", os.path.join(harness.ROOT, "proto", "make_openapi.py"),
                "--check")
    with harness.scratch() as folder:
        config = service.write_model(folder)
        with service.daemon(folder, (*service.NO_SPARES, "--web", "127.0.0.1:0")) as server:
            try:
                web = Web(folder)
                test_compile(web, folder)
                check_etags(web, web.json("GET", "/v1/jobs")["jobs"][0]["jobId"])
                test_killed_daemon(web, server, config)
            except harness.Failure as error:
                raise harness.Failure(f"{error}\nnpucd's log ends:\n{server.log()}") from error
    with harness.scratch() as folder:
        test_tls(folder)
