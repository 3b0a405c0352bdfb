#ifndef NPUC_SERVER_OBSERVE_READINESS_H_
#define NPUC_SERVER_OBSERVE_READINESS_H_

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/mutex.h"

namespace npuc::observe {

// Whether the daemon should be sent work: conditions by name, each holding or with the reason why
// not. Thread-safe.
class Readiness {
 public:
  // `on_change` is told of each condition that begins or ceases to hold, or does not hold for a
  // reason of another kind, on the thread that set it, without a lock held.
  using Listener = std::function<void(absl::string_view condition, const absl::Status& status)>;
  explicit Readiness(Listener on_change) : on_change_(std::move(on_change)) {}

  void Set(absl::string_view condition, const absl::Status& status);

  // True where every condition that was ever set holds, and there is one.
  bool ready() const;
  // Each condition, and why it does not hold.
  std::map<std::string, absl::Status> Conditions() const;
  // {"ready":false,"conditions":{"disk":"12 MiB are free, 256 are reserved","store":"ok"}}
  std::string Json() const;
  // The same for a person, one sentence; empty where it is ready.
  std::string Reason() const;

 private:
  const Listener on_change_;
  mutable Mutex mutex_;
  std::map<std::string, absl::Status> conditions_ NPUC_GUARDED_BY(mutex_);
};

}  // namespace npuc::observe

#endif  // NPUC_SERVER_OBSERVE_READINESS_H_
