#include "server/objects/bounded_calls.h"

#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/mutex.h"

namespace npuc::objects {
namespace {

struct Call {
  std::optional<absl::Status> result;
};

}  // namespace

struct BoundedCalls::Shared {
  Mutex mutex;
  CondVar changed;
  size_t threads NPUC_GUARDED_BY(mutex) = 0;
};

BoundedCalls::BoundedCalls(absl::Duration limit)
    : limit_(limit), shared_(std::make_shared<Shared>()) {}

absl::Status BoundedCalls::Run(std::function<absl::Status()> work) {
  const SteadyTime end = SteadyTimeAfter(absl::ToChronoNanoseconds(limit_));
  const auto call = std::make_shared<Call>();
  {
    const MutexLock lock(shared_->mutex);
    while (shared_->threads == kMaxThreads) {
      if (shared_->changed.WaitUntil(shared_->mutex, end)) continue;
      return absl::UnavailableError(
          absl::StrCat("no answer of the file system: ", kMaxThreads, " calls wait for it"));
    }
    ++shared_->threads;
  }
  std::thread([shared = shared_, call, work = std::move(work)] {
    absl::Status result = work();
    const MutexLock lock(shared->mutex);
    call->result = std::move(result);
    --shared->threads;
    shared->changed.NotifyAll();
  }).detach();
  const MutexLock lock(shared_->mutex);
  while (!call->result.has_value()) {
    if (shared_->changed.WaitUntil(shared_->mutex, end)) continue;
    return absl::UnavailableError(
        absl::StrCat("no answer of the file system within ", absl::FormatDuration(limit_)));
  }
  return *std::move(call->result);
}

}  // namespace npuc::objects
