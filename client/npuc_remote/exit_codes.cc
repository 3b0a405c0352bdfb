#include "client/npuc_remote/exit_codes.h"

namespace npuc::remote {

ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kDone;
    case absl::StatusCode::kCancelled:
      return kInterrupted;  // the client says so, and no server
    // Not there; there but broken; or not an npucd at all.
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kUnimplemented:
      return kUnreachable;
    default:
      return kRefused;
  }
}

ExitCode ExitCodeOf(const v1::CompileJob& job) {
  if (job.has_failed()) return kJobFailed;
  if (job.has_cancelled() || job.has_expired()) return kCancelled;
  return kDone;
}

}  // namespace npuc::remote
