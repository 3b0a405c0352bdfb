#ifndef NPUC_SERVER_SCHEDULER_PRIORITY_QUEUE_H_
#define NPUC_SERVER_SCHEDULER_PRIORITY_QUEUE_H_

#include <cstdint>
#include <memory>

#include "server/jobs/job_queue.h"

namespace npuc {

// Higher priority first, then the earlier accepted. All calls take O(log n).
std::unique_ptr<JobQueue> MakePriorityQueue(int64_t max_jobs);

}  // namespace npuc

#endif  // NPUC_SERVER_SCHEDULER_PRIORITY_QUEUE_H_
