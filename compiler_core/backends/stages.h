#ifndef NPUC_COMPILER_CORE_BACKENDS_STAGES_H_
#define NPUC_COMPILER_CORE_BACKENDS_STAGES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "compiler_core/pipeline/compile.h"

namespace npuc {

// The dull work between stages: cancellation, progress, the log, and turning a bare status of a
// stage into a diagnostic.
class Stages {
 public:
  Stages(CompileObserver& observer, Diagnostics& diagnostics, const std::string& model_name)
      : observer_(observer), diagnostics_(diagnostics), model_name_(model_name) {}

  absl::Status Begin(absl::string_view stage, double fraction) {
    if (observer_.IsCancelled()) {
      diagnostics_.Add({.kind = DiagnosticKind::kCompileCancelled,
                        .message = absl::StrCat("cancelled before stage ", stage),
                        .file = model_name_});
      return diagnostics_.ToStatus();
    }
    stage_ = std::string(stage);
    observer_.OnStage(stage, fraction);
    Log(absl::StrCat("stage ", stage));
    return absl::OkStatus();
  }

  void Log(absl::string_view line) {
    observer_.OnLog(line);
    absl::StrAppend(&log_, line, "\n");
  }

  // What a stage ends with: its own error where no diagnostic says more.
  absl::Status End(const absl::Status& status) {
    if (!status.ok() && !diagnostics_.has_errors()) {
      diagnostics_.Add({.kind = DiagnosticKind::kInternalError,
                        .message = absl::StrCat("stage ", stage_, ": ", status.message()),
                        .file = model_name_,
                        .fix = "report it with the model and the config"});
    }
    return diagnostics_.ToStatus();
  }

  bool IsCancelled() { return observer_.IsCancelled(); }
  std::string& log() { return log_; }

 private:
  CompileObserver& observer_;
  Diagnostics& diagnostics_;
  const std::string& model_name_;
  std::string stage_;
  std::string log_;
};

// Runs `expr` as stage `name`; leaves the function where it fails or errors were found.
#define STEP(lhs, name, fraction, expr)                                \
  RETURN_IF_ERROR(stages.Begin(name, fraction));                       \
  auto NPUC_CONCAT(step_, __LINE__) = (expr);                          \
  RETURN_IF_ERROR(stages.End(StatusOf(NPUC_CONCAT(step_, __LINE__)))); \
  lhs = std::move(NPUC_CONCAT(step_, __LINE__)).value()
// The same for a stage without a value.
#define CHECK_STEP(name, fraction, expr)           \
  do {                                             \
    RETURN_IF_ERROR(stages.Begin(name, fraction)); \
    RETURN_IF_ERROR(stages.End(expr));             \
  } while (false)

template <typename T>
absl::Status StatusOf(const absl::StatusOr<T>& value) {
  return value.status();
}

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BACKENDS_STAGES_H_
