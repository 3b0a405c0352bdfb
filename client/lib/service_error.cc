#include "client/lib/service_error.h"

#include <algorithm>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "npuc/rpc/status_details.pb.h"

namespace npuc::client {
namespace {

constexpr absl::string_view kPayload = "type.googleapis.com/google.rpc.Status";
constexpr size_t kMaxDetailsBytes = 64 << 10;
constexpr size_t kMaxProblemBytes = 2000;

absl::Duration ToDuration(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

// Strings come from the server and go to a terminal.
std::string Safe(absl::string_view text) { return Printable(text, kMaxProblemBytes); }

void Read(const google::protobuf::Any& detail, ServiceError& error) {
  const absl::string_view type = detail.type_url();
  if (absl::EndsWith(type, "google.rpc.ErrorInfo")) {
    npuc::rpc::ErrorInfo info;
    if (!info.ParseFromString(detail.value()) || info.domain() != "npuc") return;
    error.reason = Safe(info.reason());
    for (const auto& [key, value] : info.metadata()) error.metadata[key] = Safe(value);
  } else if (absl::EndsWith(type, "google.rpc.RetryInfo")) {
    npuc::rpc::RetryInfo info;
    if (!info.ParseFromString(detail.value())) return;
    error.retry_delay = std::max(ToDuration(info.retry_delay()), absl::ZeroDuration());
  } else if (absl::EndsWith(type, "google.rpc.BadRequest")) {
    npuc::rpc::BadRequest bad;
    if (!bad.ParseFromString(detail.value())) return;
    for (const auto& violation : bad.field_violations()) {
      error.problems.push_back(
          Safe(violation.field().empty()
                   ? violation.description()
                   : absl::StrCat(violation.field(), ": ", violation.description())));
    }
  } else if (absl::EndsWith(type, "google.rpc.PreconditionFailure")) {
    npuc::rpc::PreconditionFailure failure;
    if (!failure.ParseFromString(detail.value())) return;
    for (const auto& violation : failure.violations()) {
      error.problems.push_back(Safe(
          absl::StrCat(violation.type(), " ", violation.subject(), ": ", violation.description())));
    }
  }
}

}  // namespace

ServiceError ServiceErrorOf(const absl::Status& status) {
  ServiceError error;
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayload);
  npuc::rpc::Status details;
  if (!payload.has_value() || !details.ParseFromString(std::string(*payload))) return error;
  for (const google::protobuf::Any& detail : details.details()) Read(detail, error);
  return error;
}

absl::Status WithServiceError(absl::StatusCode code, absl::string_view message,
                              absl::string_view serialized) {
  absl::Status status(code, Safe(message));
  npuc::rpc::Status details;
  if (!serialized.empty() && serialized.size() <= kMaxDetailsBytes &&
      details.ParseFromString(std::string(serialized))) {
    status.SetPayload(kPayload, absl::Cord(serialized));
  }
  return status;
}

}  // namespace npuc::client
