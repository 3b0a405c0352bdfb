#ifndef NPUC_SERVER_EXECUTOR_OPERATOR_SWITCH_H_
#define NPUC_SERVER_EXECUTOR_OPERATOR_SWITCH_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "compiler_core/base/mutex.h"
#include "server/base/kept_state.h"

namespace npuc::executor {

// A switch that an operator turns on and off by hand, with who, why and since when: the pause, the
// cordon. Kept in a text, so that it holds over restarts. Thread-safe.
class OperatorSwitch {
 public:
  struct State {
    bool on = false;
    std::string reason = {};
    std::string by = {};  // identity
    absl::Time since = absl::InfinitePast();
  };

  // Reads the text, which must outlive it, and calls `apply` with what it says. `apply` is called
  // with each change later on. `name`: in the error of a damaged text.
  static absl::StatusOr<std::unique_ptr<OperatorSwitch>> Open(const std::string& name,
                                                              base::KeptText* text,
                                                              std::function<void(bool on)> apply);

  // Keeps it, then applies it. An error: it cannot be kept, and all is as it was.
  absl::Status Set(State state);
  State Get();
  // Takes what another node has set. True: it was another state.
  absl::StatusOr<bool> Refresh();

 private:
  OperatorSwitch(const std::string& name, std::function<void(bool on)> apply);

  const std::function<void(bool on)> apply_;
  Mutex mutex_;
  base::KeptState<State> state_ NPUC_GUARDED_BY(mutex_);
};

}  // namespace npuc::executor

#endif  // NPUC_SERVER_EXECUTOR_OPERATOR_SWITCH_H_
