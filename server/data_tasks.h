#ifndef NPUC_SERVER_DATA_TASKS_H_
#define NPUC_SERVER_DATA_TASKS_H_

#include "server/flags.h"

namespace npuc::daemon {

// Runs --migrate, --backup, --restore, --check or --check-config in place of serving, with words
// for a person. The exit code: 0 done; 1 it failed, or --check found jobs that cannot be read; 2
// --check-config found a problem.
int RunDataTask(const Flags& flags);

}  // namespace npuc::daemon

#endif  // NPUC_SERVER_DATA_TASKS_H_
