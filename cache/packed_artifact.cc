#include "cache/packed_artifact.h"

#include <lz4.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "cache/byte_lists.h"
#include "compiler_core/base/digest.h"

namespace npuc::cache {
namespace {

constexpr char kPlain = 0;
constexpr char kLz4 = 1;
constexpr char kByteLists = 2;

// Shorter chunks have little to win.
constexpr size_t kLeastCompressedBytes = 1024;

}  // namespace

std::string PackChunk(absl::string_view chunk) {
  static_assert(ArtifactCache::kChunkBytes <= LZ4_MAX_INPUT_SIZE);
  if (chunk.size() >= kLeastCompressedBytes && chunk.size() <= ArtifactCache::kChunkBytes) {
    if (const auto shortened = ShortenByteLists(chunk)) {
      return absl::StrCat(absl::string_view(&kByteLists, 1), *shortened);
    }
    const int size = static_cast<int>(chunk.size());
    std::string packed(1 + static_cast<size_t>(LZ4_compressBound(size)), kLz4);
    const int length = LZ4_compress_default(chunk.data(), packed.data() + 1, size,
                                            static_cast<int>(packed.size()) - 1);
    if (length > 0 && static_cast<size_t>(length) < chunk.size() / 8 * 7) {
      packed.resize(1 + static_cast<size_t>(length));
      return packed;
    }
  }
  std::string plain(1, kPlain);
  plain.append(chunk.data(), chunk.size());
  return plain;
}

absl::StatusOr<std::string> UnpackChunk(absl::string_view packed, size_t size) {
  if (!packed.empty() && size <= ArtifactCache::kChunkBytes) {
    const absl::string_view body = packed.substr(1);
    if (packed[0] == kPlain && body.size() == size) return std::string(body);
    std::string chunk(size, '\0');
    if (packed[0] == kLz4 && body.size() < size &&
        LZ4_decompress_safe(body.data(), chunk.data(), static_cast<int>(body.size()),
                            static_cast<int>(size)) == static_cast<int>(size)) {
      return chunk;
    }
    if (packed[0] == kByteLists) {
      if (auto chunk = RestoreByteLists(body, size)) return *std::move(chunk);
    }
  }
  return absl::DataLossError("a packed chunk is damaged");
}

ArtifactPacker::ArtifactPacker(absl::string_view name, absl::string_view bytes)
    : bytes_(bytes), packed_(std::make_shared<PackedArtifact>()) {
  packed_->item.info.name = std::string(name);
  packed_->item.info.size_bytes = bytes.size();
  const size_t chunks =
      (bytes.size() + ArtifactCache::kChunkBytes - 1) / ArtifactCache::kChunkBytes;
  packed_->chunks.resize(chunks);
  packed_->item.chunk_sha256.resize(chunks);
}

void ArtifactPacker::Pack(size_t piece) {
  if (piece == 0) {
    packed_->item.info.sha256 = Sha256Hex(bytes_);
    return;
  }
  std::string& chunk = packed_->chunks[piece - 1];
  chunk = PackChunk(
      bytes_.substr((piece - 1) * ArtifactCache::kChunkBytes, ArtifactCache::kChunkBytes));
  packed_->item.chunk_sha256[piece - 1] = Sha256Hex(chunk);
}

std::shared_ptr<const PackedArtifact> PackArtifact(absl::string_view name,
                                                   absl::string_view bytes) {
  ArtifactPacker packer(name, bytes);
  for (size_t piece = 0; piece < packer.pieces(); ++piece) packer.Pack(piece);
  return packer.packed();
}

}  // namespace npuc::cache
