#ifndef NPUC_SERVER_EXECUTOR_USAGE_BOOK_H_
#define NPUC_SERVER_EXECUTOR_USAGE_BOOK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "compiler_core/base/mutex.h"
#include "server/observe/metrics.h"

namespace npuc::executor {

// Days that are kept; the oldest go.
inline constexpr size_t kMaxUsageDays = 400;

// The use of the service by one tenant on one day.
struct Usage {
  int64_t jobs = 0;  // that ended, cache hits among them
  int64_t succeeded = 0;
  int64_t failed = 0;
  int64_t cache_hits = 0;
  int64_t processor_micros = 0;
  int64_t uploaded_bytes = 0;
  int64_t downloaded_bytes = 0;

  Usage& operator+=(const Usage& other);
  friend bool operator==(const Usage&, const Usage&) = default;
};

// Sums by day (UTC) and tenant, in a file that Save writes anew: a crash takes what came since.
// Thread-safe.
class UsageBook {
 public:
  // Reads the file. FAILED_PRECONDITION: it is damaged. `metrics`, which must outlive the book,
  // count what comes from now on.
  static absl::StatusOr<std::unique_ptr<UsageBook>> Open(std::string path,
                                                         std::function<absl::Time()> now,
                                                         observe::Metrics* metrics);

  void Add(absl::string_view tenant, const Usage& usage);
  // Where something came since the last time.
  absl::Status Save();

  struct Row {
    std::string day;  // "2026-11-25"
    std::string tenant;
    Usage usage;
  };
  // From a day to a day, both included ("": no bound), of one tenant or ("") all; by day, then
  // tenant.
  std::vector<Row> Find(absl::string_view from_day, absl::string_view to_day,
                        absl::string_view tenant);

 private:
  UsageBook(std::string path, std::function<absl::Time()> now, observe::Metrics* metrics)
      : path_(std::move(path)), now_(std::move(now)), metrics_(*metrics) {}
  absl::Status Read() NPUC_REQUIRES(mutex_);
  void Forget() NPUC_REQUIRES(mutex_);

  const std::string path_;
  const std::function<absl::Time()> now_;
  observe::Metrics& metrics_;
  Mutex mutex_;
  std::map<std::string, std::map<std::string, Usage>> days_ NPUC_GUARDED_BY(mutex_);
  bool is_changed_ NPUC_GUARDED_BY(mutex_) = false;
};

}  // namespace npuc::executor

#endif  // NPUC_SERVER_EXECUTOR_USAGE_BOOK_H_
