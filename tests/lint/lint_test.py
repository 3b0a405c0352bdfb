#!/usr/bin/python3
"""Each lint rule must catch a bad snippet, and must leave a good one alone."""

import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_commits  # noqa: E402
import check_deploy  # noqa: E402
import check_layers  # noqa: E402
import check_names  # noqa: E402
import check_prose  # noqa: E402
import check_style  # noqa: E402
import run_tidy  # noqa: E402
from tree import blank_cpp  # noqa: E402


def tree_of(files):
    folder = tempfile.TemporaryDirectory()
    for path, text in files.items():
        full = os.path.join(folder.name, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as f:
            f.write(text)
    return folder


def layer_messages(path, *includes):
    with tree_of({path: "".join(f'#include "{i}"\n' for i in includes)}) as root:
        return [str(p) for p in check_layers.check(root)]


def style_rules(files):
    files = {"cmake/npuc.cmake": "", **files}
    with tree_of(files) as root:
        return [p.rule for p in check_style.check(root) if p.path != "cmake"]


class CountTest(unittest.TestCase):
    def test_a_failed_test_shows_the_end_of_its_output(self):
        case = ('<testsuite><testcase name="bad" status="fail"><failure message=""/><system-out>{}'
                '</system-out></testcase><testcase name="good" status="run"/></testsuite>')
        output = "\n".join(["begin", *["line"] * 50, "1 &lt; 2 is false"])
        program = os.path.join(os.path.dirname(__file__), "..", "count_tests.py")
        with tree_of({"e2e.junit.xml": case.format(output)}) as root:
            done = subprocess.run([sys.executable, program, os.path.join(root, "e2e.junit.xml")],
                                  stdout=subprocess.PIPE, universal_newlines=True, check=False)
        self.assertEqual(done.returncode, 1)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0], "failed: bad (e2e)")
        self.assertEqual(lines[-2:], ["   | 1 < 2 is false", "1 passed, 1 failed, 0 skipped"])
        self.assertNotIn("   | begin", lines)


class NamesTest(unittest.TestCase):
    def names(self, text):
        return [name for name, _ in check_names.definitions(text)]

    def test_finds_types_aliases_and_constants(self):
        self.assertEqual(self.names("""
            namespace npuc {
            struct A { int inner; struct Nested {}; };
            enum class B : int { kOne };
            template <typename T> class C final : public Base<T> {};
            using D = std::map<int, int>;
            inline constexpr size_t kE = 4096;
            inline constexpr std::array<int, 2> kF = {1, 2};
            inline constexpr char kG[] = "text";
            namespace jobs { class H; struct I {}; }
            int Function(const A& a, int b = 3);
            const A& Other();
            inline int Third() { const int local = 1; return local; }
            struct J Returned();
            }  // namespace npuc"""),
                         ["npuc::A", "npuc::B", "npuc::C", "npuc::D", "npuc::kE", "npuc::kF",
                          "npuc::kG", "npuc::jobs::I"])

    def test_one_name_in_two_headers_is_caught(self):
        text = "namespace npuc { struct A {}; }"
        with tree_of({"a/a.h": text, "b/b.h": text, "c/c.cc": text}) as root:
            self.assertEqual([str(p).split(":")[0] for p in check_names.check(root)], ["a/a.h"])

    def test_another_namespace_is_another_name(self):
        with tree_of({"a/a.h": "namespace npuc { struct A; struct B {}; }",
                      "b/b.h": "namespace npuc::b { struct B {}; } namespace npuc { struct A {}; }"
                      }) as root:
            self.assertEqual(check_names.check(root), [])

    def test_a_folder_has_its_namespace(self):
        with tree_of({"server/jobs/a.h": "namespace npuc {\nstruct A {};\n}",
                      "server/jobs/b.cc": "namespace npuc::cache {\nclass C;\n}",
                      "server/jobs/c.cc": "namespace npuc::cache {\nclass C;\n}\n"
                                          "namespace npuc::jobs {\n}",
                      "server/d.cc": "namespace npuc::daemon {\n}",
                      "cache/e.cc": "int main() {}",
                      "compiler_core/ir/f.cc": "namespace npuc {\n}"}) as root:
            self.assertEqual([str(p).split(":")[0] for p in check_names.check(root)],
                             ["server/jobs/a.h", "server/jobs/b.cc"])


class CommitsTest(unittest.TestCase):
    def problems(self, message):
        return check_commits.problems_of(message)

    def test_good_messages(self):
        for message in ("Refuse two Host headers\n\nRFC 9112 3.2 asks for it.",
                        "server/http: embed the page\n\nIt was read at each start.",
                        "Merge branch 'main'", "Speed up the lexer\n\nIt took 3 ms."):
            self.assertEqual(self.problems(message), [], message)

    def test_bad_messages(self):
        for message in ("Refuse two Host headers",  # no body
                        "Refuse " + "x" * 70 + "\n\nBody.", "Added a test\n\nBody.",
                        "Adds a test\n\nBody.", "Adding a test\n\nBody.", "The lexer\n\nBody.",
                        "Add a test.\n\nBody.", "Add a test\nBody without a blank line."):
            self.assertEqual(len(self.problems(message)), 1, message)


class ProseTest(unittest.TestCase):
    def found(self, files):
        with tree_of(files) as root:
            return sorted((name, path, line) for name, path, line, _ in check_prose.findings(root))

    def test_patterns_are_found_where_they_stand(self):
        self.assertEqual(self.found({
            "server/a.h": "// Of a job: its state.\nint a;  // What is told to it.\n",
            "server/b.md": "# Title\n\nWho waits, lets go.\n",
            "server/c.py": "# It needs them not.\nx = 1\n"}),
            [("bare-who", "server/b.md", 3), ("german-not", "server/c.py", 1),
             ("headline", "server/a.h", 1), ("headline", "server/a.h", 2),
             ("headline", "server/b.md", 3), ("let-go", "server/b.md", 3),
             ("told", "server/a.h", 2)])

    def test_plain_prose_is_left_alone(self):
        self.assertEqual(self.found({
            "server/a.h": "// Returns the job's state. Whoever waits is woken.\n"
                          "const char* k = \"Of course // What\";\n"}), [])

    def test_counts_may_only_fall(self):
        allowed = {"server": {"told": 2, "headline": 1}}
        grown, fallen = check_prose.compare({"server": {"told": 3}, "cache": {"told": 1}}, allowed)
        self.assertEqual(grown, [("cache", "told", 1, 0), ("server", "told", 3, 2)])
        self.assertEqual(fallen, [("server", "headline", 0, 1)])


class LayersTest(unittest.TestCase):
    def test_upward_includes_are_caught(self):
        for path, include in [
                ("compiler_core/base/a.cc", "compiler_core/target/core.h"),
                ("compiler_core/target/a.h", "compiler_core/ir/graph/graph.h"),
                ("compiler_core/ir/graph/a.cc", "compiler_core/ops/registry.h"),
                ("compiler_core/ops/add/add.cc", "compiler_core/lowering/lower.h"),
                ("compiler_core/passes/a.cc", "compiler_core/quant/a.h"),
                ("compiler_core/lowering/a.cc", "compiler_core/memplan/a.h"),
                ("compiler_core/memplan/a.cc", "compiler_core/ops/registry.h"),
                ("compiler_core/emit/a.cc", "compiler_core/sim/a.h"),
                ("compiler_core/sim/a.cc", "compiler_core/ops/registry.h"),
                ("compiler_core/pipeline/a.cc", "compiler_core/tools/a.h"),
                ("compiler_core/pipeline/a.cc", "server/jobs/a.h"),
                ("cache/a.cc", "server/jobs/a.h"),
                ("cache/a.cc", "compiler_core/ir/graph/graph.h"),
                ("server/jobs/a.cc", "compiler_core/ops/registry.h"),
                ("server/jobs/a.cc", "server/rpc/a.h"),
                ("server/scheduler/a.cc", "server/http/a.h"),
                ("client/a.cc", "server/jobs/a.h"),
                ("client/a.cc", "cache/keys.h"),
                ("compiler_core/frontends/onnx/a.cc", "compiler_core/frontends/tensorflow/a.h")]:
            self.assertEqual(len(layer_messages(path, include)), 1, (path, include))

    def test_downward_includes_are_fine(self):
        self.assertEqual(layer_messages("compiler_core/ops/add/add.cc", "compiler_core/ops/op.h",
                                        "compiler_core/ir/graph/graph.h", "vector"), [
                                            'compiler_core/ops/add/add.cc:3: "vector" is not '
                                            "spelled from the root of the project [layers]"])
        self.assertEqual(layer_messages("compiler_core/pipeline/compile.cc",
                                        "compiler_core/sim/sim.h"), [])
        self.assertEqual(layer_messages("server/executor/a.cc", "compiler_core/pipeline/compile.h",
                                        "cache/keys.h", "server/worker/pool.h"), [])
        self.assertEqual(layer_messages("compiler_core/frontends/tensorflow/import.cc",
                                        "compiler_core/frontends/tensorflow/reader.h"), [])

    def test_libraries_stay_where_they_belong(self):
        for path, include in [
                ("server/jobs/a.cc", "grpcpp/grpcpp.h"),
                ("compiler_core/pipeline/a.cc", "google/protobuf/message.h"),
                ("compiler_core/frontends/tensorflow/a.h", "npuc/fe/tf/graph.pb.h"),
                ("compiler_core/frontends/tensorflow/a.cc", "npuc/v1/compile.pb.h"),
                ("server/scheduler/a.cc", "npuc/v1/compile.pb.h"),
                ("server/auth/authenticator.h", "mutex"),
                ("server/worker/a.cc", "condition_variable"),
                ("server/worker/run.cc", "npuc/worker/v1/worker.pb.h"),
                ("server/jobs/job_service.cc", "npuc/store/v1/job.pb.h"),
                ("server/jobs/job_service.cc", "npuc/error/v1/error_details.pb.h"),
                ("cache/store.h", "rocksdb/db.h"),
                ("server/jobs/store.cc", "rocksdb/db.h"),
                ("compiler_core/config/config.h", "yaml-cpp/yaml.h"),
                ("compiler_core/base/a.cc", "gtest/gtest.h")]:
            self.assertEqual(len(layer_messages(path, include)), 1, (path, include))
        for path, include in [
                ("server/rpc/a.cc", "grpcpp/grpcpp.h"),
                ("compiler_core/frontends/tensorflow/a.cc", "npuc/fe/tf/graph.pb.h"),
                ("server/rpc/a.cc", "npuc/v1/compile.pb.h"),
                ("cache/store.cc", "rocksdb/db.h"),
                ("server/jobs/rocksdb_job_store.cc", "rocksdb/db.h"),
                ("compiler_core/pipeline/config.cc", "yaml-cpp/yaml.h"),
                ("compiler_core/base/a_test.cc", "gtest/gtest.h")]:
            self.assertEqual(layer_messages(path, include), [], (path, include))


LISTED = {"compiler_core/x/CMakeLists.txt": "npuc_cc_library(NAME x SRCS a.cc TESTS a_test.cc)",
          "compiler_core/x/README.md": "x"}


class StyleTest(unittest.TestCase):
    def rules(self, code, path="compiler_core/x/a.cc"):
        return style_rules({**LISTED, path: code})

    def test_banned_calls(self):
        for rule, code in [
                ("core-exit", "void F() { std::exit(1); }\n"),
                ("core-abort", "void F() { abort(); }\n"),
                ("core-getenv", 'auto* x = getenv("HOME");\n'),
                ("core-stdout", "void F() { std::cout << 1; }\n"),
                ("core-stdout", 'void F() { printf("x"); }\n'),
                ("core-stdout", 'void F() { std::fprintf(stderr, "x"); }\n'),
                ("core-clock", "auto t = absl::Now();\n"),
                ("random-device", "std::random_device d;\n"),
                ("own-allocator", "void* operator new(size_t n) { return Take(n); }\n"),
                ("own-allocator", "void operator delete[](void* p) noexcept { Give(p); }\n"),
                ("std-string-view", "std::string_view s;\n"),
                ("non-ascii", "int x;  // \u00b5s\n"),
                ("unfinished", "// TO" "DO: later\n")]:
            self.assertEqual(self.rules(code), [rule], code)
        self.assertEqual(self.rules("TEST(A, DISABLED_B) {}\n", "compiler_core/x/a_test.cc"),
                         ["disabled-test"])
        self.assertEqual(self.rules("void F() { std::this_thread::sleep_for(x); }\n",
                                    "compiler_core/x/a_test.cc"), ["test-sleep"])

    def test_good_code_is_left_alone(self):
        self.assertEqual(self.rules(textwrap.dedent("""\
            // Calls exit( in no case; printf( neither; operator new is the library's.
            void F() { snprintf(b, 3, "std::cout \u00b5"); OnExit(); absl::StrAppend(&s, x); }
            void G() { int64_t run_time(3); stage.time(0); }
            """)), [])

    def test_operators_are_not_compared_as_texts(self):
        def rules(code, path="compiler_core/x/a.cc"):
            return style_rules({**LISTED, check_style.OPERATORS: "NPUC_OP(Relu)\n", path: code})
        for code in ['if (node.op == "Relu") F();\n', 'if (rule.op() != "Relu") F();\n',
                     'bool b = def.name=="Relu";\n', 'if (NameOf(node.op) == "Relu") F();\n',
                     'if ("Relu" == node.op) F();\n']:
            self.assertEqual(rules(code), ["operator-text"], code)
        for code in ['if (node.op == Op::kRelu) F();\n', 'if (layer.type == "Relu") F();\n',
                     'if (key.name == "QUANT") F();\n', '// node.op == "Relu" was a text once.\n']:
            self.assertEqual(rules(code), [], code)
        self.assertNotIn("operator-text", rules('if (node.op() == "Relu") F();\n',
                                                "compiler_core/frontends/x/a.cc"))

    def test_lengths(self):
        body = "  x();\n"
        self.assertEqual(self.rules("void F() {\n" + body * 68 + "}\n"), [])
        self.assertEqual(self.rules("void F() {\n" + body * 69 + "}\n"), ["function-length"])
        self.assertEqual(self.rules("namespace a {\nvoid C::F(int x,\n   int y) const {\n"
                                    "  if (x) {\n" + body * 70 + "  }\n}\n}\n"),
                         ["function-length"])
        self.assertEqual(self.rules("A::A() : b_{1}, c_(2) {\n" + body * 70 + "}\n"),
                         ["function-length"])
        self.assertEqual(self.rules("namespace a {\nstruct S {\n" + "  int x;\n" * 90
                                    + "};\nconstexpr int kX[] = {\n" + "  1,\n" * 90 + "};\n}\n"),
                         [])
        table = "void F() {\n  Use({\n" + "      {1, {2}},\n" * 90 + "  });\n"
        self.assertEqual(self.rules(table + "}\n"), [])
        self.assertEqual(self.rules(table + body * 70 + "}\n"), ["function-length"])
        self.assertEqual(self.rules("void F() {\n  Use([&](int x) {\n" + body * 80 + "  });\n}\n"),
                         ["function-length"])
        self.assertEqual(self.rules("int x;\n" * 801), ["file-length"])
        page = "# Page\n\n" + "Line.\n" * 801
        self.assertEqual(style_rules({**LISTED, "compiler_core/x/A.md": page}), ["file-length"])
        page = page.replace("Line.", "Generated by `tests/x.py`.", 1)
        self.assertEqual(style_rules({**LISTED, "compiler_core/x/A.md": page}), [])
        self.assertEqual(style_rules({**LISTED, "compiler_core/x/a.py": "x" * 101}),
                         ["line-length"])

    def test_header_guard(self):
        good = ("// About.\n#ifndef NPUC_COMPILER_CORE_X_A_H_\n"
                "#define NPUC_COMPILER_CORE_X_A_H_\n#endif\n")
        self.assertEqual(self.rules(good, "compiler_core/x/a.h"), [])
        self.assertEqual(self.rules(good.replace("X_A", "A"), "compiler_core/x/a.h"),
                         ["header-guard"])

    def test_orphans_and_readmes(self):
        self.assertEqual(self.rules("", "compiler_core/x/b.cc"), ["orphan"])
        self.assertEqual(self.rules("", "compiler_core/x/aa.cc"), ["orphan"])
        protos = {"proto/npuc/v1/a.proto": "", "proto/npuc/v1/b.proto": "", "proto/README.md": "",
                  "proto/CMakeLists.txt": "set(files npuc/v1/a)"}
        self.assertEqual(style_rules(protos), ["orphan"])
        self.assertEqual(style_rules({"cache/CMakeLists.txt": "SRCS sub/a.cc",
                                      "cache/sub/a.cc": ""}), ["readme"])

    def test_metrics_are_set(self):
        files = {check_style.METRICS: 'NPUC_METRIC(kA, Gauge, "a", "", "an A")\n',
                 "server/observe/README.md": "", "server/x/README.md": "",
                 "server/x/CMakeLists.txt": "SRCS a.cc TESTS a_test.cc"}
        use = "void F(Metrics& m) { m.Set(Metric::kA, {}, 1); }\n"
        for path, wanted in (("server/x/a.cc", []), ("server/x/a_test.cc", ["unset-metric"])):
            self.assertEqual(style_rules({**files, path: use}), wanted)

    def test_ratchet_only_falls(self):
        problem = check_style.Problem("unfinished", "a", 1, "")
        self.assertEqual(check_style.ratchet([problem], {}), ({"unfinished": 1}, {}))
        self.assertEqual(check_style.ratchet([problem], {"unfinished": 1}), ({}, {}))
        self.assertEqual(check_style.ratchet([], {"unfinished": 1}), ({}, {"unfinished": 0}))

    def test_blanking(self):
        text = 'a("x\\"}", \'{\', R"(y"})") // {\n/* } */ b 1\'000'
        blanked = blank_cpp(text)
        self.assertEqual(len(blanked), len(text))
        self.assertEqual("".join(blanked.split()), "a(,,)b1'000")


class DeployTest(unittest.TestCase):
    FLAGS = {"--data-dir", "--cluster"}

    def pod(self, **changes):
        container = {"image": "npuc:1", "resources": {"requests": {"cpu": 1}},
                     "args": ["--data-dir=/d"], "readinessProbe": {}, "livenessProbe": {},
                     "startupProbe": {}, "volumeMounts": [{"name": "data"}]}
        spec = {"securityContext": {"runAsNonRoot": True}, "terminationGracePeriodSeconds": 60}
        container.update({k: v for k, v in changes.items() if k in container})
        spec.update({k: v for k, v in changes.items() if k in spec})
        return {"spec": {**spec, "containers": [container]}}

    def problems(self, **changes):
        return list(check_deploy.check_pod("x", self.pod(**changes), self.FLAGS, True))

    def test_pods(self):
        self.assertEqual(self.problems(), [])
        for change in ({"image": "npuc:latest"}, {"image": "npuc"}, {"resources": {}},
                       {"args": ["--datadir=/d"]}, {"securityContext": {}},
                       {"terminationGracePeriodSeconds": 5}, {"volumeMounts": [{"name": "tls"}]}):
            self.assertEqual(len(self.problems(**change)), 1, change)

    def test_selectors(self):
        self.assertTrue(check_deploy.selected({"matchLabels": {"app": "a"}}, {"app": "a"}))
        self.assertFalse(check_deploy.selected({"app": "a"}, {"app": "b"}))
        self.assertFalse(check_deploy.selected({}, {"app": "b"}))
        expression = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a"]}]}
        self.assertTrue(check_deploy.selected(expression, {"app": "a"}))
        self.assertFalse(check_deploy.selected(expression, {"app": "b"}))

    def test_compose(self):
        good = {"image": "npuc:local", "command": ["--data-dir=/var/lib/npuc/data"],
                "secrets": ["s"], "stop_grace_period": "40s", "healthcheck": {}}
        for change in ({"command": ["--data-dir=/var/lib/npuc/data", "--clustr=x"]},
                       {"secrets": ["t"]}, {"stop_grace_period": "10s"}):
            document = {"services": {"a": {**good, **change}}, "secrets": {"s": {}}}
            self.assertEqual(len(list(check_deploy.check_compose(document, self.FLAGS))), 1, change)
        document = {"services": {"a": good}, "secrets": {"s": {}}}
        self.assertEqual(list(check_deploy.check_compose(document, self.FLAGS)), [])


    def test_unit(self):
        good = ("StartLimitIntervalSec=0\nType=notify\nWatchdogSec=60\nRestart=on-failure\n"
                "RestartSec=5\nUMask=0077\nExecStart=/usr/local/bin/npucd --data-dir /d\n")
        self.assertEqual(list(check_deploy.check_unit(good, self.FLAGS)), [])
        for line in good.splitlines(True)[:-1]:
            self.assertEqual(len(list(check_deploy.check_unit(good.replace(line, ""),
                                                              self.FLAGS))), 1, line)
        bad = good.replace("--data-dir", "--data-dri")
        self.assertEqual(len(list(check_deploy.check_unit(bad, self.FLAGS))), 1)

    def test_expressions(self):
        metrics = {"npuc_jobs": {"tenant", "state"}, "npuc_a_seconds_bucket": {"le"}}

        def problems(expression):
            return list(check_deploy.check_expression("x", expression, metrics))

        self.assertEqual(problems('sum by (tenant) (npuc_jobs{state="queued",instance=~"a"})'), [])
        for wrong in ("npuc_job > 1", 'npuc_jobs{stage="x"}', "sum by (core) (npuc_jobs)",
                      "up == 0", "sum(npuc_jobs", "npuc_a_seconds > 1"):
            self.assertTrue(problems(wrong), wrong)
        rule = {"alert": "A", "expr": "npuc_jobs > 1", "annotations": {"summary": "s"}}
        for rules, count in (([rule], 0), ([rule, rule], 1), ([{**rule, "annotations": {}}], 1)):
            found = list(check_deploy.check_alerts({"groups": [{"rules": rules}]}, metrics))
            self.assertEqual(len(found), count, rules)


class TidyKeyTest(unittest.TestCase):
    def test_key_follows_headers(self):
        def key(header, command="clang++ a.cc"):
            with tree_of({"a.cc": '#include "b.h"\n', "b.h": '#include "c.h"\n',
                          "c.h": header}) as root:
                entry = {"directory": root, "file": os.path.join(root, "a.cc"), "command": command}
                digests = run_tidy.Headers([root]).reached(entry["file"])
                self.assertEqual(len(digests), 3)
                return [d for _, d in digests]
        self.assertEqual(key("int x;"), key("int x;"))
        self.assertNotEqual(key("int x;"), key("int y;"))


if __name__ == "__main__":
    unittest.main()
