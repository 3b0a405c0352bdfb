#ifndef NPUC_SERVER_EXECUTOR_USAGE_BOOK_H_
#define NPUC_SERVER_EXECUTOR_USAGE_BOOK_H_

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "compiler_core/base/mutex.h"
#include "server/base/usage_store.h"
#include "server/observe/metrics.h"

namespace npuc::executor {

// Sums what tenants use, by day. A crash takes what came since the last Save. Thread-safe.
class UsageBook {
 public:
  // Reads what the store has. `metrics`, which must outlive the book, count what comes from now on.
  static absl::StatusOr<std::unique_ptr<UsageBook>> Open(std::unique_ptr<base::UsageStore> store,
                                                         std::function<absl::Time()> now,
                                                         observe::Metrics* metrics);

  void Add(absl::string_view tenant, const base::Usage& usage);
  // Writes where something came since the last time. What could not be written is written next
  // time. One thread at a time.
  absl::Status Save();

  // Sums of this book and of all others. UNAVAILABLE: those of the others cannot be read.
  absl::StatusOr<base::UsageDays> Find(const base::UsageFilter& filter);

 private:
  UsageBook(std::unique_ptr<base::UsageStore> store, std::function<absl::Time()> now,
            observe::Metrics* metrics, base::UsageDays days)
      : store_(std::move(store)),
        now_(std::move(now)),
        metrics_(*metrics),
        days_(std::move(days)) {}
  void Forget() NPUC_REQUIRES(mutex_);

  const std::unique_ptr<base::UsageStore> store_;
  const std::function<absl::Time()> now_;
  observe::Metrics& metrics_;
  Mutex mutex_;
  base::UsageDays days_ NPUC_GUARDED_BY(mutex_);
  base::UsageDays changed_ NPUC_GUARDED_BY(mutex_);  // its sums are those of days_
};

}  // namespace npuc::executor

#endif  // NPUC_SERVER_EXECUTOR_USAGE_BOOK_H_
