#include "server/api/status_details.h"

#include <string>

#include "server/jobs/service_error.h"

namespace npuc {
namespace {

constexpr char kDomain[] = "npuc";

// Packs a message of npuc.rpc under the name that the world knows it by.
void Pack(const google::protobuf::Message& message, rpc::Status* status) {
  google::protobuf::Any* any = status->add_details();
  any->set_type_url("type.googleapis.com/google.rpc." + message.GetDescriptor()->name());
  message.SerializeToString(any->mutable_value());
}

std::string DefaultReason(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
      return "INVALID_FIELD";
    case absl::StatusCode::kResourceExhausted:
      return "STORAGE_FULL";
    case absl::StatusCode::kDataLoss:
      return "STORE_FAILED";
    default:
      return "INTERNAL";
  }
}

}  // namespace

rpc::Status ToStatusProto(const absl::Status& status) {
  ErrorDetails details = ErrorDetailsOf(status).value_or(ErrorDetails{});
  if (details.reason.empty()) details.reason = DefaultReason(status.code());
  rpc::Status out;
  out.set_code(static_cast<int32_t>(status.code()));
  out.set_message(std::string(status.message()));
  rpc::ErrorInfo info;
  info.set_reason(details.reason);
  info.set_domain(kDomain);
  info.mutable_metadata()->insert(details.metadata.begin(), details.metadata.end());
  Pack(info, &out);
  if (details.retry_delay.has_value()) {
    rpc::RetryInfo retry;
    const int64_t milliseconds = absl::ToInt64Milliseconds(*details.retry_delay);
    retry.mutable_retry_delay()->set_seconds(milliseconds / 1000);
    retry.mutable_retry_delay()->set_nanos(static_cast<int32_t>(milliseconds % 1000 * 1'000'000));
    Pack(retry, &out);
  }
  if (!details.field_violations.empty()) {
    rpc::BadRequest bad;
    for (const auto& violation : details.field_violations) {
      auto* entry = bad.add_field_violations();
      entry->set_field(violation.field);
      entry->set_description(violation.description);
    }
    Pack(bad, &out);
  }
  if (!details.quota_violations.empty()) {
    rpc::QuotaFailure failure;
    for (const auto& violation : details.quota_violations) {
      auto* entry = failure.add_violations();
      entry->set_subject(violation.subject);
      entry->set_description(violation.description);
    }
    Pack(failure, &out);
  }
  if (!details.precondition_violations.empty()) {
    rpc::PreconditionFailure failure;
    for (const auto& violation : details.precondition_violations) {
      auto* entry = failure.add_violations();
      entry->set_type(violation.type);
      entry->set_subject(violation.subject);
      entry->set_description(violation.description);
    }
    Pack(failure, &out);
  }
  return out;
}

}  // namespace npuc
