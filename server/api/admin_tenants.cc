// The calls of an operator about tenants: list them, set their limits for a time, rotate tokens.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cache/keys.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "server/api/admin.h"
#include "server/api/audit.h"
#include "server/api/convert.h"
#include "server/jobs/service_error.h"

namespace npuc::api {
namespace {

constexpr absl::Duration kMinLimitsTime = absl::Seconds(1);
constexpr absl::Duration kMaxTime = absl::Hours(24 * 90);
constexpr absl::Duration kDefaultGrace = absl::Hours(24);

// Message: TenantState or TenantLimits; limits have the same names in both.
template <typename Message>
void QuotaToProto(const auth::TenantQuota& quota, Message* out) {
  if (quota.queued_jobs.has_value()) out->set_max_queued_jobs(*quota.queued_jobs);
  if (quota.running_jobs.has_value()) out->set_max_running_jobs(*quota.running_jobs);
  if (quota.job_bytes.has_value()) out->set_max_job_bytes(*quota.job_bytes);
  if (quota.stored_bytes.has_value()) out->set_max_stored_bytes(*quota.stored_bytes);
  if (quota.result_bytes.has_value()) out->set_max_result_bytes(*quota.result_bytes);
  if (quota.upload_rate.has_value()) out->set_max_upload_rate(*quota.upload_rate);
  if (quota.call_rate.has_value()) out->set_max_call_rate(*quota.call_rate);
}

void TenantToProto(const ApiDependencies& deps, const AdminControls::TenantNow& now,
                   v1::TenantState* out) {
  out->set_name(now.tenant.name);
  out->set_weight(now.tenant.weight);
  out->set_queued_jobs(now.queued);
  out->set_running_jobs(now.running);
  out->set_stored_bytes(now.stored_bytes);
  out->set_open_uploads(now.open_uploads);
  QuotaToProto(now.tenant.quota, out);
  const auto entry = deps.admin->limits->Find(now.tenant.name);
  if (!entry.has_value()) return;
  v1::TemporaryLimits* const temporary = out->mutable_temporary();
  if (entry->weight.has_value()) temporary->mutable_limits()->set_weight(*entry->weight);
  QuotaToProto(entry->quota, temporary->mutable_limits());
  api::ToProto(entry->end, temporary->mutable_end_time());
  temporary->set_by(entry->by);
  temporary->set_reason(entry->reason);
}

absl::Status ListTenants(const ApiDependencies& deps, const auth::Caller& caller,
                         const v1::ListTenantsRequest& request, v1::ListTenantsResponse* response) {
  for (const AdminControls::TenantNow& tenant : deps.admin->tenants()) {
    TenantToProto(deps, tenant, response->add_tenants());
  }
  ControlToProto(deps.admin->dispatch->Get(), response->mutable_dispatch());
  ControlToProto(deps, deps.admin->cordon->Get(), response->mutable_cordon());
  return absl::OkStatus();
}

absl::Status GetQuota(const ApiDependencies& deps, const auth::Caller& caller,
                      const v1::GetQuotaRequest& request, v1::GetQuotaResponse* response) {
  TenantToProto(deps, deps.admin->tenant(caller.tenant), response->mutable_tenant());
  return absl::OkStatus();
}

// The limits that the request sets, each within its bounds.
auth::TemporaryLimits::Entry ReadLimits(const v1::TenantLimits& limits, jobs::FieldChecker& check) {
  const auto read = [&check](const char* field, bool is_set, int64_t value, int64_t min,
                             int64_t max) -> std::optional<int64_t> {
    if (!is_set) return std::nullopt;
    if (value < min || value > max) {
      check.Add(absl::StrCat("limits.", field),
                absl::StrCat(value, " is not in ", min, " to ", max));
    }
    return value;
  };
  constexpr int64_t kCount = auth::kMaxTenantCount;
  constexpr int64_t kBytes = auth::kMaxTenantBytes;
  auth::TemporaryLimits::Entry entry;
  const auto weight =
      read("weight", limits.has_weight(), limits.weight(), 1, auth::kMaxTenantWeight);
  if (weight.has_value()) entry.weight = static_cast<int32_t>(*weight);
  auth::TenantQuota& quota = entry.quota;
  quota.queued_jobs =
      read("max_queued_jobs", limits.has_max_queued_jobs(), limits.max_queued_jobs(), 1, kCount);
  quota.running_jobs =
      read("max_running_jobs", limits.has_max_running_jobs(), limits.max_running_jobs(), 1, kCount);
  quota.job_bytes =
      read("max_job_bytes", limits.has_max_job_bytes(), limits.max_job_bytes(), 1, kBytes);
  quota.stored_bytes =
      read("max_stored_bytes", limits.has_max_stored_bytes(), limits.max_stored_bytes(), 1, kBytes);
  quota.result_bytes =
      read("max_result_bytes", limits.has_max_result_bytes(), limits.max_result_bytes(), 1, kBytes);
  quota.upload_rate = read("max_upload_rate", limits.has_max_upload_rate(),
                           limits.max_upload_rate(), auth::kMinUploadRate, kBytes);
  quota.call_rate =
      read("max_call_rate", limits.has_max_call_rate(), limits.max_call_rate(), 1, kCount);
  return entry;
}

// A server without a tenants file has one tenant.
absl::Status CheckTenantIsKnown(const ApiDependencies& deps, const std::string& tenant) {
  const bool is_known = deps.authenticator->needs_identity()
                            ? deps.authenticator->directory()->Find(tenant) != nullptr
                            : tenant == auth::kLocalTenant;
  if (is_known) return absl::OkStatus();
  return jobs::ServiceError(
      absl::StatusCode::kNotFound,
      absl::StrCat("there is no tenant '", tenant, "' in the tenants file; ListTenants has them"),
      {.reason = "TENANT_NOT_FOUND"});
}

absl::Status RunSetTenantLimits(const ApiDependencies& deps, const auth::Caller& caller,
                                const v1::SetTenantLimitsRequest& request) {
  jobs::FieldChecker check;
  CheckTenantName(request.tenant(), check);
  CheckReason(request.reason(), check);
  auth::TemporaryLimits::Entry entry = ReadLimits(request.limits(), check);
  const absl::Duration time = DurationOf(request.duration());
  if (entry.sets_any() && (time < kMinLimitsTime || time > kMaxTime)) {
    check.Add("duration", absl::StrCat(absl::FormatDuration(time), " is not in ",
                                       absl::FormatDuration(kMinLimitsTime), " to ",
                                       absl::FormatDuration(kMaxTime)));
  }
  RETURN_IF_ERROR(check.ToStatus());
  RETURN_IF_ERROR(CheckTenantIsKnown(deps, request.tenant()));
  entry.end = deps.admin->now() + time;
  entry.by = caller.identity;
  entry.reason = request.reason();
  RETURN_IF_ERROR(deps.admin->limits->Set(request.tenant(), std::move(entry)));
  deps.admin->refresh_policies();
  return absl::OkStatus();
}

absl::Status SetTenantLimits(const ApiDependencies& deps, const auth::Caller& caller,
                             const v1::SetTenantLimitsRequest& request,
                             v1::SetTenantLimitsResponse* response) {
  const absl::Status status = RunSetTenantLimits(deps, caller, request);
  const bool has_limits = request.limits().ByteSizeLong() > 0;
  Audit(deps, caller, has_limits ? "admin.limit" : "admin.unlimit", request.tenant(), status,
        has_limits ? absl::StrCat(request.limits().ShortDebugString(), " for ",
                                  absl::FormatDuration(DurationOf(request.duration())), "; ",
                                  request.reason())
                   : request.reason());
  RETURN_IF_ERROR(status);
  TenantToProto(deps, deps.admin->tenant(request.tenant()), response->mutable_tenant());
  return absl::OkStatus();
}

absl::StatusOr<std::optional<absl::Time>> RunRotateToken(const ApiDependencies& deps,
                                                         const v1::RotateTokenRequest& request) {
  jobs::FieldChecker check;
  CheckTenantName(request.tenant(), check);
  if (!cache::IsValidSha256(request.token_sha256())) {
    check.Add("token_sha256", absl::StrCat("a text of ", request.token_sha256().size(),
                                           " bytes is no SHA-256: 64 lower-case hexadecimal "
                                           "digits"));
  }
  const absl::Duration grace = request.has_grace() ? DurationOf(request.grace()) : kDefaultGrace;
  if (grace < absl::ZeroDuration() || grace > kMaxTime) {
    check.Add("grace", absl::StrCat(absl::FormatDuration(grace), " is not in 0 to ",
                                    absl::FormatDuration(kMaxTime)));
  }
  RETURN_IF_ERROR(check.ToStatus());
  const auto directory = deps.authenticator->directory();
  if (!directory->HasIdentity(request.tenant(), request.identity())) {
    return jobs::ServiceError(
        absl::StatusCode::kNotFound,
        absl::StrCat("the tenants file has no identity '", Printable(request.identity(), 80),
                     "' of tenant '", request.tenant(), "'; add it there"),
        {.reason = "IDENTITY_NOT_FOUND"});
  }
  auto rotated = deps.admin->tokens->Rotate(
      {.owner = {.tenant = request.tenant(), .identity = request.identity()},
       .token_sha256 = request.token_sha256(),
       .file_sha256s = directory->TokensOf(request.tenant(), request.identity()),
       .grace = grace},
      [&directory](absl::string_view sha256) { return directory->HasToken(sha256); });
  if (!absl::IsAlreadyExists(rotated.status())) return rotated;
  check.Add("token_sha256", "is that of a token that was given already; make a new one");
  return check.ToStatus();
}

absl::Status RotateToken(const ApiDependencies& deps, const auth::Caller& caller,
                         const v1::RotateTokenRequest& request, v1::RotateTokenResponse* response) {
  const auto end = RunRotateToken(deps, request);
  const bool two = end.ok() && end->has_value();
  Audit(deps, caller, "admin.rotate_token",
        absl::StrCat(request.tenant(), "/", Printable(request.identity(), 80)), end.status(),
        two ? absl::StrCat("the old ones end on ",
                           absl::FormatTime(absl::RFC3339_sec, **end, absl::UTCTimeZone()))
            : "");
  RETURN_IF_ERROR(end.status());
  if (two) api::ToProto(**end, response->mutable_old_tokens_end_time());
  return absl::OkStatus();
}

}  // namespace

void CheckTenantName(absl::string_view tenant, jobs::FieldChecker& check) {
  if (cache::IsValidScope(tenant) && tenant.size() <= auth::kMaxTenantNameChars) return;
  check.Add("tenant", absl::StrCat("'", Printable(tenant, 80), "' is no name of a tenant"));
}

const Method<v1::ListTenantsRequest, v1::ListTenantsResponse> kListTenants = {
    "ListTenants", auth::Right::kAdmin, ListTenants};
const Method<v1::SetTenantLimitsRequest, v1::SetTenantLimitsResponse> kSetTenantLimits = {
    "SetTenantLimits", auth::Right::kAdmin, SetTenantLimits};
const Method<v1::RotateTokenRequest, v1::RotateTokenResponse> kRotateToken = {
    "RotateToken", auth::Right::kAdmin, RotateToken};
const Method<v1::GetQuotaRequest, v1::GetQuotaResponse> kGetQuota = {"GetQuota", std::nullopt,
                                                                     GetQuota};

}  // namespace npuc::api
