#ifndef NPUC_SERVER_BASE_USAGE_STORE_H_
#define NPUC_SERVER_BASE_USAGE_STORE_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace npuc::base {

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
// The numbers of a Usage, in the order in which they are kept.
inline constexpr std::array<int64_t Usage::*, 7> kUsageColumns = {&Usage::jobs,
                                                                  &Usage::succeeded,
                                                                  &Usage::failed,
                                                                  &Usage::cache_hits,
                                                                  &Usage::processor_micros,
                                                                  &Usage::uploaded_bytes,
                                                                  &Usage::downloaded_bytes};

// By day (UTC, "2026-11-25"), then by tenant.
using UsageDays = std::map<std::string, std::map<std::string, Usage>>;

// From a day to a day, both included ("": no bound), of one tenant or ("") of all.
struct UsageFilter {
  std::string from_day = {};
  std::string to_day = {};
  std::string tenant = {};

  bool Takes(absl::string_view day, absl::string_view of_tenant) const;
};

// Where the sums of a book outlive the process. Of a cluster each process has sums of its own,
// which it alone writes. Thread-safe.
class UsageStore {
 public:
  virtual ~UsageStore() = default;
  // The sums that the book goes on from. FAILED_PRECONDITION: they are damaged.
  virtual absl::StatusOr<UsageDays> Read() = 0;
  // `days`: all sums of the book; `changed`: those of them that have changed since they were last
  // written.
  virtual absl::Status Write(const UsageDays& days, const UsageDays& changed) = 0;
  // The sums of other books.
  virtual absl::StatusOr<UsageDays> ReadOthers(const UsageFilter& filter) = 0;
};

// In a file, which nobody else writes; without a sync, so a power cut may take the last sums.
class FileUsageStore : public UsageStore {
 public:
  explicit FileUsageStore(std::string path) : path_(std::move(path)) {}
  absl::StatusOr<UsageDays> Read() override;
  absl::Status Write(const UsageDays& days, const UsageDays& changed) override;
  absl::StatusOr<UsageDays> ReadOthers(const UsageFilter&) override { return UsageDays(); }

 private:
  const std::string path_;
};

}  // namespace npuc::base

#endif  // NPUC_SERVER_BASE_USAGE_STORE_H_
