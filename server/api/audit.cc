#include "server/api/audit.h"

#include <string>

#include "server/jobs/service_error.h"
#include "server/log/audit_log.h"

namespace npuc::api {
namespace {

std::string ResultOf(const absl::Status& status) {
  if (status.ok()) return "OK";
  const auto details = jobs::ErrorDetailsOf(status);
  return details.has_value() && !details->reason.empty()
             ? details->reason
             : std::string(absl::StatusCodeToString(status.code()));
}

}  // namespace

void Audit(const ApiDependencies& deps, const auth::Caller& caller, absl::string_view action,
           absl::string_view object, const absl::Status& status, absl::string_view detail) {
  if (deps.audit == nullptr) return;
  deps.audit->Write({.action = action,
                     .identity = caller.identity,
                     .tenant = caller.tenant,
                     .peer = caller.peer,
                     .object = object,
                     .result = ResultOf(status),
                     .detail = detail});
}

void AuditRefusal(const ApiDependencies& deps, absl::string_view peer, absl::string_view method,
                  const absl::Status& status) {
  if (deps.audit == nullptr) return;
  const auto details = jobs::ErrorDetailsOf(status);
  const auto of = [&](const char* key) {
    if (!details.has_value()) return std::string();
    const auto found = details->metadata.find(key);
    return found == details->metadata.end() ? std::string() : found->second;
  };
  const std::string identity = of("identity");
  const std::string tenant = of("tenant");
  deps.audit->Write({.action = "refused",
                     .identity = identity,
                     .tenant = tenant,
                     .peer = peer,
                     .object = method,
                     .result = ResultOf(status),
                     .is_refusal = true});
}

}  // namespace npuc::api
