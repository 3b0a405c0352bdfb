#include "server/stop_signal.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "compiler_core/base/status.h"

namespace npuc::daemon {
namespace {

// The write end of the pipe on which main waits; set before the handlers are.
int g_signal_fd = -1;

void OnSignal(int signal) {
  const char byte = static_cast<char>(signal);
  [[maybe_unused]] const ssize_t written = write(g_signal_fd, &byte, 1);
}

}  // namespace

StopSignal::StopSignal() {
  NPUC_CHECK(pipe2(fds_, O_CLOEXEC) == 0);
  g_signal_fd = fds_[1];
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGHUP, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

int StopSignal::Wait(absl::Duration patience) const {
  pollfd ready{fds_[0], POLLIN, 0};
  if (poll(&ready, 1, static_cast<int>(absl::ToInt64Milliseconds(patience))) != 1) return 0;
  char byte = 0;
  return read(fds_[0], &byte, 1) == 1 ? byte : 0;
}

}  // namespace npuc::daemon
