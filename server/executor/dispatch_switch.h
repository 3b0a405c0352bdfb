#ifndef NPUC_SERVER_EXECUTOR_DISPATCH_SWITCH_H_
#define NPUC_SERVER_EXECUTOR_DISPATCH_SWITCH_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "compiler_core/base/mutex.h"

namespace npuc::executor {

// The operator's switch that stops and resumes the start of jobs; kept in a file, so that it holds
// over restarts.
// Thread-safe.
class DispatchSwitch {
 public:
  struct State {
    bool paused = false;
    std::string reason = {};
    std::string by = {};  // identity
    absl::Time since = absl::InfinitePast();
  };

  // Reads the file and calls `apply` with what it says. `apply` is called with each change later
  // on.
  static absl::StatusOr<std::unique_ptr<DispatchSwitch>> Open(
      std::string path, std::function<void(bool paused)> apply);

  // Keeps it, then applies it. An error: it cannot be kept, and all is as it was.
  absl::Status Set(State state);
  State Get();

 private:
  DispatchSwitch(std::string path, std::function<void(bool paused)> apply)
      : path_(std::move(path)), apply_(std::move(apply)) {}
  absl::Status Read() NPUC_REQUIRES(mutex_);

  const std::string path_;
  const std::function<void(bool paused)> apply_;
  Mutex mutex_;
  State state_ NPUC_GUARDED_BY(mutex_);
};

}  // namespace npuc::executor

#endif  // NPUC_SERVER_EXECUTOR_DISPATCH_SWITCH_H_
