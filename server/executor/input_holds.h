#ifndef NPUC_SERVER_EXECUTOR_INPUT_HOLDS_H_
#define NPUC_SERVER_EXECUTOR_INPUT_HOLDS_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler_core/base/mutex.h"

namespace npuc::executor {

// Keeps the blobs of jobs that have not ended from being evicted. In memory: after a restart the
// holds are taken again for what is recovered. Thread-safe.
class InputHolds {
 public:
  using Holds = std::vector<std::shared_ptr<const void>>;

  void Add(const std::string& job_id, Holds holds) {
    const MutexLock lock(mutex_);
    holds_[job_id] = std::move(holds);
  }

  void Remove(const std::string& job_id) {
    Holds released;  // let go after the lock
    const MutexLock lock(mutex_);
    const auto found = holds_.find(job_id);
    if (found == holds_.end()) return;
    released = std::move(found->second);
    holds_.erase(found);
  }

  size_t size() const {
    const MutexLock lock(mutex_);
    return holds_.size();
  }

 private:
  mutable Mutex mutex_;
  std::map<std::string, Holds> holds_ NPUC_GUARDED_BY(mutex_);  // by job
};

}  // namespace npuc::executor

#endif  // NPUC_SERVER_EXECUTOR_INPUT_HOLDS_H_
