#ifndef NPUC_SERVER_WORKER_CHILD_H_
#define NPUC_SERVER_WORKER_CHILD_H_

#include <sys/types.h>

#include <vector>

#include "cache/posix.h"
#include "server/worker/protocol.h"
#include "server/worker/zygote.h"

namespace npuc {

// What comes with kSpawn, in this order.
struct ChildDescriptors {
  UniqueFd events;  // stream socket, ours is the sending end
  UniqueFd print;   // pipe for stdout and stderr
  UniqueFd out;     // the output folder
  UniqueFd job;     // the memory file with the JobRecord
  std::vector<UniqueFd> inputs;
};

// A worker's whole life, just after the fork: shuts itself in (session, limits, descriptors), reads
// the job, compiles, writes the artifacts into the output folder, reports, and exits.
[[noreturn]] void RunChild(pid_t zygote, const ControlMessage& spawn, ChildDescriptors descriptors,
                           const WorkerFunctions& functions);

}  // namespace npuc

#endif  // NPUC_SERVER_WORKER_CHILD_H_
