#ifndef NPUC_SERVER_WORKER_KEEPER_H_
#define NPUC_SERVER_WORKER_KEEPER_H_

#include <sys/types.h>

#include <vector>

#include "cache/posix.h"
#include "server/worker/protocol.h"
#include "server/worker/walls.h"
#include "server/worker/zygote.h"

namespace npuc {

// What comes with kSpawn, in this order.
struct RunDescriptors {
  UniqueFd events;  // stream socket, ours is the sending end
  UniqueFd print;   // pipe for stdout and stderr
  UniqueFd watch;   // packet socket, ours is the sending end
  UniqueFd out;     // the output folder on disk
  UniqueFd job;     // the memory file with the JobRecord
  std::vector<UniqueFd> inputs;
};

// The keeper of a run, just after it was cloned with walls.clone_flags(): process 1 of the run's
// PID namespace. Builds the walls that a parent can build, starts the worker, waits for it, tells
// the daemon how it ended, and ends, which ends all that is left in the namespace. The compiler
// does not run here, and the worker has no descriptor by which to reach it.
[[noreturn]] void RunKeeper(const Walls& walls, const ControlMessage& spawn,
                            RunDescriptors descriptors, const WorkerFunctions& functions);

}  // namespace npuc

#endif  // NPUC_SERVER_WORKER_KEEPER_H_
