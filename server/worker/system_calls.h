#ifndef NPUC_SERVER_WORKER_SYSTEM_CALLS_H_
#define NPUC_SERVER_WORKER_SYSTEM_CALLS_H_

#include <linux/filter.h>
#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace npuc::worker {

// The system calls of a compile, as a seccomp program: those of the list are allowed, those that
// only an attack makes end the process by SIGSYS, all others fail with EPERM.
using SystemCallFilter = std::vector<sock_filter>;

// The program that a filter is for.
enum class FilterFor : uint8_t {
  kCompile,
  // A library of the user's (server/native): it may map code, since it is loaded behind the filter,
  // and may open files for reading alone. To open one for writing ends the process.
  kLibrary,
};

// `self` is the process's id in its own namespace: it may signal itself (abort), nobody else.
// Errors: UNIMPLEMENTED where libseccomp does not know the machine.
absl::StatusOr<SystemCallFilter> MakeSystemCallFilter(pid_t self,
                                                      FilterFor what = FilterFor::kCompile);

// For good, for the calling process with all its threads. It must have no new privileges set.
absl::Status EnterSystemCallFilter(const SystemCallFilter& filter);

}  // namespace npuc::worker

#endif  // NPUC_SERVER_WORKER_SYSTEM_CALLS_H_
