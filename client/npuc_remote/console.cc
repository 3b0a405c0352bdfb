#include "client/npuc_remote/console.h"

#include "absl/strings/str_cat.h"
#include "client/lib/service_error.h"
#include "client/npuc_remote/output.h"

namespace npuc::remote {
namespace {

// What went wrong, in a word. `answered`: the error is the service's own.
absl::string_view Verdict(const absl::Status& status, bool answered) {
  switch (ExitCodeOf(status)) {
    case kRefused:
      return "refused: ";
    case kUnreachable:
      return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)
                 ? "no answer from the server: "
             : answered ? "the server failed: "
                        : "";
    default:
      return "";
  }
}

}  // namespace

ExitCode Console::Fail(const absl::Status& status, bool json,
                       const std::vector<v1::Diagnostic>& diagnostics) {
  const ExitCode code = ExitCodeOf(status);
  const client::ServiceError details = client::ServiceErrorOf(status);
  for (const v1::Diagnostic& diagnostic : diagnostics) Err(RenderDiagnostic(diagnostic));
  for (const std::string& problem : details.problems) Err(problem);
  const bool answered = !details.reason.empty();
  if (diagnostics.empty()) {
    Err(absl::StrCat("npuc-remote: ", Verdict(status, answered), status.message(),
                     answered ? absl::StrCat(" [", details.reason, "]") : ""));
  } else {
    // What the diagnostics said need not be said again.
    Err(absl::StrCat("npuc-remote: refused: ", diagnostics.size(), " problem(s), see above"));
  }
  if (json) Out(ErrorJson(status, diagnostics));
  return code;
}

}  // namespace npuc::remote
