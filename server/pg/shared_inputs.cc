#include "server/pg/shared_inputs.h"

#include <fcntl.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache/keys.h"
#include "cache/posix.h"
#include "compiler_core/base/status.h"

namespace npuc::pg {
namespace {

using cache::BlobDigest;
using cache::UploadState;

// Names from clients become names in the database only in these forms.
bool AreNames(absl::string_view scope, absl::string_view sha256) {
  return cache::IsValidScope(scope) && cache::IsValidSha256(sha256);
}

// The size is of the name, since another size is another upload.
std::string PartName(absl::string_view scope, const BlobDigest& digest, uint64_t number) {
  return absl::StrCat("part/", scope, "/", digest.sha256, "/", digest.size_bytes, "/", number);
}

// The last bytes are of no part: with them the upload ends.
uint64_t CountParts(const BlobDigest& digest) {
  return digest.size_bytes == 0 ? 0 : (digest.size_bytes - 1) / SharedInputs::kPartBytes;
}

}  // namespace

absl::Status SharedInputs::Share(absl::string_view scope, const cache::BlobRef& blob) {
  ASSIGN_OR_RETURN(const cache::UniqueFd file, cache::OpenFile(blob.path, O_RDONLY | O_NOFOLLOW));
  return content_->Put(Content::Kind::kBlob, scope, BlobName(scope, blob.info.sha256),
                       blob.info.size_bytes, "", [&](uint64_t offset, size_t max_bytes) {
                         return cache::ReadUpToAt(file.get(), offset, max_bytes, blob.path);
                       });
}

absl::Status SharedInputs::Fetch(absl::string_view scope, absl::string_view sha256,
                                 const Content::Info& info) {
  const MutexLock lock(fetch_mutex_);
  const BlobDigest digest{.sha256 = std::string(sha256), .size_bytes = info.bytes};
  while (true) {
    ASSIGN_OR_RETURN(const UploadState state, local_->BeginUpload(scope, digest));
    if (state.complete) return absl::OkStatus();
    const absl::Status read = content_->Read(info, [&](uint64_t offset, absl::string_view bytes) {
      // A part that an upload has brought already is skipped.
      return local_->Append(scope, digest, offset, bytes).status();
    });
    if (absl::IsDataLoss(read)) {
      RETURN_IF_ERROR(content_->RemoveDamaged(BlobName(scope, sha256), info));
    }
    RETURN_IF_ERROR(read);
    const absl::Status committed = local_->Commit(scope, digest).status();
    if (!absl::IsInvalidArgument(committed)) return committed;
    // Other bytes than those of its name, which ends the local upload. The wrong ones may be those
    // that it had.
    if (state.committed_bytes == 0) break;
  }
  // It must be uploaded again.
  RETURN_IF_ERROR(content_->RemoveDamaged(BlobName(scope, sha256), info));
  return absl::NotFoundError(absl::StrCat("blob ", sha256, " is damaged in the shared store"));
}

bool SharedInputs::IsKept(const std::string& name) {
  const MutexLock lock(kept_mutex_);
  const auto found = kept_.find(name);
  return found != kept_.end() && std::chrono::steady_clock::now() < found->second;
}

void SharedInputs::SetKept(const std::string& name) {
  constexpr std::chrono::minutes kAge(1);
  constexpr size_t kMaxNames = 10000;
  const MutexLock lock(kept_mutex_);
  if (kept_.size() >= kMaxNames) kept_.clear();
  kept_[name] = SteadyTimeAfter(kAge);
}

absl::StatusOr<cache::BlobRef> SharedInputs::Acquire(absl::string_view scope,
                                                     absl::string_view sha256) {
  absl::StatusOr<cache::BlobRef> held = local_->Acquire(scope, sha256);
  if ((!held.ok() && !absl::IsNotFound(held.status())) || !AreNames(scope, sha256)) return held;
  // A user of the blob keeps it for the other nodes.
  const std::string name = BlobName(scope, sha256);
  if (held.ok() && IsKept(name)) return held;
  ASSIGN_OR_RETURN(const auto found, content_->Find(name));
  if (held.ok()) {
    if (!found.has_value()) RETURN_IF_ERROR(Share(scope, *held));
    SetKept(name);
    return held;
  }
  if (!found.has_value()) return held;
  const absl::Status fetched = Fetch(scope, sha256, *found);
  if (absl::IsDataLoss(fetched)) {
    return absl::NotFoundError(absl::StrCat("blob ", sha256, " went: ", fetched.message()));
  }
  // This node has no room. Another one may have, or this one later: no job is to fail.
  if (absl::IsResourceExhausted(fetched)) return absl::UnavailableError(fetched.message());
  RETURN_IF_ERROR(fetched);
  return local_->Acquire(scope, sha256);
}

absl::StatusOr<bool> SharedInputs::IsShared(absl::string_view scope, const BlobDigest& digest) {
  if (!AreNames(scope, digest.sha256)) return false;
  ASSIGN_OR_RETURN(const auto found, content_->Find(BlobName(scope, digest.sha256)));
  return found.has_value() && found->bytes == digest.size_bytes;
}

absl::StatusOr<std::vector<BlobDigest>> SharedInputs::FindMissing(
    absl::string_view scope, absl::Span<const BlobDigest> digests) {
  ASSIGN_OR_RETURN(std::vector<BlobDigest> missing, local_->FindMissing(scope, digests));
  std::vector<std::string> names;
  for (const BlobDigest& digest : missing) names.push_back(BlobName(scope, digest.sha256));
  if (names.empty()) return missing;
  ASSIGN_OR_RETURN(const auto found, content_->FindAll(names));
  std::erase_if(missing, [&](const BlobDigest& digest) {
    const auto shared = found.find(BlobName(scope, digest.sha256));
    return shared != found.end() && shared->second.bytes == digest.size_bytes;
  });
  return missing;
}

// Unneeded contents go for one that comes; what live jobs need stays.
absl::Status SharedInputs::MakeRoom(absl::string_view scope, uint64_t size) {
  if (scope == options_.own_scope) return absl::OkStatus();
  const uint64_t limit =
      options_.scope_limit == nullptr ? cache::BlobStore::kNoLimit : options_.scope_limit(scope);
  if (limit != cache::BlobStore::kNoLimit) {
    const uint64_t most = limit - std::min(limit, size);
    ASSIGN_OR_RETURN(const uint64_t in_use, content_->MakeRoomIn(scope, most));
    if (size > limit || in_use > most) {
      return cache::OverScopeLimit(
          cache::ScopeLimit::kBytes,
          absl::StrCat(size, " bytes do not fit in the ", limit,
                       " bytes that this tenant may store: its live jobs, and what it used in the "
                       "last two hours, need ",
                       in_use));
    }
  }
  const uint64_t most = options_.max_bytes - std::min(options_.max_bytes, size);
  ASSIGN_OR_RETURN(const uint64_t in_use, content_->MakeRoom(most));
  if (size <= options_.max_bytes && in_use <= most) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("shared content: ", size, " bytes do not fit: ", in_use, " of ",
                   options_.max_bytes, " bytes (--cluster-content-mib) are in use; try later"));
}

absl::StatusOr<UploadState> SharedInputs::BeginUpload(absl::string_view scope,
                                                      const BlobDigest& digest) {
  ASSIGN_OR_RETURN(const bool is_shared, IsShared(scope, digest));
  if (!is_shared) {
    ASSIGN_OR_RETURN(const auto parts, FindParts(scope, digest, 0));
    if (AreNames(scope, digest.sha256)) {
      RETURN_IF_ERROR(MakeRoom(scope, digest.size_bytes - parts.size() * kPartBytes));
    }
    ASSIGN_OR_RETURN(UploadState state, local_->BeginUpload(scope, digest));
    RETURN_IF_ERROR(FetchParts(scope, digest, parts, &state));
    return state;
  }
  return UploadState{.committed_bytes = digest.size_bytes, .complete = true};
}

absl::StatusOr<std::vector<Content::Info>> SharedInputs::FindParts(absl::string_view scope,
                                                                   const BlobDigest& digest,
                                                                   uint64_t first) {
  std::vector<Content::Info> parts;
  std::vector<std::string> names;
  for (uint64_t i = first; i < CountParts(digest); ++i) names.push_back(PartName(scope, digest, i));
  if (names.empty() || !AreNames(scope, digest.sha256)) return parts;
  ASSIGN_OR_RETURN(const auto found, content_->FindAll(names));
  for (const std::string& name : names) {
    const auto part = found.find(name);
    if (part == found.end() || part->second.bytes != kPartBytes) break;
    parts.push_back(part->second);
  }
  return parts;
}

absl::Status SharedInputs::SharePart(absl::string_view scope, const BlobDigest& digest,
                                     uint64_t number) {
  RETURN_IF_ERROR(MakeRoom(scope, kPartBytes));
  return content_->Put(Content::Kind::kPart, scope, PartName(scope, digest, number), kPartBytes, "",
                       [&](uint64_t offset, size_t max_bytes) {
                         return local_->ReadUpload(scope, digest, number * kPartBytes + offset,
                                                   max_bytes);
                       });
}

absl::StatusOr<UploadState> SharedInputs::Append(absl::string_view scope, const BlobDigest& digest,
                                                 uint64_t offset, absl::string_view bytes) {
  ASSIGN_OR_RETURN(const UploadState state, local_->Append(scope, digest, offset, bytes));
  if (state.complete || !AreNames(scope, digest.sha256)) return state;
  const uint64_t whole = std::min(state.committed_bytes / kPartBytes, CountParts(digest));
  for (uint64_t i = offset / kPartBytes; i < whole; ++i) {
    // Without a part more is sent again, where the upload goes on at another node; that is all.
    if (!SharePart(scope, digest, i).ok()) break;
  }
  return state;
}

// A part that is damaged goes, and those behind it are of no use here.
absl::Status SharedInputs::FetchParts(absl::string_view scope, const BlobDigest& digest,
                                      const std::vector<Content::Info>& parts, UploadState* state) {
  if (state->complete) return absl::OkStatus();
  for (size_t number = state->committed_bytes / kPartBytes; number < parts.size(); ++number) {
    const absl::Status read = content_->Read(
        parts[number], [&](uint64_t offset, absl::string_view bytes) -> absl::Status {
          ASSIGN_OR_RETURN(*state,
                           local_->Append(scope, digest, number * kPartBytes + offset, bytes));
          return absl::OkStatus();
        });
    if (absl::IsDataLoss(read)) {
      return content_->RemoveDamaged(PartName(scope, digest, number), parts[number]);
    }
    RETURN_IF_ERROR(read);
  }
  return absl::OkStatus();
}

absl::Status SharedInputs::RemoveParts(absl::string_view scope, const BlobDigest& digest) {
  ASSIGN_OR_RETURN(const auto parts, FindParts(scope, digest, 0));
  for (uint64_t i = 0; i < parts.size(); ++i) {
    RETURN_IF_ERROR(content_->Remove(PartName(scope, digest, i)));
  }
  return absl::OkStatus();
}

absl::StatusOr<UploadState> SharedInputs::QueryUpload(absl::string_view scope,
                                                      const BlobDigest& digest) {
  ASSIGN_OR_RETURN(const bool is_shared, IsShared(scope, digest));
  if (is_shared) return UploadState{.committed_bytes = digest.size_bytes, .complete = true};
  absl::StatusOr<UploadState> state = local_->QueryUpload(scope, digest);
  if (!state.ok() && !absl::IsNotFound(state.status())) return state;
  const uint64_t here = state.ok() ? state->committed_bytes : 0;
  ASSIGN_OR_RETURN(const auto parts, FindParts(scope, digest, here / kPartBytes));
  if (parts.empty()) return state;
  // BeginUpload fetches them.
  const uint64_t shared = (here / kPartBytes + parts.size()) * kPartBytes;
  return UploadState{.committed_bytes = std::max(here, shared), .complete = false};
}

// Committed is what every node has.
absl::StatusOr<cache::BlobInfo> SharedInputs::Commit(absl::string_view scope,
                                                     const BlobDigest& digest) {
  const absl::StatusOr<cache::BlobInfo> info = local_->Commit(scope, digest);
  // Other bytes than those of its name: all are sent again.
  if (absl::IsInvalidArgument(info.status())) RETURN_IF_ERROR(RemoveParts(scope, digest));
  RETURN_IF_ERROR(info.status());
  ASSIGN_OR_RETURN(const cache::BlobRef held, local_->Acquire(scope, digest.sha256));
  RETURN_IF_ERROR(Share(scope, held));
  RETURN_IF_ERROR(RemoveParts(scope, digest));
  return info;
}

absl::Status SharedInputs::Remove(absl::string_view scope, absl::string_view sha256) {
  if (!AreNames(scope, sha256)) return local_->Remove(scope, sha256);
  const std::string name = BlobName(scope, sha256);
  ASSIGN_OR_RETURN(const bool was_shared, content_->RemoveUnneeded(name));
  {
    const MutexLock lock(kept_mutex_);
    kept_.erase(name);
  }
  const absl::Status removed = local_->Remove(scope, sha256);
  return was_shared && absl::IsNotFound(removed) ? absl::OkStatus() : removed;
}

absl::Status SharedInputs::Verify(absl::string_view scope, absl::string_view sha256) {
  const absl::Status verified = local_->Verify(scope, sha256);
  if (!absl::IsDataLoss(verified)) return verified;
  return Acquire(scope, sha256).ok() ? absl::OkStatus() : verified;
}

}  // namespace npuc::pg
