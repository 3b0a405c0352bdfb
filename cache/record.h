#ifndef NPUC_CACHE_RECORD_H_
#define NPUC_CACHE_RECORD_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cache/artifact_cache.h"

namespace npuc::cache {

// The artifact cache's manifest record: what an entry holds, down to the digest of each chunk.

// One artifact, or (with the empty name) the result's metadata.
struct ManifestItem {
  ArtifactInfo info;
  std::vector<std::string> chunk_sha256;  // of each as it is stored, 64 hex digits; may be none
};

struct Manifest {
  absl::Time stored_at;
  std::vector<ManifestItem> items;  // the metadata first

  uint64_t TotalBytes() const;
};

// Ends in a SHA-256 over the entry's key and all before it: a record that was damaged, cut, or
// copied to another key does not decode.
std::string EncodeManifest(absl::string_view key, const Manifest& manifest);
// DATA_LOSS for anything that EncodeManifest did not make for this key. Never reads out of bounds.
absl::StatusOr<Manifest> DecodeManifest(absl::string_view key, absl::string_view record);

}  // namespace npuc::cache

#endif  // NPUC_CACHE_RECORD_H_
