#ifndef NPUC_CACHE_PACKED_ARTIFACT_H_
#define NPUC_CACHE_PACKED_ARTIFACT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cache/record.h"

namespace npuc::cache {

// An artifact as the cache keeps it: its digest, and its chunks, each compressed where that helps,
// with their digests. Making it takes as long as writing it does; who has the time before
// the write makes it then.
struct PackedArtifact {
  ManifestItem item;
  std::vector<std::string> chunks;  // of PackChunk
};

// Makes one in pieces, which may be made at once.
class ArtifactPacker {
 public:
  // name: empty for a result's metadata. The bytes must outlive this.
  ArtifactPacker(absl::string_view name, absl::string_view bytes);
  size_t pieces() const { return packed_->chunks.size() + 1; }
  // piece: below pieces(), each once.
  void Pack(size_t piece);
  // When all pieces are made.
  std::shared_ptr<const PackedArtifact> packed() const { return packed_; }

 private:
  const absl::string_view bytes_;
  const std::shared_ptr<PackedArtifact> packed_;
};

// All pieces at once.
std::shared_ptr<const PackedArtifact> PackArtifact(absl::string_view name, absl::string_view bytes);

// A chunk as it is kept: a byte that says how, then the chunk: as it is; with its lists of bytes as
// bytes (byte_lists.h), where they are most of it; or as one LZ4 block (github.com/lz4/lz4,
// doc/lz4_Block_format.md), where that is shorter.
std::string PackChunk(absl::string_view chunk);
// The chunk of `size` bytes. DATA_LOSS: PackChunk did not make it of so many bytes. That it is the
// right chunk is for the digest of `packed` to say, before.
absl::StatusOr<std::string> UnpackChunk(absl::string_view packed, size_t size);

}  // namespace npuc::cache

#endif  // NPUC_CACHE_PACKED_ARTIFACT_H_
