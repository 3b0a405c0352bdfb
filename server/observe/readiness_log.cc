#include "server/observe/readiness_log.h"

namespace npuc::observe {

void ReadinessLog::OnChange(absl::string_view condition, const absl::Status& status, bool serving) {
  {
    const MutexLock lock(mutex_);
    reminder_.Said(steady_now_());
  }
  if (status.ok()) return log_->Info("condition holds", {{"condition", condition}});
  const bool passes = !serving && absl::IsUnavailable(status);
  log_->Write(passes ? log::LogLevel::kInfo : log::LogLevel::kError, "not ready",
              {{"condition", condition}, {"why", status.message()}});
}

void ReadinessLog::Remind(const std::string& reason) {
  if (reason.empty()) return;
  {
    const MutexLock lock(mutex_);
    if (!reminder_.IsDue(steady_now_())) return;
  }
  log_->Error("still not ready", {{"why", reason}});
}

}  // namespace npuc::observe
