#ifndef NPUC_SERVER_DAEMON_H_
#define NPUC_SERVER_DAEMON_H_

#include <functional>

#include "absl/strings/string_view.h"

namespace npuc::daemon {

// What tests put into a daemon; empty in npucd.
struct DaemonHooks {
  // Called at the points where threads meet ("cancel", "finish", "shutdown" ...), on any thread;
  // may sleep, so that orders come up that are rare otherwise. tests/fault has the program.
  std::function<void(absl::string_view point)> pause = nullptr;
};

// npucd from its command line to its exit code. Once a process.
int RunDaemon(int argc, const char* const* argv, const DaemonHooks& hooks);

}  // namespace npuc::daemon

#endif  // NPUC_SERVER_DAEMON_H_
