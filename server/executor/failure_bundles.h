#ifndef NPUC_SERVER_EXECUTOR_FAILURE_BUNDLES_H_
#define NPUC_SERVER_EXECUTOR_FAILURE_BUNDLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler_core/base/mutex.h"
#include "compiler_core/config/config.h"

namespace npuc::executor {

// What an operator needs to see a failure of ours again with `npuc`: a folder for each job that
// ended FAILED by the server's or the compiler's own fault.
//
//   <dir>/<job id>/config.yaml      the config, its files' names put as those below
//                  inputs/*         the model and side inputs (hard links where that is possible)
//                  failure.json     job, build, stage, reason, and the command
//                  compile.log      what the compile had said
//                  cause            a line with the tenant, one with the cause
//
// One is kept of each tenant and cause, the newest. Over the limits the oldest one goes of the
// tenant that has most, so that neither a mistake that somebody repeats nor a tenant with many
// failures pushes out what others need. Thread-safe.
class FailureBundles {
 public:
  struct Options {
    std::string dir;  // made where missing
    size_t max_bundles = 20;
    uint64_t max_bytes = uint64_t{1} << 30;  // of files, hard links counted in full
  };
  struct Input {
    ConfigFile named;
    std::string blob_path;
  };
  struct Failure {
    std::string job_id;  // a valid one: it names the folder
    std::string tenant;
    std::string build_id;
    std::string stage;  // of the compile; empty where none was told
    std::string reason;
    int64_t timestamp_seconds = 0;  // what headers state
    std::string config_text;
    std::vector<Input> inputs;
    std::string log;
  };

  explicit FailureBundles(Options options) : options_(std::move(options)) {}

  // The folder, whole or not there. RESOURCE_EXHAUSTED: the inputs alone are over max_bytes.
  absl::Status Keep(const Failure& failure);

 private:
  absl::Status MakeRoom(const std::string& cause) const;

  const Options options_;
  Mutex mutex_;  // one is written at a time
};

}  // namespace npuc::executor

#endif  // NPUC_SERVER_EXECUTOR_FAILURE_BUNDLES_H_
