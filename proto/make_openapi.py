#!/usr/bin/python3
"""Makes openapi.json from the .proto files and the table of paths below.

  make_openapi.py [--check]

The schemas, with their comments, come from protoc's descriptors; the paths are those of
server/http/routes.cc, and http_api of the end-to-end tests calls each against a real npucd.
`--check` fails where openapi.json is not what would be made.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

from google.protobuf import descriptor_pb2 as pb

HERE = os.path.dirname(os.path.abspath(__file__))
OUTPUT = os.path.join(HERE, "openapi.json")
FILES = ["npuc/v1/blob.proto", "npuc/v1/compile.proto", "npuc/v1/admin.proto",
         "npuc/v1/server_info.proto"]
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
# rpc, verb, path, what the body is, what the answer is ("" : the rpc's own message as JSON), fields
# of the query
PATHS = [
    ("CreateCompileJob", "post", "/v1/jobs", "json", "", []),
    ("ListCompileJobs", "get", "/v1/jobs", None, "",
     ["page_size", "page_token", "states", "cores", "frameworks", "tenants", "labels", "text",
      "created_from", "created_before", "mine", "order", "reverse", "with_totals"]),
    ("GetCompileJob", "get", "/v1/jobs/{jobId}", None, "", []),
    ("CancelCompileJob", "post", "/v1/jobs/{jobId}:cancel", "json", "", []),
    ("WatchCompileJob", "get", "/v1/jobs/{jobId}/events", None, "text/event-stream",
     ["from_seq"]),
    ("DownloadArtifact", "get", "/v1/jobs/{jobId}/artifacts/{artifactName}", None,
     "application/octet-stream", ["offset"]),
    ("InspectModel", "post", "/v1/models:inspect", "json", "", []),
    ("FindMissingBlobs", "post", "/v1/blobs:findMissing", "json", "", []),
    ("QueryUpload", "get", "/v1/blobs/{sha256}", None, "", ["size_bytes"]),
    ("UploadBlob", "patch", "/v1/blobs/{sha256}", "bytes", "", ["size_bytes", "offset"]),
    ("GetServerInfo", "get", "/v1/server", None, "", []),
    ("GetServerInfo", "get", "/v1/cores", None, "", []),
    ("GetCaller", "get", "/v1/caller", None, "", []),
    ("SetDispatch", "post", "/v1/admin/dispatch", "json", "", []),
    ("CancelJobs", "post", "/v1/admin/jobs:cancel", "json", "", []),
    ("RequeueJobs", "post", "/v1/admin/jobs:requeue", "json", "", []),
    ("GetUsage", "get", "/v1/usage", None, "", ["from_day", "to_day", "tenant"]),
    ("ListTenants", "get", "/v1/admin/tenants", None, "", []),
    ("ListOperators", "get", "/v1/ops", None, "", ["core", "framework"]),
]
# What no rpc has: gRPC's own health service tells whether, not why.
HEALTH = {
    "operationId": "GetHealth",
    "summary": "Whether the server takes work: each condition is `ok`, or the reason why not.",
    "responses": {
        "200": {"description": "OK", "content": {"application/json": {"schema": {
            "type": "object", "required": ["ready", "conditions"], "additionalProperties": False,
            "properties": {
                "ready": {"type": "boolean"},
                "conditions": {"type": "object", "additionalProperties": {"type": "string"}}}}}}},
        "default": {"$ref": "#/components/responses/Error"}}}
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

    def operation(self, rpc_name, path, body, answer, query):
        rpc, comment = self.rpcs[rpc_name]
        request = rpc.input_type.split(".")[-1]
        response = rpc.output_type.split(".")[-1]
        parameters = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
                      for name in re.findall(r"\{(\w+)\}", path)]
        for name in query:
            schema = self.fields.get((request, name)) or self.fields[("BlobDigest", name)]
            parameters.append({"name": camel(name), "in": "query",
                               "required": name == "size_bytes", "schema": schema})
        if rpc_name == "WatchCompileJob":
            parameters.append({"name": "Last-Event-ID", "in": "header",
                               "schema": {"type": "string", "format": "int64"}})
        schema = {"$ref": "#/components/schemas/" + response}
        content = {answer: {"schema": {"type": "string"}}} if answer else {
            "application/json": {"schema": schema}}
        operation = {
            "operationId": rpc_name if path != "/v1/cores" else "ListCores",
            "summary": comment.split(". ")[0].rstrip(".") + ".",
            "description": " ".join(filter(None, [comment, NOTES.get(path, "")])),
            "parameters": parameters,
            "responses": {"200": {"description": "OK", "content": content},
                          "default": {"$ref": "#/components/responses/Error"}}}
        if body == "json":
            operation["requestBody"] = {"required": True, "content": {"application/json": {
                "schema": {"$ref": "#/components/schemas/" + request}}}}
        if body == "bytes":
            operation["requestBody"] = {"required": True, "content": {"application/octet-stream": {
                "schema": {"type": "string", "format": "binary", "maxLength": 1 << 20}}}}
        if not parameters:
            del operation["parameters"]
        return operation


def descriptors():
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "set")
        subprocess.run(["protoc", f"-I{HERE}", "--include_source_info", "-o", out, *FILES],
                       check=True)
        with open(out, "rb") as f:
            return pb.FileDescriptorSet.FromString(f.read()).file


def make():
    maker = Maker(descriptors())
    paths = {}
    for rpc, verb, path, body, answer, query in PATHS:
        paths.setdefault(path, {})[verb] = maker.operation(rpc, path, body, answer, query)
    without = set(maker.rpcs) - {rpc for rpc, *_ in PATHS}
    if without:
        sys.exit(f"no path for {', '.join(sorted(without))}: add it to PATHS, routes.cc and "
                 "http_conformance_test.cc")
    paths["/v1/health"] = {"get": HEALTH}
    maker.schemas["Status"] = {
        "type": "object", "description": "google.rpc.Status; proto/API.md lists the reasons.",
        "properties": {"code": {"type": "integer", "format": "int32"},
                       "message": {"type": "string"},
                       "details": {"type": "array", "items": {
                           "type": "object", "required": ["@type"],
                           "properties": {"@type": {"type": "string"}}}}}}
    return {
        "openapi": "3.0.3",
        "info": {"title": "npuc", "version": "v1",
                 "description": "The service of npuc.v1 by HTTP and proto3 JSON: proto/HTTP.md."},
        "security": [{"bearer": []}, {}],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "responses": {"Error": {
                "description": "An error; Retry-After is there where a retry is invited.",
                "content": {"application/json": {"schema": {
                    "$ref": "#/components/schemas/Status"}}}}},
            "schemas": dict(sorted(maker.schemas.items()))}}


def main():
    text = json.dumps(make(), indent=1, ensure_ascii=False) + "\n"
    if "--check" in sys.argv[1:]:
        with open(OUTPUT, encoding="utf-8") as f:
            if f.read() != text:
                print("proto/openapi.json is not fresh: run proto/make_openapi.py")
                return 1
        print(f"openapi.json is fresh: {len(PATHS)} calls")
        return 0
    with open(OUTPUT, "w", encoding="utf-8") as f:
        f.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
