#include "client/npuc_remote/console.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/lib/service_error.h"
#include "client/npuc_remote/output.h"
#include "compiler_core/base/diagnostic.h"

namespace npuc::remote {
namespace {

// What went wrong, in a word. `answered`: the error is the service's own.
absl::string_view Verdict(const absl::Status& status, bool answered) {
  switch (ExitCodeOf(status)) {
    case kRefused:
      return answered ? "refused: " : "";
    case kUnreachable:
      return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)
                 ? "no answer from the server: "
             : answered ? "the server failed: "
                        : "";
    default:
      return "";
  }
}

std::string Shown(absl::string_view text) {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    lines.push_back(Printable(line, std::string::npos));
  }
  return absl::StrJoin(lines, "\n");
}

}  // namespace

void Console::Out(absl::string_view line) { progress_.Print(out_, Shown(line)); }

void Console::SetQuiet(bool quiet) {
  quiet_ = quiet;
  progress_.SetHidden(quiet);
}

void Console::Err(Tone tone, absl::string_view line) {
  if (quiet_ && tone == Tone::kPlain) return;
  if (!colours_ || tone == Tone::kPlain) return progress_.Print(err_, Shown(line));
  const char* const code = tone == Tone::kGood ? "32" : tone == Tone::kWarning ? "33" : "31";
  progress_.Print(err_, absl::StrCat("\x1b[", code, "m", Shown(line), "\x1b[0m"));
}

void Console::Err(const DiagnosticLine& line) {
  const Tone tone = line.severity == Severity::kNote      ? Tone::kPlain
                    : line.severity == Severity::kWarning ? Tone::kWarning
                                                          : Tone::kBad;
  Err(tone, line.text);
}

ExitCode Console::Fail(const absl::Status& status, bool json,
                       const std::vector<v1::Diagnostic>& diagnostics) {
  const ExitCode code = ExitCodeOf(status);
  const client::ServiceError details = client::ServiceErrorOf(status);
  for (const DiagnosticLine& line : LinesOf(diagnostics)) Err(line);
  for (const std::string& problem : details.problems) {
    if (problem != status.message()) Err(Tone::kBad, problem);  // a single one is the message
  }
  const bool answered = !details.reason.empty();
  if (diagnostics.empty()) {
    Err(Tone::kBad, absl::StrCat("npuc-remote: ", Verdict(status, answered), status.message(),
                                 answered ? absl::StrCat(" [", details.reason, "]") : ""));
  } else {
    // What the diagnostics said need not be said again.
    Err(Tone::kBad,
        absl::StrCat("npuc-remote: refused: ", diagnostics.size(), " problem(s), see above"));
  }
  if (details.reason == "NO_IDENTITY") {
    Err("npuc-remote: say who you are with --token-file FILE, NPUC_TOKEN, or --cert and --key");
  }
  if (json) Out(ErrorJson(status, diagnostics));
  return code;
}

}  // namespace npuc::remote
