#include "server/pg/shared_results.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/status.h"

namespace npuc::pg {
namespace {

// A content of a result is its metadata and then its artifacts. Its facts are lines: the SHA-256 of
// all bytes, the size of the metadata, then the size and name of each artifact.
constexpr size_t kMaxResultBytes = size_t{512} << 20;

std::string NameOf(const cache::CacheKey& key) { return absl::StrCat("result/", key.ToString()); }

struct Result {
  std::string bytes;
  size_t metadata_bytes = 0;
  std::vector<std::pair<std::string, size_t>> artifacts = {};  // names and sizes

  std::string Facts() const {
    std::string facts = absl::StrCat(Sha256Hex(bytes), "\n", metadata_bytes);
    for (const auto& [name, size] : artifacts) absl::StrAppend(&facts, "\n", size, " ", name);
    return facts;
  }
};

// False: the bytes are not those that were put.
bool Parse(const std::string& facts, Result& result) {
  const std::vector<std::string> lines = absl::StrSplit(facts, '\n');
  if (lines.size() < 2 || lines[0] != Sha256Hex(result.bytes)) return false;
  size_t total = 0;
  if (!absl::SimpleAtoi(lines[1], &result.metadata_bytes)) return false;
  total = result.metadata_bytes;
  for (size_t i = 2; i < lines.size() && total <= result.bytes.size(); ++i) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(lines[i], absl::MaxSplits(' ', 1));
    size_t size = 0;
    if (!absl::SimpleAtoi(parts.first, &size) || size > result.bytes.size()) return false;
    result.artifacts.emplace_back(parts.second, size);
    total += size;
  }
  return total == result.bytes.size();
}

// A full disk is UNAVAILABLE, as ArtifactCache has it: the result waits for room.
absl::Status Put(Content& content, const cache::CacheKey& key, const Result& result) {
  const absl::Status put = content.Put(
      Content::Kind::kResult, key.scope(), NameOf(key), result.bytes.size(), result.Facts(),
      [&](uint64_t offset, size_t max_bytes) -> absl::StatusOr<std::string> {
        return result.bytes.substr(offset, max_bytes);
      });
  return absl::IsResourceExhausted(put) ? absl::UnavailableError(put.message()) : put;
}

}  // namespace

// False: nobody has it.
absl::StatusOr<bool> SharedResults::Fetch(const cache::CacheKey& key) {
  ASSIGN_OR_RETURN(const auto found, content_->Find(NameOf(key)));
  if (!found.has_value() || found->bytes > kMaxResultBytes) return false;
  Result result;
  const absl::Status read = content_->Read(*found, [&](uint64_t offset, absl::string_view bytes) {
    absl::StrAppend(&result.bytes, bytes);
    return absl::OkStatus();
  });
  if (!read.ok() && !absl::IsDataLoss(read)) return read;
  if (!read.ok() || !Parse(found->facts, result)) {
    RETURN_IF_ERROR(content_->Remove(NameOf(key)));
    return false;
  }
  const absl::string_view all = result.bytes;
  std::vector<cache::ArtifactView> views;
  size_t offset = result.metadata_bytes;
  for (const auto& [name, size] : result.artifacts) {
    views.push_back({.name = name, .bytes = all.substr(offset, size)});
    offset += size;
  }
  RETURN_IF_ERROR(
      local_->Store(key, views, all.substr(0, result.metadata_bytes), nullptr).status());
  return true;
}

absl::Status SharedResults::Share(const cache::CacheKey& key, const cache::CachedResult& stored) {
  Result result{.bytes = stored.metadata, .metadata_bytes = stored.metadata.size()};
  for (const cache::ArtifactInfo& info : stored.artifacts) {
    ASSIGN_OR_RETURN(const auto reader, local_->OpenArtifact(key, info.name));
    for (uint64_t offset = 0; offset < info.size_bytes;) {
      ASSIGN_OR_RETURN(const std::string bytes,
                       reader->Read(offset, cache::ArtifactCache::kMaxReadBytes));
      if (bytes.empty()) return absl::DataLossError(absl::StrCat(info.name, " ends early"));
      result.bytes += bytes;
      offset += bytes.size();
    }
    result.artifacts.emplace_back(info.name, info.size_bytes);
  }
  return Put(*content_, key, result);
}

absl::StatusOr<std::optional<cache::CachedResult>> SharedResults::Lookup(
    const cache::CacheKey& key) {
  ASSIGN_OR_RETURN(auto here, local_->Lookup(key));
  if (here.has_value()) {
    // A job that ends with it needs it on all nodes.
    ASSIGN_OR_RETURN(const auto found, content_->Find(NameOf(key)));
    if (!found.has_value()) RETURN_IF_ERROR(Share(key, *here));
    return here;
  }
  ASSIGN_OR_RETURN(const bool is_here, Fetch(key));
  if (!is_here) return std::nullopt;
  return local_->Lookup(key);
}

absl::StatusOr<std::vector<cache::ArtifactInfo>> SharedResults::Store(
    const cache::CacheKey& key, absl::Span<const cache::ArtifactView> artifacts,
    absl::string_view metadata, const Confirm& confirm) {
  ASSIGN_OR_RETURN(auto infos, local_->Store(key, artifacts, metadata, confirm));
  Result result{.bytes = std::string(metadata), .metadata_bytes = metadata.size()};
  for (const cache::ArtifactView& artifact : artifacts) {
    absl::StrAppend(&result.bytes, artifact.bytes);
    result.artifacts.emplace_back(artifact.name, artifact.bytes.size());
  }
  RETURN_IF_ERROR(Put(*content_, key, result));
  return infos;
}

absl::StatusOr<bool> SharedResults::Remove(const cache::CacheKey& key) {
  ASSIGN_OR_RETURN(const bool was_shared, content_->RemoveUnneeded(NameOf(key)));
  ASSIGN_OR_RETURN(const bool was_here, local_->Remove(key));
  return was_shared || was_here;
}

absl::StatusOr<std::unique_ptr<cache::ArtifactReader>> SharedResults::OpenArtifact(
    const cache::CacheKey& key, absl::string_view name) {
  auto reader = local_->OpenArtifact(key, name);
  if (!absl::IsNotFound(reader.status())) return reader;
  ASSIGN_OR_RETURN(const bool is_here, Fetch(key));
  return is_here ? local_->OpenArtifact(key, name) : std::move(reader);
}

}  // namespace npuc::pg
