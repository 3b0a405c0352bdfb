#include "server/pg/sessions.h"

#include <random>
#include <utility>

#include "compiler_core/base/status.h"

namespace npuc::pg {
namespace {

// After a failed attempt to connect nobody tries for so long.
constexpr std::chrono::milliseconds kDownTime(250);

}  // namespace

int64_t RandomLife() {
  std::random_device random;
  return std::uniform_int_distribution<int64_t>(1, INT64_MAX)(random);
}

absl::StatusOr<Sessions::SessionPtr> Sessions::Take(bool& is_old) {
  {
    const MutexLock lock(mutex_);
    while (idle_.empty() && in_use_ >= max_open_) returned_.Wait(mutex_);
    if (!idle_.empty()) {
      is_old = true;
      SessionPtr session = std::move(idle_.back());
      idle_.pop_back();
      ++in_use_;
      return session;
    }
    if (std::chrono::steady_clock::now() < down_until_) return down_;
    ++in_use_;
  }
  is_old = false;
  absl::StatusOr<SessionPtr> session = Connection::Open(options_);
  const MutexLock lock(mutex_);
  if (session.ok()) {
    down_until_ = SteadyTime::min();
    return session;
  }
  down_ = session.status();
  down_until_ = std::chrono::steady_clock::now() + kDownTime;
  --in_use_;
  returned_.NotifyAll();
  return session.status();
}

void Sessions::Return(SessionPtr session) {
  {
    const MutexLock lock(mutex_);
    --in_use_;
    if (session->is_usable()) {
      idle_.push_back(std::move(session));
    } else {
      // The others are of the same server, which may be gone.
      idle_.clear();
    }
  }
  returned_.NotifyOne();
}

absl::StatusOr<Rows> Sessions::Run(Repeat repeat, const char* sql,
                                   absl::Span<const Value> parameters, absl::Duration limit) {
  constexpr int kMaxTries = 4;
  for (int tries = 1;; ++tries) {
    bool is_old = false;
    ASSIGN_OR_RETURN(SessionPtr session, Take(is_old));
    absl::StatusOr<Rows> rows = session->Run(sql, parameters, limit);
    Return(std::move(session));
    const Fault fault = FaultOf(rows.status());
    const bool again = fault == Fault::kRetry || (fault == Fault::kLost && is_old) ||
                       (fault == Fault::kUnknown && repeat == Repeat::kRepeatable && is_old);
    if (!again || tries == kMaxTries) return rows;
  }
}

}  // namespace npuc::pg
