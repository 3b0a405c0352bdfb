#!/usr/bin/python3
"""Makes openapi.json, and the table of calls in HTTP.md, from the .proto files.

  make_openapi.py [--check]

Schemas and paths, with their comments, come from protoc's descriptors: a call's paths are its
options npuc.rpc.http, which server/http/routes.cc serves. http_api of the end-to-end tests calls
each against a real npucd. `--check` fails where a file is not what would be made.
"""

import importlib
import json
import os
import re
import subprocess
import sys
import tempfile

from google.protobuf import descriptor_pb2 as pb

HERE = os.path.dirname(os.path.abspath(__file__))
OPENAPI = os.path.join(HERE, "openapi.json")
PAGE = os.path.join(HERE, "HTTP.md")
BEGIN, END = "<!-- calls: made by make_openapi.py -->\n", "<!-- end of calls -->\n"
FILES = ["npuc/v1/blob.proto", "npuc/v1/compile.proto", "npuc/v1/admin.proto",
         "npuc/v1/server_info.proto"]
ROUTES = "npuc/rpc/http.proto"
SCALARS = {
    pb.FieldDescriptorProto.TYPE_STRING: {"type": "string"},
    pb.FieldDescriptorProto.TYPE_BYTES: {"type": "string", "format": "byte"},
    pb.FieldDescriptorProto.TYPE_BOOL: {"type": "boolean"},
    pb.FieldDescriptorProto.TYPE_DOUBLE: {"type": "number", "format": "double"},
    pb.FieldDescriptorProto.TYPE_INT32: {"type": "integer", "format": "int32"},
    # proto3 JSON writes 64-bit numbers as text.
    pb.FieldDescriptorProto.TYPE_INT64: {"type": "string", "format": "int64"},
}
WELL_KNOWN = {
    ".google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    ".google.protobuf.Struct": {"type": "object"},
    ".google.protobuf.Duration": {"type": "string", "pattern": r"^-?[0-9]+(\.[0-9]+)?s$"},
}
# The ways in which calls fail: HTTP's status, the name of the answer, the codes of gRPC that it
# stands for, and what it means. A call has those whose codes its comment names, and those of every
# call.
ANSWERS = [
    ("400", "BadRequest", {"INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE"},
     "What is asked is malformed, or not possible as things are: the details name each field."),
    ("401", "Unauthenticated", {"UNAUTHENTICATED"},
     "Nobody is known by what the request brings: NO_IDENTITY, UNKNOWN_IDENTITY, "
     "IDENTITY_EXPIRED, AMBIGUOUS_IDENTITY or SESSION_ENDED."),
    ("403", "Forbidden", {"PERMISSION_DENIED"},
     "The identity lacks the right (RIGHT_MISSING), or a page of another site asks "
     "(ORIGIN_REFUSED)."),
    ("404", "NotFound", {"NOT_FOUND"},
     "It is not there, or this caller may not see it."),
    ("409", "Conflict", {"ALREADY_EXISTS"}, "It is there already, and is another one."),
    ("413", "TooLarge", {"a body"}, "The body is too large: BODY_TOO_LARGE."),
    ("415", "WrongEncoding", {"a body"}, "The body is compressed: WRONG_CONTENT_ENCODING."),
    ("416", "NoSuchRange", {"a range"}, "The range is past the end: OFFSET_PAST_END."),
    ("429", "TooMany", {"RESOURCE_EXHAUSTED"},
     "A limit or a quota is reached; Retry-After is there where a retry helps."),
    ("503", "Unavailable", {"UNAVAILABLE"},
     "The server starts, ends or lacks something; Retry-After says when to come back."),
]
OF_EVERY_CALL = {"INVALID_ARGUMENT", "UNAUTHENTICATED", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED",
                 "UNAVAILABLE"}


def failures(codes=frozenset()):
    """The answers of a call that may fail with these codes."""
    found = {status: {"$ref": f"#/components/responses/{name}"}
             for status, name, of, _ in ANSWERS if of & (OF_EVERY_CALL | codes)}
    return {**found, "default": {"$ref": "#/components/responses/Error"}}


def failure(description):
    return {"description": description, "content": {"application/json": {"schema": {
        "$ref": "#/components/schemas/Status"}}}}


# No rpc has this: gRPC's own health service says whether, not why.
HEALTH = {
    "operationId": "GetHealth",
    "summary": "Whether the server takes work: each condition is `ok`, or the reason why not.",
    "responses": {
        "200": {"description": "OK", "content": {"application/json": {"schema": {
            "type": "object", "required": ["ready", "conditions"], "additionalProperties": False,
            "properties": {
                "ready": {"type": "boolean"},
                "conditions": {"type": "object", "additionalProperties": {"type": "string"}}}}}}},
        **failures()}}
TEXT = {"type": "string"}
CALLER = {"$ref": "#/components/schemas/GetCallerResponse"}


def own(operation, summary, schema, description="", kind="application/json", **more):
    """An operation that no rpc has."""
    return {"operationId": operation, "summary": summary, "description": description or summary,
            **more,
            "responses": {"200": {"description": "OK", "content": {kind: {"schema": schema}}},
                          **failures()}}


def an_object(**properties):
    return {"type": "object", "properties": properties, "additionalProperties": False}


# Calls that no rpc has. By gRPC many watches share a connection as they are, and there are no
# browsers.
OWN = {
    ("get", "/v1/health"): HEALTH,
    ("get", "/v1/events"): own(
        "WatchCompileJobs", "Watches several jobs by one stream.", TEXT,
        "Server-sent events, whose data is `{jobId, event}` with a JobEvent. Event `end` with "
        "`{jobId}`: the job has ended; `error` with `{jobId, status}`: it cannot be watched, or "
        "with `{status}`: the stream ends.", "text/event-stream",
        parameters=[{"name": "jobs", "in": "query", "required": True, "explode": True,
                     "description": "`ID` or `ID:SEQ`, the first event that is wanted.",
                     "schema": {"type": "array", "minItems": 1, "maxItems": 64, "items": TEXT}}]),
    ("get", "/v1/sign-in"): own(
        "GetSignIn", "How somebody may sign in on the page.", an_object(
            needed={"type": "boolean", "description": "Whether calls need an identity."},
            certificate={"type": "string", "description":
                         "The name in the certificate that the browser has shown."},
            provider={"type": "string", "description":
                      "The name of the OpenID Connect provider; `/auth/start?to=LINK` leads a "
                      "browser there and back."},
            problem={"type": "string", "description":
                     "What went wrong there, said once."}),
        security=[]),
    ("post", "/v1/session"): own(
        "StartSession", "Keeps who calls in a session of the browser.", CALLER,
        "Who shows a token or a certificate here gets a cookie (HttpOnly, SameSite=Strict) that "
        "stands for it until it is ended, its time is over, or the tenants file knows the token or "
        "the certificate no longer."),
    ("post", "/v1/session:end"): own(
        "EndSession", "Ends the session of the browser, if there is one.", an_object(),
        security=[]),
}
NOTES = {
    "/v1/cores": "The cores alone, of what /v1/server tells.",
    "/v1/jobs/{jobId}/events":
        "Server-sent events: data is a JobEvent, id its seq; `Last-Event-ID` goes on after that "
        "one. Event `end`: the job has ended; `error`: a google.rpc.Status.",
    "/v1/jobs/{jobId}/artifacts/{artifactName}":
        "ETag is the SHA-256 in quotes; Range, If-Range and If-None-Match work.",
}


def camel(name):
    return re.sub(r"_([a-z0-9])", lambda m: m.group(1).upper(), name)


def shown_path(route):
    """The route's path with fields as a caller reads them: {jobId}."""
    return re.sub(r"\{(?:\w+\.)?(\w+)\}", lambda m: "{" + camel(m.group(1)) + "}", route.path)


class Maker:
    def __init__(self, files):
        self.comments, self.schemas, self.rpcs, self.fields = {}, {}, {}, {}
        for file in files:
            for location in file.source_code_info.location:
                text = " ".join(location.leading_comments.split())
                self.comments[(file.name, tuple(location.path))] = text
            for i, message in enumerate(file.message_type):
                self._message(file, message, (4, i))
            for i, enum in enumerate(file.enum_type):
                self._enum(file, enum, (5, i))
            for i, service in enumerate(file.service):
                for j, rpc in enumerate(service.method):
                    self.rpcs[rpc.name] = (rpc, self.comments.get((file.name, (6, i, 2, j)), ""))

    def _type(self, field):
        if field.type_name in WELL_KNOWN:
            return dict(WELL_KNOWN[field.type_name])
        if field.type_name:
            return {"$ref": "#/components/schemas/" + field.type_name.split(".")[-1]}
        return dict(SCALARS[field.type])

    def _message(self, file, message, path):
        maps = {"." + file.package + "." + message.name + "." + n.name: n
                for n in message.nested_type if n.options.map_entry}
        properties = {}
        for i, field in enumerate(message.field):
            comment = self.comments.get((file.name, path + (2, i)), "")
            if field.type_name in maps:
                value = next(f for f in maps[field.type_name].field if f.name == "value")
                schema = {"type": "object", "additionalProperties": self._type(value)}
            elif field.label == field.LABEL_REPEATED:
                schema = {"type": "array", "items": self._type(field)}
            else:
                schema = self._type(field)
            if comment and "$ref" in schema:
                schema = {"allOf": [schema], "description": comment}
            elif comment:
                schema["description"] = comment
            properties[camel(field.name)] = schema
            self.fields[(message.name, field.name)] = schema
        self.schemas[message.name] = {
            "type": "object", "description": self.comments.get((file.name, path), ""),
            "properties": properties, "additionalProperties": False}

    def _enum(self, file, enum, path):
        values = [f"{v.name}: {self.comments.get((file.name, path + (2, i)), '')}"
                  for i, v in enumerate(enum.value)]
        self.schemas[enum.name] = {
            "type": "string", "enum": [v.name for v in enum.value],
            "description": self.comments.get((file.name, path), "") + "\n\n" + "\n".join(values)}

    def _parameters(self, request, prefix=""):
        """Of a request: "field" or "message.field", and its name in the query."""
        for (message, name), schema in self.fields.items():
            if message != request:
                continue
            inner = schema.get("$ref") or schema.get("allOf", [{}])[0].get("$ref", "")
            inner = inner.split("/")[-1]
            if not prefix and any(m == inner for m, _ in self.fields):
                yield from self._parameters(inner, name + ".")
            else:
                yield prefix + name, name, schema

    def query(self, rpc, route):
        """The parameters of a route's query: name, whether it must be given, schema."""
        if route.body == "*":
            return
        used = set(re.findall(r"\{([\w.]+)\}", route.path)) | {route.body}
        for field, name, schema in self._parameters(rpc.input_type.split(".")[-1]):
            if field not in used:
                yield camel(name), field == route.required, schema

    def operation(self, rpc_name, route):
        rpc, comment = self.rpcs[rpc_name]
        path, body = shown_path(route), route.body
        request = rpc.input_type.split(".")[-1]
        response = rpc.output_type.split(".")[-1]
        parameters = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
                      for name in re.findall(r"\{(\w+)\}", path)]
        for name, required, schema in self.query(rpc, route):
            parameters.append({"name": name, "in": "query", "required": required,
                               "schema": schema})
        answer = ""
        if rpc.server_streaming:
            answer = ("application/octet-stream" if (response, "data") in self.fields
                      else "text/event-stream")
        if answer == "text/event-stream":
            parameters.append({"name": "Last-Event-ID", "in": "header",
                               "schema": {"type": "string", "format": "int64"}})
        schema = {"$ref": "#/components/schemas/" + response}
        content = {answer: {"schema": {"type": "string"}}} if answer else {
            "application/json": {"schema": schema}}
        codes = set(re.findall(r"[A-Z]+_[A-Z_]+", comment)) | ({"a body"} if body else set())
        codes |= {"a range"} if answer == "application/octet-stream" else set()
        operation = {
            "operationId": "List" + route.only.capitalize() if route.only else rpc_name,
            "summary": comment.split(". ")[0].rstrip(".") + ".",
            "description": " ".join(filter(None, [comment, NOTES.get(path, "")])),
            "parameters": parameters,
            "responses": {"200": {"description": "OK", "content": content},
                          **failures(codes)}}
        if body == "*":
            operation["requestBody"] = {"required": True, "content": {"application/json": {
                "schema": {"$ref": "#/components/schemas/" + request}}}}
        elif body:
            operation["requestBody"] = {"required": True, "content": {"application/octet-stream": {
                "schema": {"type": "string", "format": "binary", "maxLength": 1 << 20}}}}
        if not parameters:
            del operation["parameters"]
        return operation


def descriptors():
    """The descriptors of FILES, and the extension that has the routes of a call."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "set")
        subprocess.run(["protoc", f"-I{HERE}", "--include_source_info", "-o", out, *FILES],
                       check=True)
        subprocess.run(["protoc", f"-I{HERE}", "--python_out", folder, ROUTES], check=True)
        sys.path.insert(0, folder)
        routes = importlib.import_module("npuc.rpc.http_pb2")  # before the set is read
        sys.path.remove(folder)
        with open(out, "rb") as f:
            return pb.FileDescriptorSet.FromString(f.read()).file, routes.http


def routes_of(maker, extension):
    """Call and route, in the order of the protos."""
    routes = [(name, route) for name, (rpc, _) in maker.rpcs.items()
              for route in rpc.options.Extensions[extension]]
    without = set(maker.rpcs) - {name for name, _ in routes}
    if without:
        sys.exit(f"no path for {', '.join(sorted(without))}: give it an option npuc.rpc.http, and "
                 "a line in MakeRoutes of server/http/routes.cc")
    return routes


def page(maker, routes):
    """HTTP.md with a table of what is there now."""
    rows = ["| call | HTTP |", "|---|---|"]
    for name, route in routes:
        query = "&".join(f"{name}=" for name, _, _ in maker.query(maker.rpcs[name][0], route))
        notes = [f", the answer has `{route.only}` alone"] if route.only else []
        notes += [", bytes as the body"] if route.body not in ("", "*") else []
        rows.append(f"| {name} | {route.method} {shown_path(route)}{'?' if query else ''}{query}"
                    f"{''.join(notes)} |")
    rows.append("| (gRPC's health service) | GET /v1/health: each condition and why it does not "
                "hold |")
    rows += [f"| (by HTTP alone) | {verb.upper()} {path}: {operation['summary']} |"
             for (verb, path), operation in OWN.items() if operation is not HEALTH]
    with open(PAGE, encoding="utf-8") as f:
        before, rest = f.read().split(BEGIN)
    return before + BEGIN + "\n".join(rows) + "\n" + END + rest.split(END)[1]


def reached(paths, schemas, more):
    """The schemas that paths use, directly or by others, and those of `more`."""
    found, left = {}, {*more, *re.findall(r"#/components/schemas/(\w+)", json.dumps(paths))}
    while left:
        name = left.pop()
        found[name] = schemas[name]
        used = re.findall(r"#/components/schemas/(\w+)", json.dumps(schemas[name]))
        left |= set(used) - set(found)
    return found


def openapi(maker, routes):
    paths = {}
    for name, route in routes:
        paths.setdefault(shown_path(route), {})[route.method.lower()] = maker.operation(name, route)
    for (verb, path), operation in OWN.items():
        paths.setdefault(path, {})[verb] = operation
    maker.schemas["Status"] = {
        "type": "object", "description": "google.rpc.Status; proto/API.md lists the reasons.",
        "properties": {"code": {"type": "integer", "format": "int32"},
                       "message": {"type": "string"},
                       "details": {"type": "array", "items": {
                           "type": "object", "required": ["@type"],
                           "properties": {"@type": {"type": "string"}}}}}}
    # The events of a stream are of a schema though the stream is text.
    schemas = reached(paths, maker.schemas, {"Status", "JobEvent"})
    return {
        "openapi": "3.0.3",
        "info": {"title": "npuc", "version": "v1",
                 "description": "The service of npuc.v1 by HTTP and proto3 JSON: proto/HTTP.md."},
        "servers": [{"url": "/", "description": "The server of --web that has this file."}],
        "security": [{"bearer": []}, {"session": []}, {}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "__Host-npuc_PORT",
                            "description": "Of POST /v1/session; with what changes something, "
                                           "Origin or Sec-Fetch-Site must name the own page."}},
            "responses": {
                **{name: failure(what)
                   for _, name, of, what in ANSWERS},
                "Error": failure("An error; Retry-After is there where a retry is invited.")},
            "schemas": dict(sorted(schemas.items()))}}


def main():
    files, extension = descriptors()
    maker = Maker(files)
    routes = routes_of(maker, extension)
    made = {OPENAPI: json.dumps(openapi(maker, routes), indent=1, ensure_ascii=False) + "\n",
            PAGE: page(maker, routes)}
    stale = []
    for path, text in made.items():
        with open(path, encoding="utf-8") as f:
            if f.read() != text:
                stale.append(os.path.relpath(path, os.path.dirname(HERE)))
        if "--check" not in sys.argv[1:]:
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
    if "--check" in sys.argv[1:] and stale:
        print(f"{' and '.join(stale)} not fresh: run proto/make_openapi.py")
        return 1
    print(f"openapi.json and HTTP.md are fresh: {len(routes)} paths")
    return 0


if __name__ == "__main__":
    sys.exit(main())
