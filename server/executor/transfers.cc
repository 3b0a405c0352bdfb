#include "server/executor/transfers.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "server/auth/call_rates.h"
#include "server/jobs/service_error.h"

namespace npuc::executor {
namespace {

absl::Status CheckDigest(const cache::BlobDigest& digest, absl::string_view field) {
  if (cache::IsValidSha256(digest.sha256)) return absl::OkStatus();
  jobs::FieldChecker check;
  check.Add(absl::StrCat(field, ".sha256"), absl::StrCat("'", Printable(digest.sha256, 80),
                                                         "' is not 64 lower-case hexadecimal "
                                                         "digits"));
  return check.ToStatus();
}

absl::Status QuotaExceeded(absl::string_view quota, uint64_t size_bytes,
                           absl::string_view message) {
  return jobs::ServiceError(
      absl::StatusCode::kResourceExhausted, message,
      {.reason = "QUOTA_EXCEEDED",
       .quota_violations = {
           {std::string(quota), absl::StrCat("an upload of ", size_bytes, " bytes")}}});
}

absl::Status StorageError(const cache::BlobDigest& digest, const absl::Status& status) {
  switch (cache::ScopeLimitOf(status)) {
    case cache::ScopeLimit::kNone:
      break;
    case cache::ScopeLimit::kBytes:
      return QuotaExceeded("stored_bytes", digest.size_bytes, status.message());
    case cache::ScopeLimit::kOpenUploads:
      return QuotaExceeded("open_uploads", digest.size_bytes, status.message());
  }
  if (absl::IsResourceExhausted(status)) {
    return jobs::ServiceError(absl::StatusCode::kResourceExhausted, status.message(),
                              {.reason = "STORAGE_FULL", .retry_delay = absl::Seconds(30)});
  }
  if (absl::IsInvalidArgument(status)) {
    return jobs::ServiceError(absl::StatusCode::kInvalidArgument, status.message(),
                              {.reason = "INVALID_FIELD"});
  }
  return status;
}

absl::Status ArtifactLost(const absl::Status& status) {
  return jobs::ServiceError(absl::StatusCode::kDataLoss,
                            absl::StrCat("the artifact can no longer be read: ", status.message(),
                                         "; submit the job again"),
                            {.reason = "ARTIFACT_LOST"});
}

}  // namespace

absl::StatusOr<std::vector<cache::BlobDigest>> Uploads::FindMissing(
    const std::string& tenant, const std::vector<cache::BlobDigest>& digests) {
  jobs::FieldChecker check;
  if (digests.size() > kMaxDigestsPerCall) {
    check.Add("digests", absl::StrCat(digests.size(), " entries, at most ", kMaxDigestsPerCall,
                                      " are allowed"));
    return check.ToStatus();
  }
  std::vector<cache::BlobDigest> once;
  std::set<std::pair<std::string, uint64_t>> seen;
  for (size_t i = 0; i < digests.size(); ++i) {
    RETURN_IF_ERROR(CheckDigest(digests[i], absl::StrCat("digests[", i, "]")));
    if (seen.emplace(digests[i].sha256, digests[i].size_bytes).second) once.push_back(digests[i]);
  }
  return inputs_->FindMissing(tenant, once);
}

absl::StatusOr<cache::UploadState> Uploads::Query(const std::string& tenant,
                                                  const cache::BlobDigest& digest) {
  RETURN_IF_ERROR(CheckDigest(digest, "digest"));
  const auto state = inputs_->QueryUpload(tenant, digest);
  if (absl::IsNotFound(state.status())) return cache::UploadState{};
  return state;
}

absl::StatusOr<cache::UploadState> Uploads::Begin(const std::string& tenant,
                                                  const cache::BlobDigest& digest) {
  RETURN_IF_ERROR(CheckDigest(digest, "digest"));
  const std::optional<int64_t> limit = QuotaOf(tenant).job_bytes;
  if (limit.has_value() && digest.size_bytes > static_cast<uint64_t>(*limit)) {
    return QuotaExceeded("job_bytes", digest.size_bytes,
                         absl::StrCat("the file has ", digest.size_bytes,
                                      " bytes, and a job of "
                                      "tenant '",
                                      tenant, "' may have ", *limit, " in all"));
  }
  const auto state = inputs_->BeginUpload(tenant, digest);
  if (!state.ok()) return UploadError(tenant, digest, state.status());
  // All bytes may have come before a restart that was before the commit; an empty blob has none.
  return CommitIfWhole(tenant, digest, *state);
}

absl::Status Uploads::CheckRate(const std::string& tenant, size_t bytes) {
  const std::optional<int64_t> rate = QuotaOf(tenant).bytes_per_second;
  if (!rate.has_value()) return absl::OkStatus();
  // Two chunks of the largest size at least: one is let in whenever half is there.
  const int64_t burst = std::max<int64_t>(*rate * kRateBurstSeconds,
                                          int64_t{2} * static_cast<int64_t>(kMaxChunkBytes));
  const auto wait = rates_.Take(tenant, static_cast<int64_t>(bytes), *rate, burst);
  if (!wait.has_value()) return absl::OkStatus();
  const std::string allowed = absl::StrCat(*rate, " bytes a second");
  return auth::RateExceeded(
      absl::StrCat("tenant '", tenant, "' may upload ", allowed, "; go on in "), *wait,
      "upload_rate", allowed);
}

absl::StatusOr<cache::UploadState> Uploads::Append(const std::string& tenant,
                                                   const cache::BlobDigest& digest, int64_t offset,
                                                   absl::string_view bytes) {
  jobs::FieldChecker check;
  if (offset < 0) check.Add("offset", absl::StrCat(offset, " is negative"));
  if (bytes.size() > kMaxChunkBytes) {
    check.Add("data", absl::StrCat("has ", bytes.size(), " bytes, at most ", kMaxChunkBytes,
                                   " are allowed"));
  }
  RETURN_IF_ERROR(check.ToStatus());
  RETURN_IF_ERROR(CheckRate(tenant, bytes.size()));
  const auto state = inputs_->Append(tenant, digest, static_cast<uint64_t>(offset), bytes);
  if (state.ok()) return CommitIfWhole(tenant, digest, *state);
  return UploadError(tenant, digest, state.status());
}

absl::Status Uploads::UploadError(const std::string& tenant, const cache::BlobDigest& digest,
                                  const absl::Status& status) {
  // A gap, or the upload is not the one that this client began: another client's stream of the same
  // blob, with wrong bytes, ended it.
  if (!absl::IsOutOfRange(status) && !absl::IsNotFound(status) &&
      !absl::IsFailedPrecondition(status)) {
    return StorageError(digest, status);
  }
  jobs::ErrorDetails details{.reason = "OFFSET_MISMATCH"};
  if (const auto now = Query(tenant, digest); now.ok()) {
    details.metadata["committed_bytes"] = absl::StrCat(now->committed_bytes);
  }
  return jobs::ServiceError(absl::StatusCode::kOutOfRange, status.message(), details);
}

absl::StatusOr<cache::UploadState> Uploads::CommitIfWhole(const std::string& tenant,
                                                          const cache::BlobDigest& digest,
                                                          cache::UploadState state) {
  if (state.complete || state.committed_bytes < digest.size_bytes) return state;
  const auto committed = inputs_->Commit(tenant, digest);
  if (absl::IsInvalidArgument(committed.status())) {
    return jobs::ServiceError(absl::StatusCode::kInvalidArgument, committed.status().message(),
                              {.reason = "DIGEST_MISMATCH"});
  }
  if (!committed.ok()) return UploadError(tenant, digest, committed.status());
  return cache::UploadState{.committed_bytes = committed->size_bytes, .complete = true};
}

absl::StatusOr<std::unique_ptr<cache::ArtifactReader>> Downloads::Open(
    const jobs::Job& job, absl::string_view artifact_name, int64_t offset) {
  if (offset < 0) {
    jobs::FieldChecker check;
    check.Add("offset", absl::StrCat(offset, " is negative"));
    return check.ToStatus();
  }
  if (job.state != jobs::JobState::kSucceeded) {
    return jobs::ServiceError(
        absl::StatusCode::kFailedPrecondition,
        absl::StrCat("job ", job.id, " is ", jobs::JobStateName(job.state),
                     "; only jobs that SUCCEEDED have artifacts"),
        {.reason = "JOB_NOT_SUCCEEDED",
         .metadata = {{"state", std::string(jobs::JobStateName(job.state))}}});
  }
  const auto listed = std::find_if(
      job.artifacts.begin(), job.artifacts.end(),
      [&](const jobs::JobArtifact& artifact) { return artifact.name == artifact_name; });
  if (listed == job.artifacts.end()) {
    return jobs::ServiceError(
        absl::StatusCode::kNotFound,
        absl::StrCat("job ", job.id, " has no artifact '", Printable(artifact_name), "'"),
        {.reason = "ARTIFACT_NOT_FOUND"});
  }
  if (static_cast<uint64_t>(offset) > listed->size_bytes) {
    return jobs::ServiceError(absl::StatusCode::kOutOfRange,
                              absl::StrCat("offset ", offset, " is past the end of ", listed->name,
                                           ", which has ", listed->size_bytes, " bytes"),
                              {.reason = "OFFSET_PAST_END"});
  }
  ASSIGN_OR_RETURN(const cache::CacheKey key, cache::CacheKey::Parse(job.cache_key));
  auto reader = cache_->OpenArtifact(key, artifact_name);
  // A store that is away may have it.
  if (absl::IsUnavailable(reader.status())) {
    return jobs::ServiceError(
        absl::StatusCode::kUnavailable,
        absl::StrCat("the artifact cannot be read now: ", reader.status().message()),
        {.reason = "STORE_FAILED", .retry_delay = absl::Seconds(2)});
  }
  if (!reader.ok() && remake_ != nullptr) {
    const absl::Status remade = remake_(job);
    if (absl::IsUnavailable(remade)) {
      return jobs::ServiceError(absl::StatusCode::kResourceExhausted, remade.message(),
                                {.reason = "SERVER_BUSY", .retry_delay = absl::Seconds(1)});
    }
    if (remade.ok()) reader = cache_->OpenArtifact(key, artifact_name);
  }
  if (!reader.ok()) return ArtifactLost(reader.status());
  // A later job with no_cache overwrites the result; then this job's bytes are gone.
  if ((*reader)->info().sha256 != listed->sha256) {
    return ArtifactLost(absl::DataLossError("a later compile replaced it"));
  }
  return reader;
}

absl::StatusOr<std::string> Downloads::Read(cache::ArtifactReader& reader, uint64_t offset) {
  auto bytes = reader.Read(offset, cache::ArtifactCache::kChunkBytes);
  if (!bytes.ok()) return ArtifactLost(bytes.status());
  return bytes;
}

}  // namespace npuc::executor
