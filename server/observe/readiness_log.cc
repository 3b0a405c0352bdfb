#include "server/observe/readiness_log.h"

namespace npuc {

void ReadinessLog::OnChange(absl::string_view condition, const absl::Status& status, bool serving) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    next_reminder_ = steady_now_() + kReminderPeriod;
  }
  if (status.ok()) return log_->Info("condition holds", {{"condition", condition}});
  const bool passes = !serving && absl::IsUnavailable(status);
  log_->Write(passes ? LogLevel::kInfo : LogLevel::kError, "not ready",
              {{"condition", condition}, {"why", status.message()}});
}

void ReadinessLog::Remind(const std::string& reason) {
  if (reason.empty()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const absl::Time now = steady_now_();
    if (now < next_reminder_) return;
    next_reminder_ = now + kReminderPeriod;
  }
  log_->Error("still not ready", {{"why", reason}});
}

}  // namespace npuc
