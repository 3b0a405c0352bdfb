#include "server/api/status_details.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/jobs/service_error.h"

namespace npuc::api {
namespace {

constexpr char kDomain[] = "npuc";

// Packs a message of npuc.rpc under the name that the world knows it by.
void Pack(const google::protobuf::Message& message, rpc::Status* status) {
  google::protobuf::Any* any = status->add_details();
  any->set_type_url("type.googleapis.com/google.rpc." + message.GetDescriptor()->name());
  message.SerializeToString(any->mutable_value());
}

// Room for a detail's type and lengths, and for the violation that says how many are left out.
constexpr size_t kBytesBesideViolations = 160;

// Adds violations to `message` while it stays within `room`, and packs it.
template <typename Violation, typename Add>
void PackViolations(const std::vector<Violation>& violations, size_t room,
                    const google::protobuf::Message* message, rpc::Status* status, Add add) {
  if (violations.empty()) return;
  for (size_t i = 0; i < violations.size(); ++i) {
    const size_t left = violations.size() - i;
    const size_t next = violations[i].description.size() + kBytesBesideViolations;
    if (left > 1 && message->ByteSizeLong() + next > room) {
      Violation rest = violations[i];
      rest.description = absl::StrCat("and ", left, " more");
      add(rest);
      break;
    }
    add(violations[i]);
  }
  Pack(*message, status);
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

rpc::Status ToStatusProto(const absl::Status& status, size_t max_bytes) {
  jobs::ErrorDetails details = jobs::ErrorDetailsOf(status).value_or(jobs::ErrorDetails{});
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
  const size_t used = out.ByteSizeLong();
  const size_t room = max_bytes > used ? max_bytes - used : 0;
  rpc::BadRequest bad;
  PackViolations(details.field_violations, room, &bad, &out, [&](const auto& violation) {
    auto* entry = bad.add_field_violations();
    entry->set_field(violation.field);
    entry->set_description(violation.description);
  });
  rpc::QuotaFailure quota;
  PackViolations(details.quota_violations, room, &quota, &out, [&](const auto& violation) {
    auto* entry = quota.add_violations();
    entry->set_subject(violation.subject);
    entry->set_description(violation.description);
  });
  rpc::PreconditionFailure precondition;
  PackViolations(details.precondition_violations, room, &precondition, &out,
                 [&](const auto& violation) {
                   auto* entry = precondition.add_violations();
                   entry->set_type(violation.type);
                   entry->set_subject(violation.subject);
                   entry->set_description(violation.description);
                 });
  return out;
}

}  // namespace npuc::api
