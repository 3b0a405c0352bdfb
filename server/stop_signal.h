#ifndef NPUC_SERVER_STOP_SIGNAL_H_
#define NPUC_SERVER_STOP_SIGNAL_H_

#include "absl/time/time.h"

namespace npuc::daemon {

// SIGTERM, SIGINT and SIGHUP as bytes of a pipe. A handler and no mask, since children inherit
// masks. SIGPIPE is ignored. Once a process.
class StopSignal {
 public:
  StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // The next one, or 0 where none comes for so long.
  int Wait(absl::Duration patience) const;

 private:
  int fds_[2] = {-1, -1};
};

}  // namespace npuc::daemon

#endif  // NPUC_SERVER_STOP_SIGNAL_H_
