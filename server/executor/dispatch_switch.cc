#include "server/executor/dispatch_switch.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cache/posix.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"

namespace npuc::executor {
namespace {

constexpr size_t kMaxSwitchBytes = 16 << 10;
constexpr size_t kMaxShownBytes = 4096;

}  // namespace

absl::StatusOr<std::unique_ptr<DispatchSwitch>> DispatchSwitch::Open(
    std::string path, std::function<void(bool paused)> apply) {
  auto made =
      std::unique_ptr<DispatchSwitch>(new DispatchSwitch(std::move(path), std::move(apply)));
  bool paused = false;
  {
    const MutexLock lock(made->mutex_);
    RETURN_IF_ERROR(made->Read());
    paused = made->state_.paused;
  }
  made->apply_(paused);
  return made;
}

// The file is there while dispatch is paused: microseconds since 1970, identity, reason, a line
// each.
absl::Status DispatchSwitch::Read() {
  const auto file = cache::OpenFile(path_, O_RDONLY | O_NOFOLLOW);
  if (absl::IsNotFound(file.status())) return absl::OkStatus();
  RETURN_IF_ERROR(file.status());
  ASSIGN_OR_RETURN(const std::string text,
                   cache::ReadUpToAt(file->get(), 0, kMaxSwitchBytes, path_));
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  int64_t micros = 0;
  if (lines.size() < 3 || !absl::SimpleAtoi(lines[0], &micros)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path_, " is damaged; delete it, and pause dispatch again if it was paused"));
  }
  state_ = {
      .paused = true, .reason = lines[2], .by = lines[1], .since = absl::FromUnixMicros(micros)};
  return absl::OkStatus();
}

absl::Status DispatchSwitch::Set(State state) {
  state.reason = Printable(state.reason, kMaxShownBytes);
  state.by = Printable(state.by, kMaxShownBytes);
  const MutexLock lock(mutex_);
  if (state.paused) {
    const std::string fresh = path_ + ".new";
    ASSIGN_OR_RETURN(const cache::UniqueFd file,
                     cache::OpenFile(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW));
    const std::string text =
        absl::StrCat(absl::ToUnixMicros(state.since), "\n", state.by, "\n", state.reason, "\n");
    RETURN_IF_ERROR(cache::WriteAllAt(file.get(), text, 0, fresh));
    if (fsync(file.get()) != 0 || std::rename(fresh.c_str(), path_.c_str()) != 0) {
      return cache::ErrnoStatus(errno, "cannot keep", path_);
    }
  } else {
    if (unlink(path_.c_str()) != 0 && errno != ENOENT) {
      return cache::ErrnoStatus(errno, "cannot remove", path_);
    }
    state = State();
  }
  apply_(state.paused);
  state_ = std::move(state);
  return absl::OkStatus();
}

DispatchSwitch::State DispatchSwitch::Get() {
  const MutexLock lock(mutex_);
  return state_;
}

}  // namespace npuc::executor
