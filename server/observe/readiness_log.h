#ifndef NPUC_SERVER_OBSERVE_READINESS_LOG_H_
#define NPUC_SERVER_OBSERVE_READINESS_LOG_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "compiler_core/base/mutex.h"
#include "server/log/log.h"
#include "server/observe/reminder.h"

namespace npuc::observe {

// What the log says of readiness: a line when a condition ceases to hold, a reminder now and then
// while something does not, and a line when it holds again. Thread-safe.
class ReadinessLog {
 public:
  // `log` must outlive this.
  ReadinessLog(const log::Logger* log, std::function<absl::Time()> steady_now)
      : log_(log), steady_now_(std::move(steady_now)) {}

  // A change of Readiness. An ERROR where a condition does not hold, but for what passes by itself:
  // UNAVAILABLE while the daemon starts or stops, not `serving`.
  void OnChange(absl::string_view condition, const absl::Status& status, bool serving);
  // To be called often. reason: of Readiness; empty where it is ready.
  void Remind(const std::string& reason);

 private:
  const log::Logger* const log_;
  const std::function<absl::Time()> steady_now_;
  Mutex mutex_;
  Reminder reminder_ NPUC_GUARDED_BY(mutex_);
};

}  // namespace npuc::observe

#endif  // NPUC_SERVER_OBSERVE_READINESS_LOG_H_
