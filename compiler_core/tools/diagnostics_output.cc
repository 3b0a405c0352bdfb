#include "compiler_core/tools/diagnostics_output.h"

#include <cstdio>
#include <vector>

#include "compiler_core/base/diagnostic_text.h"
#include "nlohmann/json.hpp"

namespace npuc {

void PrintDiagnostics(const Diagnostics& diagnostics, Severity least) {
  std::vector<DiagnosticText> texts;
  for (const Diagnostic& diagnostic : diagnostics.list()) {
    if (diagnostic.severity() >= least) texts.push_back(TextOf(diagnostic));
  }
  for (const DiagnosticLine& line : DiagnosticLines(texts)) {
    std::fprintf(stderr, "%s\n", line.text.c_str());
  }
  if (diagnostics.dropped_count() > 0) {
    std::fprintf(stderr, "%zu more are not shown\n", diagnostics.dropped_count());
  }
  if (diagnostics.error_count() > 1) {
    std::fprintf(stderr, "%zu errors\n", diagnostics.error_count());
  }
}

std::string DumpJson(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void PrintReport(nlohmann::ordered_json report, bool ok, const Diagnostics& diagnostics) {
  report["ok"] = ok;
  nlohmann::ordered_json& list = report["diagnostics"] = nlohmann::ordered_json::array();
  for (const Diagnostic& diagnostic : diagnostics.list()) {
    list.push_back({{"id", IdOf(diagnostic.kind)},
                    {"severity", std::string(NameOf(diagnostic.severity()))},
                    {"file", diagnostic.file},
                    {"line", diagnostic.line},
                    {"column", diagnostic.column},
                    {"node", diagnostic.node},
                    {"op", diagnostic.op},
                    {"message", diagnostic.message},
                    {"limit_source", diagnostic.limit_source},
                    {"fix", diagnostic.fix}});
  }
  std::printf("%s\n", DumpJson(report).c_str());
}

}  // namespace npuc
