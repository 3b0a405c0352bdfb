#ifndef NPUC_SERVER_WORKER_KEEPER_H_
#define NPUC_SERVER_WORKER_KEEPER_H_

#include <sys/types.h>

#include "cache/posix.h"
#include "server/worker/protocol.h"
#include "server/worker/walls.h"
#include "server/worker/zygote.h"

namespace npuc::worker {

// Over which the warm parent hands a run over to processes that were made before it: packet
// sockets, one for the keeper and one for the worker. Each takes one packet, kSpawn. Closed without
// one, the processes end.
struct HandOver {
  cache::UniqueFd keeper;
  cache::UniqueFd worker;
};

// The keeper of a run, just after it was cloned with walls.clone_flags(): process 1 of the run's
// PID namespace. Builds the walls that a parent can build, makes the worker, waits until the run is
// handed over, then until the worker has ended, tells the daemon how, and ends, which ends all that
// is left in the namespace. The compiler does not run here, and the worker has no descriptor by
// which to reach it. What fails is told to the daemon of the run that is handed over.
// output_bytes: of the run to come.
[[noreturn]] void RunKeeper(const Walls& walls, uint64_t output_bytes, HandOver ends,
                            const WorkerFunctions& functions);

}  // namespace npuc::worker

#endif  // NPUC_SERVER_WORKER_KEEPER_H_
