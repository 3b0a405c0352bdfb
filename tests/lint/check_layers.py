#!/usr/bin/python3
"""Checks which folder includes which by the tables below, and where libraries may show.

Prints each forbidden include; exit 1 if there is one. `--explain FOLDER` prints what a folder may
include.
"""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tree import Problem, is_cpp, project_files, read  # noqa: E402

CORE = "compiler_core/"
BASE = [CORE + "base/"]
TARGET = BASE + [CORE + "target/"]
IR = TARGET + [CORE + "ir/"]
OPS = IR + [CORE + "ops/"]
# What the service and the tools see of the compiler: the one function and its types.
CONFIG_INTERFACE = BASE + [CORE + "config/config.h"]
PIPELINE_INTERFACE = CONFIG_INTERFACE + [CORE + "pipeline/artifact_check.h",
                                         CORE + "pipeline/compile.h",
                                         CORE + "pipeline/inspect_files.h"]

# Folder -> which project includes are allowed; a folder's own headers always are. The longest
# matching folder counts.
ALLOWED = {
    CORE + "base/": BASE,
    CORE + "target/": TARGET,
    CORE + "ir/": IR,
    CORE + "ops/": OPS,
    # A model may state how its boxes are decoded.
    CORE + "frontends/": OPS + [CORE + "frontends/common/", CORE + "boxes/box_settings.h"],
    CORE + "passes/": OPS,
    CORE + "quant/": OPS,
    CORE + "lowering/": OPS,
    CORE + "memplan/": IR,
    CORE + "emit/": IR,
    # The simulator runs what emit wrote: one decoder, one CompiledModel (sim/README.md).
    CORE + "sim/": IR + [CORE + "emit/"],
    CORE + "report/": IR,
    CORE + "boxes/": IR,
    # The config knows what the metrics are called and what a model states, no more of the compile.
    CORE + "config/": IR + [CORE + "quant/metrics/metrics.h",
                            CORE + "frontends/common/outline.h"],
    # One family of cores each, from a graph to a CompiledUnit; families never include each other.
    CORE + "backends/": [CORE + folder for folder in (
        "base/", "target/", "ir/", "ops/", "passes/", "quant/", "lowering/", "memplan/", "emit/",
        "sim/", "report/", "config/quant_config.h", "pipeline/compile.h", "backends/stages.h",
        "backends/selection.h", "backends/states.h", "backends/dead_channels.h",
        "backends/addresses.h", "backends/report_data.h",
        "backends/compiled_unit.h")],
    CORE + "pipeline/": [CORE],
    CORE + "tools/": [CORE],
    "proto/": [],
    "cache/": BASE + ["cache/"],
    "server/": PIPELINE_INTERFACE + ["cache/", "server/"],
    # The server's one look at the core descriptions, turned into plain data for the wire.
    "server/catalog/": TARGET + ["server/"],
    # The program that loads users' libraries, by the C header that they are compiled with.
    "server/native/": BASE + ["cache/", "server/worker/", "client/operator/"],
    # Which files a config names must be read as the compiler reads it.
    "client/": CONFIG_INTERFACE + ["client/"],
    "tests/": [CORE, "cache/", "server/", "client/"],
}

# Layers inside the server, as folder -> includes denied although ALLOWED has them.
DENIED = {
    CORE + "pipeline/": [CORE + "tools/"],
    "server/observe/": ["server/rpc/", "server/http/", "server/jobs/", "server/executor/"],
    "server/jobs/": ["server/rpc/", "server/http/", "server/worker/", "server/executor/"],
    "server/scheduler/": ["server/rpc/", "server/http/", "server/worker/", "server/executor/"],
    "server/pg/": ["server/rpc/", "server/http/", "server/worker/", "server/executor/"],
    "server/worker/": ["server/rpc/", "server/http/", "server/scheduler/"],
    "server/executor/": ["server/api/", "server/rpc/", "server/http/"],
    "server/api/": ["server/rpc/", "server/http/"],
    "server/http/": ["server/rpc/"],
    "server/objects/": ["server/rpc/", "server/http/", "server/jobs/", "server/executor/"],
    "server/http_client/": ["server/rpc/", "server/http/", "server/jobs/", "server/executor/"],
    "server/oidc/": ["server/rpc/", "server/http/", "server/api/", "server/executor/"],
}

# Library headers: pattern of the include -> (patterns of the files that may, why).
TESTS = r".*(_test|_bench|/test_util|_test_util)\.(cc|h)$"
LIBRARIES = [
    (r"^(grpc|grpcpp|grpc\+\+)/|\.grpc\.pb\.h$",
     [r"server/rpc/", r"server/http/", r"server/main\.cc$", r"client/", r"tests/bench/",
      r"tests/fault/"],
     "gRPC is the wire's; the code behind it takes plain types"),
    (r"^(npuc/v1|google/rpc)/.*\.pb\.h$",
     [r"server/(api|rpc|http)/", r"server/main\.cc$", r"client/", r"tests/bench/",
      r"tests/fault/", r"proto/"],
     "the service's wire types stay in server/api, rpc and http and in client"),
    (r"^npuc/store/", [r"server/jobs/job_codec(_test)?\.cc$"],
     "stored records are plain structs but for their codec"),
    (r"^npuc/error/", [r"server/jobs/service_error\.cc$"],
     "the details of errors are server/jobs/service_error.h"),
    (r"^npuc/worker/", [r"server/worker/protocol\.cc$"],
     "the worker's messages are server/worker/protocol.h"),
    (r"^flatbuffers/|npuc_tflite_generated\.h$", [r"compiler_core/frontends/tflite/[^/]*\.cc$"],
     "FlatBuffers are the TFLite front end's .cc files'"),
    (r"\.pb\.h$|^google/protobuf/",
     [r"compiler_core/frontends/[a-z0-9_]+/[^/]*\.cc$", r"server/(api|rpc|http)/",
      r"server/jobs/job_codec(_test)?\.cc$", r"server/main\.cc$", r"client/", r"tests/bench/",
      r"tests/fault/"],
     "generated code of model formats stays in its front end's .cc files"),
    (r"^rocksdb/",
     [r"cache/[^/]*\.cc$", r"server/jobs/[^/]*rocksdb[^/]*\.cc$", r"tests/bench/", r"tests/fault/"],
     "RocksDB is behind JobStore and the artifact store"),
    (r"^libpq-fe\.h$", [r"server/pg/connection\.cc$"],
     "PostgreSQL's library is server/pg/connection.h"),
    (r"^yaml-cpp/",
     [r"compiler_core/(config|pipeline|target|quant)/[^/]*\.cc$",
      r"compiler_core/base/yaml[^/]*\.cc$"],
     "YAML is read in few places and never named in a header"),
    (r"^openssl/",
     [r"compiler_core/base/[^/]*\.cc$", r"server/rpc/", r"server/http/", r"server/oidc/flow\.cc$",
      r"server/objects/signature\.cc$", r"client/"],
     "digests are compiler_core/base/digest.h"),
    (r"^curl/", [r"server/http_client/http_client\.cc$"],
     "requests to others are server/http_client/http_client.h"),
    (r"^cjose/", [r"server/oidc/key_set\.cc$", r"server/oidc/oidc_test_util\.h$"],
     "signatures of tokens are server/oidc/key_set.h"),
    (r"^boost/", [r"server/http/http_(server|connection)\.(cc|h)$"],
     "Boost's headers cost seconds; HTTP is server/http/http_server.h"),
    (r"^httplib\.h$", [TESTS], "cpp-httplib is the tests' client"),
    (r"^prometheus/", [r"server/observe/prometheus_metrics\.cc$"],
     "metrics are server/observe/metrics.h"),
    (r"^jpeglib\.h$",
     [r"compiler_core/tools/picture\.cc$", r"compiler_core/tools/[^/]*_test\.cc$",
      r"compiler_core/quant/data/jpeg\.cc$"],
     "pictures are tools/picture.h and quant/data/picture_file.h"),
    (r"^seccomp\.h$", [r"server/worker/system_calls\.cc$"],
     "the workers' system calls are one list"),
    (r"^(mutex|shared_mutex|condition_variable)$",
     [r"compiler_core/base/mutex\.h$", TESTS, r"tests/", r"client/lib/fake_server\.h$"],
     "mutexes are compiler_core/base/mutex.h, whose use clang checks"),
    (r"^(gtest|gmock)/", [TESTS, r"tests/"], "GoogleTest is for tests"),
    (r"^benchmark/", [TESTS, r"tests/bench/"], "the benchmark library is for benchmarks"),
]

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)
_PROJECT = re.compile(r"^(compiler_core|cache|server|client|proto|tests)/")


def _longest(table, path):
    matching = [folder for folder in table if path.startswith(folder)]
    return max(matching, key=len) if matching else None


def _own_folder(path):
    """The folder whose headers a file always may include: the layer's, or the front end's own."""
    parts = path.split("/")
    families = (CORE + "frontends/", CORE + "backends/")
    depth = 3 if path.startswith(families) and len(parts) > 3 else 2
    if not path.startswith(CORE):
        depth = 2 if path.startswith("server/") and len(parts) > 2 else 1
    return "/".join(parts[:depth]) + "/" if len(parts) > depth else os.path.dirname(path) + "/"


def _check_project_include(path, include):
    layer = _longest(ALLOWED, path)
    if layer is None:
        return None
    if include.startswith(_own_folder(path)):
        return None
    denied = DENIED.get(_longest(DENIED, path) or "", [])
    if any(include.startswith(p) for p in denied):
        return f"{_longest(DENIED, path)} may not include {include}"
    if not any(include.startswith(p) for p in ALLOWED[layer]):
        return f"{layer} may not include {include}; it may include: " + (
            ", ".join(ALLOWED[layer]) or "nothing of the project")
    return None


def _check_library_include(path, include):
    for pattern, files, why in LIBRARIES:
        if re.search(pattern, include):
            if any(re.match(f, path) for f in files):
                return None
            return f"{include} may not be included here: {why}"
    return None


def check(root):
    problems = []
    for path in project_files(root):
        if not is_cpp(path):
            continue
        text = read(root, path)
        for match in _INCLUDE.finditer(text):
            include = match.group(2)
            wrong = _check_library_include(path, include)
            if wrong is None and _PROJECT.match(include) and not include.endswith(".pb.h"):
                wrong = _check_project_include(path, include)
            if wrong is None and match.group(1) == '"' and "/" not in include:
                wrong = f'"{include}" is not spelled from the root of the project'
            if wrong:
                line = text.count("\n", 0, match.start(2)) + 1
                problems.append(Problem("layers", path, line, wrong))
    return problems


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--explain":
        layer = _longest(ALLOWED, sys.argv[2].rstrip("/") + "/")
        print(f"{sys.argv[2]} ({layer}) may include:", *ALLOWED.get(layer, []), sep="\n  ")
        return 0
    from tree import ROOT
    problems = check(ROOT)
    for problem in problems:
        print(problem)
    print(f"layers: {len(problems)} forbidden includes")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
