// npucd; daemon.cc puts it together.
#include <malloc.h>

#include "absl/synchronization/mutex.h"
#include "compiler_core/base/sanitized.h"
#include "server/daemon.h"

namespace {

// By default, blocks of 128 KiB and more come from mmap and go back at once, and each page of the
// next one is faulted in anew, at some 2 us. A job's artifacts go through several such blocks.
void KeepLargeBlocks() {
#ifndef NPUC_SANITIZED
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
  mallopt(M_TRIM_THRESHOLD, 16 << 20);
#endif
}

// gRPC locks Abseil's mutexes, and Debian's Abseil is built without NDEBUG: it looks for cycles of
// locks at each one, a twentieth of the processor time of a call, and would end the daemon at one.
void DropLockOrderChecks() {
#ifndef NPUC_SANITIZED
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  KeepLargeBlocks();
  DropLockOrderChecks();
  return npuc::daemon::RunDaemon(argc, argv, {});
}
