#include "server/pg/shared_results.h"

#include <zstd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/status.h"

namespace npuc::pg {
namespace {

// A content of a result is its metadata and then its artifacts. Its facts are lines: kPacked where
// Zstandard has packed the bytes, the SHA-256 of all bytes, the size of the metadata, then the size
// and name of each artifact.
constexpr size_t kMaxResultBytes = size_t{512} << 20;
constexpr char kPacked[] = "zstd";
// Texts of numbers become a fifth; the next levels gain a tenth of that in twice the time.
constexpr int kPackLevel = 1;

std::string NameOf(const cache::CacheKey& key) { return absl::StrCat("result/", key.ToString()); }

std::string Pack(absl::string_view bytes) {
  std::string packed(ZSTD_compressBound(bytes.size()), '\0');
  packed.resize(
      ZSTD_compress(packed.data(), packed.size(), bytes.data(), bytes.size(), kPackLevel));
  return packed;
}

// nullopt: they are not `size` bytes, packed.
std::optional<std::string> Unpack(absl::string_view packed, size_t size) {
  std::string bytes(size, '\0');
  if (ZSTD_decompress(bytes.data(), size, packed.data(), packed.size()) != size) {
    return std::nullopt;
  }
  return bytes;
}

}  // namespace

struct SharedResults::Result {
  std::string bytes;
  size_t metadata_bytes = 0;
  std::vector<std::pair<std::string, size_t>> artifacts = {};  // names and sizes

  std::string Facts() const {
    std::string facts = absl::StrCat(Sha256Hex(bytes), "\n", metadata_bytes);
    for (const auto& [name, size] : artifacts) absl::StrAppend(&facts, "\n", size, " ", name);
    return facts;
  }

  // nullopt: the bytes are not those that were put.
  static std::optional<Result> Parse(absl::string_view facts, std::string stored) {
    const bool is_packed = absl::ConsumePrefix(&facts, absl::StrCat(kPacked, "\n"));
    const std::vector<std::string> lines = absl::StrSplit(facts, '\n');
    Result result;
    if (lines.size() < 2 || !absl::SimpleAtoi(lines[1], &result.metadata_bytes)) {
      return std::nullopt;
    }
    size_t total = result.metadata_bytes;
    for (size_t i = 2; i < lines.size() && total <= kMaxResultBytes; ++i) {
      const std::pair<std::string, std::string> parts =
          absl::StrSplit(lines[i], absl::MaxSplits(' ', 1));
      size_t size = 0;
      if (!absl::SimpleAtoi(parts.first, &size) || size > kMaxResultBytes) return std::nullopt;
      result.artifacts.emplace_back(parts.second, size);
      total += size;
    }
    if (total > kMaxResultBytes) return std::nullopt;
    std::optional<std::string> bytes = is_packed ? Unpack(stored, total) : std::move(stored);
    if (!bytes.has_value() || bytes->size() != total || Sha256Hex(*bytes) != lines[0]) {
      return std::nullopt;
    }
    result.bytes = *std::move(bytes);
    return result;
  }
};

// A full disk is UNAVAILABLE, as ArtifactCache has it: the result waits for room.
absl::Status SharedResults::Put(const cache::CacheKey& key, const Result& result) {
  const bool packs = features_->Allows(base::Feature::kPackedResults);
  const std::string packed = packs ? Pack(result.bytes) : "";
  const std::string& bytes = packs ? packed : result.bytes;
  const std::string facts = absl::StrCat(packs ? kPacked : "", packs ? "\n" : "", result.Facts());
  const absl::Status put =
      content_->Put(Content::Kind::kResult, key.scope(), NameOf(key), bytes.size(), facts,
                    [&](uint64_t offset, size_t max_bytes) -> absl::StatusOr<std::string> {
                      return bytes.substr(offset, max_bytes);
                    });
  return absl::IsResourceExhausted(put) ? absl::UnavailableError(put.message()) : put;
}

// False: nobody has it.
absl::StatusOr<bool> SharedResults::Fetch(const cache::CacheKey& key) {
  ASSIGN_OR_RETURN(const auto found, content_->Find(NameOf(key)));
  if (!found.has_value() || found->bytes > kMaxResultBytes) return false;
  std::string stored;
  const absl::Status read = content_->Read(*found, [&](uint64_t offset, absl::string_view bytes) {
    absl::StrAppend(&stored, bytes);
    return absl::OkStatus();
  });
  if (!read.ok() && !absl::IsDataLoss(read)) return read;
  std::optional<Result> result;
  if (read.ok()) result = Result::Parse(found->facts, std::move(stored));
  if (!result.has_value()) {
    RETURN_IF_ERROR(content_->RemoveDamaged(NameOf(key), *found));
    return false;
  }
  const absl::string_view all = result->bytes;
  std::vector<cache::ArtifactView> views;
  size_t offset = result->metadata_bytes;
  for (const auto& [name, size] : result->artifacts) {
    views.push_back({.name = name, .bytes = all.substr(offset, size)});
    offset += size;
  }
  RETURN_IF_ERROR(
      local_->Store(key, views, all.substr(0, result->metadata_bytes), nullptr).status());
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
  return Put(key, result);
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
  RETURN_IF_ERROR(Put(key, result));
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
