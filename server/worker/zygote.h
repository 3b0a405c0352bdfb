#ifndef NPUC_SERVER_WORKER_ZYGOTE_H_
#define NPUC_SERVER_WORKER_ZYGOTE_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/config/config.h"
#include "compiler_core/pipeline/compile.h"
#include "compiler_core/pipeline/inspect_files.h"

namespace npuc::worker {

// What a worker does; npuc-worker gives ParseConfig, Compile and InspectIntoFiles, tests give
// hostile ones.
struct WorkerFunctions {
  std::function<absl::StatusOr<ParsedConfig>(absl::string_view text, absl::string_view name,
                                             Diagnostics& diagnostics)>
      parse_config;
  std::function<absl::StatusOr<CompileResult>(const CompileRequest& request,
                                              CompileObserver& observer, Diagnostics& diagnostics)>
      compile;
  // InspectIntoFiles. Null: an inspection fails.
  std::function<absl::Status(const InspectFilesRequest& request, CompileObserver& observer,
                             Diagnostics& diagnostics)>
      inspect = nullptr;
};

// The descriptors on which a warm parent finds its control channel and its own program, from which
// it was executed.
inline constexpr int kZygoteControlFd = 3;
inline constexpr int kZygoteProgramFd = 4;

struct ZygoteOptions {
  absl::string_view build_id = {};  // CompilerBuildId(); what the daemon compares with its own
  uint32_t without = 0;  // bits of Mechanism not to use, for tests of what each is good for
};

// The warm parent's whole life: finds out what the sandbox can do on this host, serves the control
// channel at kZygoteControlFd until the daemon's end is closed, then kills every run and returns
// the exit code. The process must have one thread and be a session of its own (WorkerPool sees to
// that).
int RunZygote(const WorkerFunctions& functions, const ZygoteOptions& options = {});

}  // namespace npuc::worker

#endif  // NPUC_SERVER_WORKER_ZYGOTE_H_
