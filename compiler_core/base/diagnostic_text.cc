#include "compiler_core/base/diagnostic_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace npuc {
namespace {

constexpr size_t kMaxTextBytes = 2 * kMaxNodeNameBytes;

bool AreAlike(const DiagnosticText& a, const DiagnosticText& b) {
  return a.severity == b.severity && !a.node.empty() && !b.node.empty() && a.id == b.id &&
         a.message == b.message && a.file == b.file && a.line == b.line && a.column == b.column &&
         (a.op == b.op || a.severity == Severity::kNote) && a.limit_source == b.limit_source &&
         a.fix == b.fix;
}

// ", and 3 more ('b', 'c', 'd')"; nothing where there are no others. A converter's names may have
// hundreds of bytes each: a note, after which nothing need be done, has few of them.
std::string OtherNodes(Severity severity, absl::Span<const DiagnosticText* const> others) {
  if (others.empty()) return "";
  std::string names;
  size_t named = 0;
  while (named < std::min<size_t>(others.size(), kMaxAlikeNodes)) {
    const std::string name = absl::StrCat("'", Printable(others[named]->node), "'");
    if (severity == Severity::kNote && names.size() + name.size() > kMaxNoteNameBytes) break;
    absl::StrAppend(&names, named == 0 ? "" : ", ", name);
    ++named;
  }
  const std::string count = absl::StrCat(", and ", others.size(), " more");
  if (named == 0) return count;
  return absl::StrCat(count, " (", names, named < others.size() ? ", ...)" : ")");
}

// `others`: those that share d's line.
std::string Render(const DiagnosticText& d, absl::Span<const DiagnosticText* const> others) {
  std::string out;
  if (!d.file.empty()) {
    absl::StrAppend(&out, Printable(d.file));
    if (d.line > 0) absl::StrAppend(&out, ":", d.line);
    if (d.line > 0 && d.column > 0) absl::StrAppend(&out, ":", d.column);
    absl::StrAppend(&out, ": ");
  }
  if (d.severity != Severity::kError) absl::StrAppend(&out, NameOf(d.severity), ": ");
  if (!d.node.empty()) absl::StrAppend(&out, "node '", Printable(d.node), "'");
  if (!d.op.empty()) absl::StrAppend(&out, d.node.empty() ? "(" : " (", Printable(d.op), ")");
  absl::StrAppend(&out, OtherNodes(d.severity, others));
  if (!d.node.empty() || !d.op.empty()) absl::StrAppend(&out, ": ");
  absl::StrAppend(&out, Printable(d.message, kMaxTextBytes));
  if (!d.limit_source.empty()) absl::StrAppend(&out, " (", Printable(d.limit_source), ")");
  if (!d.fix.empty()) absl::StrAppend(&out, "; ", Printable(d.fix, kMaxTextBytes));
  absl::StrAppend(&out, " [", Printable(d.id), "]");
  return out;
}

}  // namespace

DiagnosticText TextOf(const Diagnostic& d) {
  return {.severity = d.severity(),
          .id = IdOf(d.kind),
          .message = d.message,
          .file = d.file,
          .line = d.line,
          .column = d.column,
          .node = d.node,
          .op = d.op,
          .limit_source = d.limit_source,
          .fix = d.fix};
}

std::string RenderDiagnostic(const DiagnosticText& diagnostic) { return Render(diagnostic, {}); }

std::vector<DiagnosticLine> DiagnosticLines(absl::Span<const DiagnosticText> diagnostics) {
  std::vector<std::vector<const DiagnosticText*>> groups;
  for (const DiagnosticText& diagnostic : diagnostics) {
    const auto alike = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return AreAlike(*group.front(), diagnostic);
    });
    if (alike == groups.end()) {
      groups.push_back({&diagnostic});
    } else {
      alike->push_back(&diagnostic);
    }
  }
  std::vector<DiagnosticLine> lines;
  for (const std::vector<const DiagnosticText*>& group : groups) {
    lines.push_back(
        {group.front()->severity, Render(*group.front(), absl::MakeConstSpan(group).subspan(1))});
  }
  return lines;
}

}  // namespace npuc
