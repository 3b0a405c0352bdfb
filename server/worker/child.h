#ifndef NPUC_SERVER_WORKER_CHILD_H_
#define NPUC_SERVER_WORKER_CHILD_H_

#include <sys/types.h>

#include <cstdint>

#include "server/worker/protocol.h"
#include "server/worker/walls.h"
#include "server/worker/zygote.h"

namespace npuc::worker {

// Where a run's descriptors lie; nothing else is open. The keeper alone has kWatchFd, where its end
// of the hand-over lies before there is a run; the worker's lies at kHandOverFd.
inline constexpr int kEventsFd = 3;
inline constexpr int kOutFd = 4;
inline constexpr int kJobFd = 5;
inline constexpr int kBellFd = 6;
inline constexpr int kFirstInputFd = 7;
inline constexpr int kWatchFd = kFirstInputFd + static_cast<int>(kMaxInputs);
inline constexpr int kHandOverFd = kWatchFd + 1;
inline constexpr int kScratchFd = 100;  // what is moved goes above this first

// Of a process, before the job.
struct MemoryInUse {
  uint64_t space_bytes = 0;  // address space
  uint64_t data_bytes = 0;
};

// What the keeper tells the worker that it forks.
struct WorkerStart {
  pid_t keeper = 0;
  MemoryInUse memory;
  bool has_folder = false;  // in memory, at kOutFd; else the run brings one
};

// A worker's whole life, just after its keeper has forked it: gives up its rights, waits until the
// run is handed over, shuts itself in (limits, files, system calls), reads the job, compiles,
// writes the artifacts into the output folder, reports, and exits.
[[noreturn]] void RunChild(const Walls& walls, const WorkerStart& start,
                           const WorkerFunctions& functions);

}  // namespace npuc::worker

#endif  // NPUC_SERVER_WORKER_CHILD_H_
