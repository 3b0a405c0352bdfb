#ifndef NPUC_SERVER_WORKER_WALLS_H_
#define NPUC_SERVER_WORKER_WALLS_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "cache/posix.h"
#include "server/worker/sandbox.h"
#include "server/worker/system_calls.h"

namespace npuc::worker {

// A kernel without memory ends a run, which is tried again, before the warm parent, with which all
// runs end, and that before anything else of the host. Of 1000; the daemon has 0.
inline constexpr absl::string_view kZygoteOomScore = "500";
inline constexpr absl::string_view kRunOomScore = "1000";
// For this process and those that it forks. Where there is no /proc, their size alone decides.
void OfferToOomKiller(absl::string_view score);

// The sandbox as a warm parent knows it: which mechanisms this host allows, and what is made once
// and serves every run (user and network namespace, the seccomp program). Used by one thread.
class Walls {
 public:
  // Tries each mechanism in a process of its own, and enters the namespaces that runs share. Those
  // in `without` (bits) are left out and reported as missing: for tests of what is lost with each.
  explicit Walls(uint32_t without, FilterFor what = FilterFor::kCompile);

  const SandboxReport& report() const { return report_; }
  bool Has(Mechanism mechanism) const { return report_.Has(mechanism); }

  // For CloneProcess: the namespaces that a run has for itself.
  int clone_flags() const;
  // Whether the warm parent is alive; for a child that has just been cloned.
  bool ParentAlive() const;

  // The warm parent's step: hands an output folder on disk to the worker's user.
  absl::Status GiveOutputFolder(int folder_fd) const;

  // The keeper's steps. Each does nothing where its mechanism is not in force.
  //
  // A new output folder in memory; not valid where the one on disk is used.
  absl::StatusOr<cache::UniqueFd> MakeMemoryFolder(uint64_t output_bytes) const;
  absl::Status EnterFileView() const;

  // The worker's steps: rights that can go before there is a job, and, before it sees a byte of
  // the job, all else; the folder is its output folder.
  absl::Status GiveUpRights(pid_t keeper) const;
  absl::Status ShutIn(int folder_fd) const;

 private:
  void TryAll(uint32_t without);
  void Try(Mechanism mechanism, const std::function<absl::Status()>& attempt);

  SandboxReport report_;
  uint32_t without_;
  FilterFor what_;
  bool root_;
  cache::UniqueFd parent_;  // a pidfd of the warm parent
  SystemCallFilter filter_;
};

}  // namespace npuc::worker

#endif  // NPUC_SERVER_WORKER_WALLS_H_
