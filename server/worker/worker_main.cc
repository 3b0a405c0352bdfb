// npuc-worker: the warm parent of the workers. npucd starts it, with the control channel as
// descriptor 3; it is no program for people.
#include <sys/socket.h>

#include <cstdio>

#include "compiler_core/config/config.h"
#include "compiler_core/pipeline/compile.h"
#include "compiler_core/pipeline/inspect_files.h"
#include "server/worker/zygote.h"

namespace {

// What the parser makes at its first config (such as yaml-cpp its expressions), so that workers
// find it made.
void WarmParser() {
  npuc::Diagnostics diagnostics;
  npuc::ParseConfig(
      "CORENAME: GRUS\nMODEL_FILE: model.pb\nOUTPUT_FILE: model.h\nFRAMEWORK: TF\n"
      "INPUT_OPS:\n  x: [1, 2]\nOUTPUT_OPS: [y, 'z']  # warm\n",
      "config.yaml", diagnostics)
      .status()
      .IgnoreError();
}

}  // namespace

int main() {
  int type = 0;
  socklen_t size = sizeof(type);
  if (getsockopt(npuc::worker::kZygoteControlFd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 ||
      type != SOCK_SEQPACKET) {
    std::fprintf(stderr, "npuc-worker: started by npucd, not by hand; compile with npuc\n");
    return 2;
  }
  WarmParser();
  return npuc::worker::RunZygote({npuc::ParseConfig, npuc::Compile, npuc::InspectIntoFiles},
                                 {.build_id = npuc::CompilerBuildId()});
}
