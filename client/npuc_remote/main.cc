#include <grpc/support/log.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
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

// gRPC writes lines of its own about each connection that fails, which npuc-remote tells anyway.
// Where GRPC_VERBOSITY is set somebody wants them.
void SilenceGrpc() {
  if (std::getenv("GRPC_VERBOSITY") == nullptr) gpr_set_log_function([](gpr_log_func_args*) {});
}

// By convention: on a terminal that can, unless NO_COLOR (https://no-color.org) is set.
bool WantsColours(bool is_terminal) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return is_terminal && (no_color == nullptr || *no_color == '\0') && term != nullptr &&
         std::string(term) != "dumb";
}

}  // namespace

int main(int argc, char** argv) {
  InstallHandlers();
  SilenceGrpc();
  const bool is_terminal = isatty(STDERR_FILENO) == 1;
  npuc::remote::Console console(
      std::cout, std::cerr, is_terminal, [] { return interrupted.load(); },
      WantsColours(is_terminal));
  return npuc::remote::RunNpucRemote(std::vector<std::string>(argv + 1, argv + argc), console);
}
