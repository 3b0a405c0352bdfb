#ifndef NPUC_SERVER_WORKER_PROCESS_TREE_TEST_UTIL_H_
#define NPUC_SERVER_WORKER_PROCESS_TREE_TEST_UTIL_H_

#include <sys/types.h>

#include <vector>

namespace npuc::worker {

// Processes below one, at any depth, as /proc shows them now.
std::vector<pid_t> ProcessesBelow(pid_t ancestor);

// That a process waits for something, and neither runs nor could run, as /proc shows it now.
bool IsAsleep(pid_t pid);

}  // namespace npuc::worker

#endif  // NPUC_SERVER_WORKER_PROCESS_TREE_TEST_UTIL_H_
