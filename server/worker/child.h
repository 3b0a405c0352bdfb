#ifndef NPUC_SERVER_WORKER_CHILD_H_
#define NPUC_SERVER_WORKER_CHILD_H_

#include <sys/types.h>

#include <cstdint>

#include "server/worker/protocol.h"
#include "server/worker/walls.h"
#include "server/worker/zygote.h"

namespace npuc {

// Where a run's descriptors lie; nothing else is open. The keeper alone has kWatchFd.
inline constexpr int kEventsFd = 3;
inline constexpr int kOutFd = 4;
inline constexpr int kJobFd = 5;
inline constexpr int kFirstInputFd = 6;
inline constexpr int kWatchFd = kFirstInputFd + static_cast<int>(kMaxInputs);

// Of a process, before the job.
struct MemoryInUse {
  uint64_t space_bytes = 0;  // address space
  uint64_t data_bytes = 0;
};

// A worker's whole life, just after its keeper has forked it: shuts itself in (user, limits, system
// calls), reads the job, compiles, writes the artifacts into the output folder, reports, and exits.
[[noreturn]] void RunChild(const Walls& walls, pid_t keeper, const ControlMessage& spawn,
                           const MemoryInUse& memory, uint64_t input_bytes,
                           const WorkerFunctions& functions);

}  // namespace npuc

#endif  // NPUC_SERVER_WORKER_CHILD_H_
