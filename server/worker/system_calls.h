#ifndef NPUC_SERVER_WORKER_SYSTEM_CALLS_H_
#define NPUC_SERVER_WORKER_SYSTEM_CALLS_H_

#include <linux/filter.h>
#include <sys/types.h>

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace npuc::worker {

// The system calls of a compile, as a seccomp program: those of the list are allowed, those that
// only an attack makes end the process by SIGSYS, all others fail with EPERM.
using SystemCallFilter = std::vector<sock_filter>;

// `self` is the process's id in its own namespace: it may signal itself (abort), nobody else.
// Errors: UNIMPLEMENTED where libseccomp does not know the machine.
absl::StatusOr<SystemCallFilter> MakeSystemCallFilter(pid_t self);

// For good, for the calling process with all its threads. It must have no new privileges set.
absl::Status EnterSystemCallFilter(const SystemCallFilter& filter);

}  // namespace npuc::worker

#endif  // NPUC_SERVER_WORKER_SYSTEM_CALLS_H_
