#include "cache/record.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cache/keys.h"
#include "compiler_core/base/digest.h"

namespace npuc::cache {
namespace {

// The record is lines of words; names have neither spaces nor newlines (IsValidArtifactName):
//   npuc-manifest 2 <stored at, microseconds since 1970>
//   <size> <SHA-256> <name, or nothing> [<chunk SHA-256> ...]        one line per item
//   <SHA-256 of key, newline and all above>
// The digests of chunks are of what is stored, which PackChunk made.
constexpr size_t kTailBytes = 64;

absl::Status Damaged(absl::string_view key) {
  return absl::DataLossError(absl::StrCat("artifact cache: ", key, ": its manifest is damaged"));
}

std::string Seal(absl::string_view key, absl::string_view body) {
  return Sha256Hex(absl::StrCat(key, "\n", body));
}

bool DecodeItem(absl::string_view line, ManifestItem& item) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  if (words.size() < 3 || !absl::SimpleAtoi(words[0], &item.info.size_bytes)) return false;
  item.info.sha256 = std::string(words[1]);
  item.info.name = std::string(words[2]);
  for (size_t i = 3; i < words.size(); ++i) item.chunk_sha256.emplace_back(words[i]);
  const uint64_t chunks = item.info.size_bytes / ArtifactCache::kChunkBytes +
                          (item.info.size_bytes % ArtifactCache::kChunkBytes != 0 ? 1 : 0);
  return item.chunk_sha256.size() == chunks;
}

}  // namespace

uint64_t Manifest::TotalBytes() const {
  uint64_t total = 0;
  for (const ManifestItem& item : items) total += item.info.size_bytes;
  return total;
}

std::string EncodeManifest(absl::string_view key, const Manifest& manifest) {
  std::string body = absl::StrCat("npuc-manifest 2 ", absl::ToUnixMicros(manifest.stored_at), "\n");
  for (const ManifestItem& item : manifest.items) {
    absl::StrAppend(&body, item.info.size_bytes, " ", item.info.sha256, " ", item.info.name);
    for (const std::string& chunk : item.chunk_sha256) absl::StrAppend(&body, " ", chunk);
    body.push_back('\n');
  }
  return body + Seal(key, body);
}

absl::StatusOr<Manifest> DecodeManifest(absl::string_view key, absl::string_view record) {
  if (record.size() < kTailBytes) return Damaged(key);
  const absl::string_view body = record.substr(0, record.size() - kTailBytes);
  if (record.substr(body.size()) != Seal(key, body)) return Damaged(key);
  std::vector<absl::string_view> lines = absl::StrSplit(body, '\n');
  if (lines.size() < 3 || !lines.back().empty()) return Damaged(key);
  lines.pop_back();
  const std::vector<absl::string_view> head = absl::StrSplit(lines[0], ' ');
  int64_t micros = 0;
  if (head.size() != 3 || head[0] != "npuc-manifest" || head[1] != "2" ||
      !absl::SimpleAtoi(head[2], &micros)) {
    return Damaged(key);
  }
  Manifest manifest;
  manifest.stored_at = absl::FromUnixMicros(micros);
  for (size_t i = 1; i < lines.size(); ++i) {
    ManifestItem item;
    if (!DecodeItem(lines[i], item)) return Damaged(key);
    // The metadata is the first item, and the only one without a name.
    if (item.info.name.empty() != (i == 1)) return Damaged(key);
    manifest.items.push_back(std::move(item));
  }
  return manifest;
}

}  // namespace npuc::cache
