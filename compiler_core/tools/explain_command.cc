#include "compiler_core/tools/explain_command.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/suggest.h"
#include "compiler_core/tools/diagnostics_output.h"
#include "nlohmann/json.hpp"

namespace npuc {

extern const char kDiagnosticsPage[];  // made from compiler_core/DIAGNOSTICS.md

namespace {

// The indented lines of the page's section about an id, with that indentation; empty where the page
// has no example of it.
std::string ExampleOf(absl::string_view id) {
  const absl::string_view page = kDiagnosticsPage;
  const size_t begin = page.find(absl::StrCat("### ", id, " "));
  if (begin == absl::string_view::npos) return "";
  const absl::string_view rest = page.substr(begin + 4);
  std::string example;
  for (const absl::string_view line : absl::StrSplit(rest.substr(0, rest.find("\n#")), '\n')) {
    if (absl::StartsWith(line, "    ")) absl::StrAppend(&example, line, "\n");
  }
  return example;
}

const DiagnosticKindInfo* Find(absl::string_view wanted) {
  const absl::string_view number = wanted;
  for (const DiagnosticKindInfo& info : AllDiagnosticKinds()) {
    const std::string id = IdOf(info.kind);
    if (absl::EqualsIgnoreCase(number, id) || number == absl::StripPrefix(id, "NPUC") ||
        absl::EqualsIgnoreCase(number, info.name)) {
      return &info;
    }
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<std::string> ExplainDiagnostic(absl::string_view wanted, bool json) {
  const DiagnosticKindInfo* const info = Find(wanted);
  if (info == nullptr) {
    std::vector<absl::string_view> names;
    std::vector<std::string> ids;
    for (const DiagnosticKindInfo& known : AllDiagnosticKinds()) ids.push_back(IdOf(known.kind));
    for (const DiagnosticKindInfo& known : AllDiagnosticKinds()) names.push_back(known.name);
    names.insert(names.end(), ids.begin(), ids.end());
    return absl::NotFoundError(
        absl::StrCat("no diagnostic '", Printable(wanted), "'; ",
                     DidYouMean(wanted, names, "its id is at the end of its line: NPUC1404")));
  }
  const std::string id = IdOf(info->kind);
  const std::string example = ExampleOf(id);
  if (json) {
    return absl::StrCat(DumpJson({{"id", id},
                                  {"name", std::string(info->name)},
                                  {"severity", std::string(NameOf(info->severity))},
                                  {"meaning", std::string(info->summary)},
                                  {"example", std::string(absl::StripAsciiWhitespace(example))}}),
                        "\n");
  }
  std::string text =
      absl::StrCat(id, " ", info->name, " (", NameOf(info->severity), ")\n", info->summary, "\n");
  if (info->severity == Severity::kError) absl::StrAppend(&text, "A compile ends with it.\n");
  if (!example.empty()) absl::StrAppend(&text, "Example:\n", example);
  return text;
}

}  // namespace npuc
