#ifndef NPUC_SERVER_WORKER_ZYGOTE_H_
#define NPUC_SERVER_WORKER_ZYGOTE_H_

#include <functional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/pipeline/compile.h"
#include "compiler_core/pipeline/config.h"

namespace npuc {

// What a worker does; npuc-worker gives ParseConfig and Compile, tests give hostile ones.
struct WorkerFunctions {
  std::function<absl::StatusOr<ParsedConfig>(absl::string_view text, absl::string_view name,
                                             Diagnostics& diagnostics)>
      parse_config;
  std::function<absl::StatusOr<CompileResult>(const CompileRequest& request,
                                              CompileObserver& observer, Diagnostics& diagnostics)>
      compile;
};

// The descriptor on which a warm parent finds its control channel.
inline constexpr int kZygoteControlFd = 3;

// The warm parent's whole life: serves the control channel at kZygoteControlFd until the daemon's
// end is closed, then kills every run and returns the exit code. The process must have one thread
// and be a session of its own (WorkerPool sees to that).
int RunZygote(const WorkerFunctions& functions);

}  // namespace npuc

#endif  // NPUC_SERVER_WORKER_ZYGOTE_H_
