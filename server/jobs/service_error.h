#ifndef NPUC_SERVER_JOBS_SERVICE_ERROR_H_
#define NPUC_SERVER_JOBS_SERVICE_ERROR_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace npuc::jobs {

// What the service's errors carry beside code and message. server/rpc turns it into google.rpc
// details; proto/API.md lists the reasons. It travels as a payload of an absl::Status, so code that
// knows nothing of it passes it on unharmed.
struct ErrorDetails {
  std::string reason;  // stable, UPPER_SNAKE_CASE
  std::map<std::string, std::string> metadata = {};
  // How long to wait before a retry is worth it; unset: a retry is not invited.
  std::optional<absl::Duration> retry_delay = std::nullopt;

  struct FieldViolation {
    std::string field;
    std::string description;
  };
  std::vector<FieldViolation> field_violations = {};

  struct PreconditionViolation {
    std::string type;
    std::string subject;
    std::string description;
  };
  std::vector<PreconditionViolation> precondition_violations = {};

  // With RESOURCE_EXHAUSTED: bounds of the caller's own that a retry alone does not help with.
  struct QuotaViolation {
    std::string subject;
    std::string description;
  };
  std::vector<QuotaViolation> quota_violations = {};
};

// `code` must not be OK.
absl::Status ServiceError(absl::StatusCode code, absl::string_view message,
                          const ErrorDetails& details);

// The details that ServiceError put there; nullopt for a status from elsewhere.
std::optional<ErrorDetails> ErrorDetailsOf(const absl::Status& status);

// Collects the bad fields of one request, so that all are told at once. Not thread-safe.
class FieldChecker {
 public:
  void Add(absl::string_view field, absl::string_view description);
  // OK, or INVALID_ARGUMENT with every violation and this reason.
  absl::Status ToStatus(absl::string_view reason = "INVALID_FIELD") const;
  bool ok() const { return violations_.empty(); }

 private:
  std::vector<ErrorDetails::FieldViolation> violations_;
};

absl::Status JobNotFound(absl::string_view job_id);

// RECORD_TOO_NEW: a newer npucd stored a record with `what`, an enumerator that this build does not
// know. It is no damage: the record stays as it is, and a newer node can read it.
absl::Status RecordTooNew(absl::string_view what);
bool IsRecordTooNew(const absl::Status& status);

}  // namespace npuc::jobs

#endif  // NPUC_SERVER_JOBS_SERVICE_ERROR_H_
