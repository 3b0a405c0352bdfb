#ifndef NPUC_CLIENT_NPUC_REMOTE_EXIT_CODES_H_
#define NPUC_CLIENT_NPUC_REMOTE_EXIT_CODES_H_

#include "absl/status/status.h"
#include "npuc/v1/compile.pb.h"

namespace npuc::remote {

// What scripts rely on.
enum ExitCode : int {
  kDone = 0,
  kJobFailed = 1,      // diagnostics were shown
  kWrongUsage = 2,     // also: a folder or file of the user's own that cannot be written
  kRefused = 3,        // quota, authorisation, invalid request or config, no such job
  kUnreachable = 4,    // the server is not there, or broke down
  kCancelled = 5,      // the job was cancelled or timed out
  kInterrupted = 130,  // by Ctrl-C or SIGTERM, as shells have it
};

// Of a call that failed.
ExitCode ExitCodeOf(const absl::Status& status);

// Of a job that has ended; kDone for one that has not.
ExitCode ExitCodeOf(const v1::CompileJob& job);

}  // namespace npuc::remote

#endif  // NPUC_CLIENT_NPUC_REMOTE_EXIT_CODES_H_
