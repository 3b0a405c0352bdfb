#ifndef NPUC_SERVER_OBSERVE_WATCHDOG_H_
#define NPUC_SERVER_OBSERVE_WATCHDOG_H_

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "compiler_core/base/mutex.h"

namespace npuc::observe {

// Knows what of the daemon is stuck: what is under way for longer than it may be (Enter), and what
// should come round again and does not (Beat). Whoever looks must do so on a thread of its own that
// waits for nothing. Thread-safe.
class Watchdog {
 public:
  // `steady_now` never falls and does not jump.
  explicit Watchdog(std::function<absl::Time()> steady_now) : now_(std::move(steady_now)) {}
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Something that is under way while this lives. Must not outlive the watchdog.
  class Scope {
   public:
    Scope() = default;
    ~Scope() { End(); }
    Scope(Scope&& other) noexcept { *this = std::move(other); }
    Scope& operator=(Scope&& other) noexcept;
    void End();

   private:
    friend class Watchdog;
    Watchdog* dog_ = nullptr;
    uint64_t id_ = 0;
  };
  // `part` is stuck once the scope is older than `patience`.
  Scope Enter(absl::string_view part, absl::Duration patience);

  // `part` is stuck once its last beat is older than `patience`, that of the last beat.
  void Beat(absl::string_view part, absl::Duration patience);
  // It will not beat any more.
  void Retire(absl::string_view part);

  struct Stuck {
    std::string part;
    absl::Duration since;  // how long its longest is under way, or silent
  };
  // One entry a part, in order of their names.
  std::vector<Stuck> Look() const;

 private:
  struct Watched {
    std::string part;
    absl::Time begin;
    absl::Duration patience;
  };

  const std::function<absl::Time()> now_;
  mutable Mutex mutex_;
  uint64_t next_id_ NPUC_GUARDED_BY(mutex_) = 1;
  std::map<uint64_t, Watched> scopes_ NPUC_GUARDED_BY(mutex_);
  std::map<std::string, Watched, std::less<>> beats_ NPUC_GUARDED_BY(mutex_);
};

}  // namespace npuc::observe

#endif  // NPUC_SERVER_OBSERVE_WATCHDOG_H_
