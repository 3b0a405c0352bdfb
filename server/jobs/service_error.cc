#include "server/jobs/service_error.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "npuc/error/v1/error_details.pb.h"

namespace npuc::jobs {
namespace {

constexpr char kPayloadUrl[] = "npuc/error_details";

}  // namespace

absl::Status ServiceError(absl::StatusCode code, absl::string_view message,
                          const ErrorDetails& details) {
  error::v1::ErrorDetails payload;
  payload.set_reason(details.reason);
  for (const auto& [key, value] : details.metadata) {
    error::v1::ErrorDetails::Metadatum* datum = payload.add_metadata();
    datum->set_key(key);
    datum->set_value(value);
  }
  if (details.retry_delay.has_value()) {
    payload.set_retry_delay_micros(absl::ToInt64Microseconds(*details.retry_delay));
  }
  for (const auto& violation : details.field_violations) {
    error::v1::ErrorDetails::Violation* out = payload.add_fields();
    out->set_subject(violation.field);
    out->set_description(violation.description);
  }
  for (const auto& violation : details.precondition_violations) {
    error::v1::ErrorDetails::Violation* out = payload.add_preconditions();
    out->set_type(violation.type);
    out->set_subject(violation.subject);
    out->set_description(violation.description);
  }
  for (const auto& violation : details.quota_violations) {
    error::v1::ErrorDetails::Violation* out = payload.add_quotas();
    out->set_subject(violation.subject);
    out->set_description(violation.description);
  }
  absl::Status status(code, message);
  status.SetPayload(kPayloadUrl, absl::Cord(payload.SerializeAsString()));
  return status;
}

std::optional<ErrorDetails> ErrorDetailsOf(const absl::Status& status) {
  const auto bytes = status.GetPayload(kPayloadUrl);
  error::v1::ErrorDetails payload;
  if (!bytes.has_value() || !payload.ParseFromString(std::string(*bytes))) return std::nullopt;
  ErrorDetails details{.reason = payload.reason()};
  for (const auto& datum : payload.metadata()) details.metadata[datum.key()] = datum.value();
  if (payload.has_retry_delay_micros()) {
    details.retry_delay = absl::Microseconds(payload.retry_delay_micros());
  }
  for (const auto& violation : payload.fields()) {
    details.field_violations.push_back({violation.subject(), violation.description()});
  }
  for (const auto& violation : payload.preconditions()) {
    details.precondition_violations.push_back(
        {violation.type(), violation.subject(), violation.description()});
  }
  for (const auto& violation : payload.quotas()) {
    details.quota_violations.push_back({violation.subject(), violation.description()});
  }
  return details;
}

void FieldChecker::Add(absl::string_view field, absl::string_view description) {
  violations_.push_back({std::string(field), std::string(description)});
}

absl::Status FieldChecker::ToStatus(absl::string_view reason) const {
  if (violations_.empty()) return absl::OkStatus();
  std::string message = absl::StrCat(violations_[0].field, ": ", violations_[0].description);
  if (violations_.size() > 1) {
    absl::StrAppend(&message, " (and ", violations_.size() - 1, " more)");
  }
  ErrorDetails details{.reason = std::string(reason)};
  details.field_violations = violations_;
  return ServiceError(absl::StatusCode::kInvalidArgument, message, details);
}

absl::Status JobNotFound(absl::string_view job_id) {
  return ServiceError(absl::StatusCode::kNotFound,
                      absl::StrCat("no job '", Printable(job_id, 64), "'"),
                      {.reason = "JOB_NOT_FOUND"});
}

absl::Status RecordTooNew(absl::string_view what) {
  return ServiceError(absl::StatusCode::kUnavailable,
                      absl::StrCat("a newer npucd stored ", what,
                                   ", which this one does not know; ask another node, and upgrade "
                                   "this one"),
                      {.reason = "RECORD_TOO_NEW"});
}

bool IsRecordTooNew(const absl::Status& status) {
  if (!absl::IsUnavailable(status)) return false;
  const std::optional<ErrorDetails> details = ErrorDetailsOf(status);
  return details.has_value() && details->reason == "RECORD_TOO_NEW";
}

}  // namespace npuc::jobs
