#ifndef NPUC_SERVER_WORKER_WORKER_CGROUP_H_
#define NPUC_SERVER_WORKER_WORKER_CGROUP_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace npuc::worker {

// A cgroup (v2) for the warm parent and all that it forks: what all workers together may use, on
// top of the limits of each. Needs a cgroup of npucd's own with the controllers memory and pids, as
// systemd gives with Delegate=; npucd itself moves into the leaf `npucd` of it, since a cgroup that
// hands controllers on may hold no process.
class WorkerCgroup {
 public:
  struct Limits {
    uint64_t memory_bytes = 0;  // memory.max
    uint32_t processes = 0;     // pids.max
  };
  struct Host {  // tests have their own
    std::string root = "/sys/fs/cgroup";
    std::string self = "/proc/self/cgroup";
    // Whether a folder is really of cgroup v2. On other hosts it may be a tmpfs, where everything
    // can be made and written, and nothing is limited.
    std::function<bool(const std::string& folder)> is_cgroup2 = IsCgroup2;
  };

  // FAILED_PRECONDITION: this host does not offer it; the message says what is missing.
  static absl::StatusOr<std::unique_ptr<WorkerCgroup>> Make(const Limits& limits, const Host& host);
  // Removes the group, where no process is left in it.
  ~WorkerCgroup();
  WorkerCgroup(const WorkerCgroup&) = delete;
  WorkerCgroup& operator=(const WorkerCgroup&) = delete;

  // Puts a process, and all that it forks from now on, under the limits.
  absl::Status Add(pid_t pid) const;
  const std::string& folder() const { return folder_; }

 private:
  explicit WorkerCgroup(std::string folder) : folder_(std::move(folder)) {}
  static bool IsCgroup2(const std::string& folder);

  const std::string folder_;
};

}  // namespace npuc::worker

#endif  // NPUC_SERVER_WORKER_WORKER_CGROUP_H_
