#ifndef NPUC_SERVER_PG_SESSIONS_H_
#define NPUC_SERVER_PG_SESSIONS_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "compiler_core/base/mutex.h"
#include "server/pg/connection.h"

namespace npuc::pg {

// Sessions that many threads use in turn. Thread-safe.
class Sessions {
 public:
  static constexpr absl::Duration kLimit = absl::Seconds(5);

  // At most so many are in use at once; a further call waits for one.
  explicit Sessions(ConnectionOptions options, size_t max_open = 8)
      : options_(std::move(options)), max_open_(max_open) {}
  Sessions(const Sessions&) = delete;
  Sessions& operator=(const Sessions&) = delete;

  // kOnce: a statement whose answer is lost is not sent again. kRepeatable: to make it twice is to
  // make it once, so it is sent again on a new session, once.
  enum class Repeat { kOnce, kRepeatable };
  // While the server is away, calls fail at once: one of them in a while asks again.
  absl::StatusOr<Rows> Run(Repeat repeat, const char* sql, absl::Span<const Value> parameters,
                           absl::Duration limit = kLimit);
  absl::StatusOr<Rows> Read(const char* sql, absl::Span<const Value> parameters) {
    return Run(Repeat::kRepeatable, sql, parameters);
  }

  const ConnectionOptions& options() const { return options_; }

 private:
  using SessionPtr = std::unique_ptr<Connection>;
  // is_old: it may have died while nobody used it.
  absl::StatusOr<SessionPtr> Take(bool& is_old);
  void Return(SessionPtr session);

  const ConnectionOptions options_;
  const size_t max_open_;
  Mutex mutex_;
  CondVar returned_;
  std::vector<SessionPtr> idle_ NPUC_GUARDED_BY(mutex_);
  size_t in_use_ NPUC_GUARDED_BY(mutex_) = 0;
  absl::Status down_ NPUC_GUARDED_BY(mutex_) = absl::OkStatus();  // why no session could be made
  SteadyTime down_until_ NPUC_GUARDED_BY(mutex_) = SteadyTime::min();
};

// A number unlike that of any other process, for rows that it alone writes.
int64_t RandomLife();

// A time as a column of BIGINT holds it: microseconds since 1970, never negative.
inline int64_t ToMicros(absl::Time time) {
  if (time == absl::InfiniteFuture()) return std::numeric_limits<int64_t>::max();
  return std::max<int64_t>(0, absl::ToUnixMicros(time));
}

// These options for what may be lost with the database: it waits for no disk.
inline ConnectionOptions WithoutSync(ConnectionOptions options) {
  options.synchronous_commit = false;
  return options;
}

}  // namespace npuc::pg

#endif  // NPUC_SERVER_PG_SESSIONS_H_
