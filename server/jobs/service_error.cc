#include "server/jobs/service_error.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "server/jobs/field_codec.h"

namespace npuc {
namespace {

constexpr char kPayloadUrl[] = "npuc/error_details";

enum Tag : uint32_t {
  kReason = 1,
  kMetadata = 2,
  kRetryMs = 3,
  kField = 4,
  kPrecondition = 5,
  kQuota = 6
};

}  // namespace

absl::Status ServiceError(absl::StatusCode code, absl::string_view message,
                          const ErrorDetails& details) {
  FieldWriter writer;
  writer.Bytes(kReason, details.reason);
  for (const auto& [key, value] : details.metadata) {
    FieldWriter pair;
    pair.Bytes(1, key);
    pair.Bytes(2, value);
    writer.Bytes(kMetadata, pair.str());
  }
  if (details.retry_delay.has_value()) {
    writer.Int(kRetryMs, absl::ToInt64Milliseconds(*details.retry_delay));
  }
  for (const auto& violation : details.field_violations) {
    FieldWriter nested;
    nested.Bytes(1, violation.field);
    nested.Bytes(2, violation.description);
    writer.Bytes(kField, nested.str());
  }
  for (const auto& violation : details.precondition_violations) {
    FieldWriter nested;
    nested.Bytes(1, violation.type);
    nested.Bytes(2, violation.subject);
    nested.Bytes(3, violation.description);
    writer.Bytes(kPrecondition, nested.str());
  }
  for (const auto& violation : details.quota_violations) {
    FieldWriter nested;
    nested.Bytes(1, violation.subject);
    nested.Bytes(2, violation.description);
    writer.Bytes(kQuota, nested.str());
  }
  absl::Status status(code, message);
  status.SetPayload(kPayloadUrl, absl::Cord(writer.str()));
  return status;
}

std::optional<ErrorDetails> ErrorDetailsOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayloadUrl);
  if (!payload.has_value()) return std::nullopt;
  const std::string bytes(*payload);
  ErrorDetails details;
  FieldReader reader(bytes);
  while (reader.Next()) {
    // The three strings of a nested record; which of them are used depends on the tag.
    std::string parts[3];
    if (reader.tag() == kMetadata || reader.tag() == kField || reader.tag() == kPrecondition ||
        reader.tag() == kQuota) {
      FieldReader nested(reader.bytes());
      while (nested.Next()) {
        if (nested.tag() >= 1 && nested.tag() <= 3) {
          parts[nested.tag() - 1] = std::string(nested.bytes());
        }
      }
    }
    switch (reader.tag()) {
      case kReason:
        details.reason = std::string(reader.bytes());
        break;
      case kMetadata:
        details.metadata[parts[0]] = parts[1];
        break;
      case kRetryMs:
        details.retry_delay = absl::Milliseconds(reader.integer());
        break;
      case kField:
        details.field_violations.push_back({parts[0], parts[1]});
        break;
      case kPrecondition:
        details.precondition_violations.push_back({parts[0], parts[1], parts[2]});
        break;
      case kQuota:
        details.quota_violations.push_back({parts[0], parts[1]});
        break;
      default:
        break;
    }
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

}  // namespace npuc
