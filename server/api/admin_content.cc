// The calls of an operator about uploads and results: drop open uploads, evict stored content.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cache/keys.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "server/api/admin.h"
#include "server/api/audit.h"
#include "server/api/convert.h"
#include "server/jobs/service_error.h"

namespace npuc::api {
namespace {

constexpr size_t kMaxShownBytes = 200;

absl::Status RunDropUploads(const ApiDependencies& deps, const v1::DropUploadsRequest& request,
                            v1::DropUploadsResponse* response) {
  jobs::FieldChecker check;
  if (!request.tenant().empty()) CheckTenantName(request.tenant(), check);
  CheckReason(request.reason(), check);
  const absl::Duration idle = DurationOf(request.idle());
  if (idle < absl::ZeroDuration()) {
    check.Add("idle", absl::StrCat(absl::FormatDuration(idle), " is negative"));
  }
  RETURN_IF_ERROR(check.ToStatus());
  const cache::BlobStore::Dropped dropped = deps.admin->drop_uploads(request.tenant(), idle);
  response->set_dropped(static_cast<int64_t>(dropped.uploads));
  response->set_dropped_bytes(static_cast<int64_t>(dropped.bytes));
  return absl::OkStatus();
}

absl::Status DropUploads(const ApiDependencies& deps, const auth::Caller& caller,
                         const v1::DropUploadsRequest& request, v1::DropUploadsResponse* response) {
  const absl::Status status = RunDropUploads(deps, request, response);
  const std::string of =
      request.tenant().empty() ? "of all tenants" : Printable(request.tenant(), kMaxShownBytes);
  Audit(deps, caller, "admin.drop_uploads", of, status,
        absl::StrCat(response->dropped(), " dropped; ", request.reason()));
  return status;
}

absl::Status EvictBlob(const ApiDependencies& deps, const v1::EvictContentRequest& request,
                       v1::EvictContentResponse* response) {
  std::vector<std::string> tenants = {request.tenant()};
  if (request.tenant().empty()) {
    tenants.clear();
    for (const auto& now : deps.admin->tenants()) tenants.push_back(now.tenant.name);
  }
  absl::Status in_use;
  for (const std::string& tenant : tenants) {
    const absl::Status removed = deps.admin->inputs->Remove(tenant, request.blob_sha256());
    if (absl::IsNotFound(removed)) continue;
    if (absl::IsFailedPrecondition(removed)) {
      in_use = jobs::ServiceError(
          absl::StatusCode::kFailedPrecondition,
          absl::StrCat("a job of tenant '", tenant,
                       "' that waits or runs needs the blob; cancel the job, or wait for its end"),
          {.reason = "BLOB_IN_USE"});
      continue;
    }
    RETURN_IF_ERROR(removed);
    response->add_evicted(absl::StrCat(tenant, "/", request.blob_sha256()));
  }
  return in_use;
}

absl::StatusOr<cache::CacheKey> KeyOf(const ApiDependencies& deps,
                                      const v1::EvictContentRequest& request) {
  if (!request.has_job_id()) return cache::CacheKey::Parse(request.result_key());
  ASSIGN_OR_RETURN(const auto job, deps.jobs->Get(request.job_id()));
  return cache::CacheKey::Parse(job->cache_key);
}

absl::Status RunEvict(const ApiDependencies& deps, const v1::EvictContentRequest& request,
                      v1::EvictContentResponse* response) {
  jobs::FieldChecker check;
  CheckReason(request.reason(), check);
  if (!request.tenant().empty()) CheckTenantName(request.tenant(), check);
  switch (request.content_case()) {
    case v1::EvictContentRequest::kBlobSha256:
      if (!cache::IsValidSha256(request.blob_sha256())) {
        check.Add("blob_sha256", absl::StrCat("'", Printable(request.blob_sha256(), 80),
                                              "' is not 64 lower-case hexadecimal digits"));
      }
      break;
    case v1::EvictContentRequest::kResultKey:
      if (!cache::CacheKey::Parse(request.result_key()).ok()) {
        check.Add("result_key", absl::StrCat("'", Printable(request.result_key(), 160),
                                             "' is no scope, '/' and 64 hexadecimal digits"));
      }
      break;
    case v1::EvictContentRequest::kJobId:
      RETURN_IF_ERROR(CheckJobId(request.job_id()));
      break;
    case v1::EvictContentRequest::CONTENT_NOT_SET:
      check.Add("content", "is missing: give blob_sha256, result_key or job_id");
  }
  RETURN_IF_ERROR(check.ToStatus());
  if (request.has_blob_sha256()) return EvictBlob(deps, request, response);
  ASSIGN_OR_RETURN(const cache::CacheKey key, KeyOf(deps, request));
  ASSIGN_OR_RETURN(const bool was_there, deps.admin->results->Remove(key));
  if (was_there) response->add_evicted(key.ToString());
  return absl::OkStatus();
}

std::string ObjectOf(const v1::EvictContentRequest& request) {
  if (request.has_blob_sha256()) {
    return absl::StrCat("blob ", request.tenant().empty() ? "*" : request.tenant(), "/",
                        request.blob_sha256());
  }
  return request.has_job_id() ? absl::StrCat("result of ", request.job_id())
                              : absl::StrCat("result ", request.result_key());
}

absl::Status EvictContent(const ApiDependencies& deps, const auth::Caller& caller,
                          const v1::EvictContentRequest& request,
                          v1::EvictContentResponse* response) {
  const absl::Status status = RunEvict(deps, request, response);
  Audit(deps, caller, "admin.evict", Printable(ObjectOf(request), kMaxShownBytes), status,
        absl::StrCat(response->evicted_size(), " evicted; ", request.reason()));
  return status;
}

}  // namespace

const Method<v1::DropUploadsRequest, v1::DropUploadsResponse> kDropUploads = {
    "DropUploads", auth::Right::kAdmin, DropUploads};
const Method<v1::EvictContentRequest, v1::EvictContentResponse> kEvictContent = {
    "EvictContent", auth::Right::kAdmin, EvictContent};

}  // namespace npuc::api
