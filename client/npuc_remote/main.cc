#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <iostream>
#include <string>
#include <vector>

#include "client/npuc_remote/commands.h"

namespace {

// The handler may touch nothing else.
std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void OnSignal(int) { interrupted.store(true); }

// The first Ctrl-C asks the command to stop and to say how to come back; SA_RESETHAND makes the
// second one end the process.
void InstallHandlers() {
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  InstallHandlers();
  npuc::remote::Console console(std::cout, std::cerr, isatty(STDERR_FILENO) == 1,
                                [] { return interrupted.load(); });
  return npuc::remote::RunNpucRemote(std::vector<std::string>(argv + 1, argv + argc), console);
}
