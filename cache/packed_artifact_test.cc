#include "cache/packed_artifact.h"

#include <random>

#include "absl/strings/str_cat.h"
#include "cache/cache_test_util.h"
#include "compiler_core/base/digest.h"
#include "gtest/gtest.h"

namespace npuc::cache {
namespace {

std::string Text(size_t size) {
  std::string text;
  for (int i = 0; text.size() < size; ++i) absl::StrAppend(&text, "0x", absl::Hex(i * 77), ", ");
  text.resize(size);
  return text;
}

TEST(PackedChunk, ComesBack) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{1023}, size_t{1024}, size_t{5000},
                            ArtifactCache::kChunkBytes}) {
    for (const std::string& chunk : {RandomBytes(size, 7), Text(size), std::string(size, 'x')}) {
      const std::string packed = PackChunk(chunk);
      EXPECT_LE(packed.size(), size + 1);
      const auto unpacked = UnpackChunk(packed, size);
      ASSERT_TRUE(unpacked.ok()) << size;
      EXPECT_EQ(*unpacked, chunk);
      EXPECT_TRUE(absl::IsDataLoss(UnpackChunk(packed, size + 1).status()));
      if (size == 0) continue;
      EXPECT_TRUE(absl::IsDataLoss(UnpackChunk(packed, size - 1).status()));
    }
  }
  EXPECT_LT(PackChunk(Text(100000)).size(), 70000u);
}

TEST(PackedChunk, ListsOfBytesTakeASixth) {
  std::string text;
  for (int i = 0; i < 1000; ++i) {
    absl::StrAppend(&text, i % 10 == 0 ? "\n\t0x" : "0x", absl::Hex(i & 255, absl::kZeroPad2),
                    ", ");
  }
  const std::string packed = PackChunk(text);
  EXPECT_LT(packed.size(), 1020u);
  EXPECT_EQ(*UnpackChunk(packed, text.size()), text);
  EXPECT_TRUE(absl::IsDataLoss(UnpackChunk(packed, text.size() - 1).status()));
  // As it was kept before such lists were known.
  EXPECT_EQ(*UnpackChunk(absl::StrCat(absl::string_view("\0", 1), text), text.size()), text);
}

// No bytes read or write out of bounds, and whatever unpacks has the length that was asked for.
TEST(PackedChunk, DamageIsRefusedOrOfTheRightLength) {
  const std::string chunk = Text(20000);
  const std::string packed = PackChunk(chunk);
  std::mt19937 random(3);
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = packed.substr(0, i % 3 == 0 ? random() % packed.size() : packed.size());
    for (int flips = 0; flips < 3 && !damaged.empty(); ++flips) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    const auto unpacked = UnpackChunk(damaged, chunk.size());
    if (unpacked.ok()) {
      EXPECT_EQ(unpacked->size(), chunk.size());
    } else {
      EXPECT_TRUE(absl::IsDataLoss(unpacked.status()));
    }
  }
  EXPECT_TRUE(absl::IsDataLoss(UnpackChunk("", 0).status()));
  EXPECT_TRUE(absl::IsDataLoss(UnpackChunk(packed, size_t{1} << 40).status()));
}

TEST(PackedArtifactTest, HasTheDigestsOfWhatItPacks) {
  const std::string bytes = Text(ArtifactCache::kChunkBytes + 10);
  const auto packed = PackArtifact("model.h", bytes);
  EXPECT_EQ(packed->item.info.name, "model.h");
  EXPECT_EQ(packed->item.info.size_bytes, bytes.size());
  EXPECT_EQ(packed->item.info.sha256, Sha256Hex(bytes));
  ASSERT_EQ(packed->chunks.size(), 2u);
  ASSERT_EQ(packed->item.chunk_sha256.size(), 2u);
  EXPECT_EQ(*UnpackChunk(packed->chunks[1], 10), bytes.substr(ArtifactCache::kChunkBytes));
  EXPECT_EQ(packed->item.chunk_sha256[1], Sha256Hex(packed->chunks[1]));
  EXPECT_TRUE(PackArtifact("empty", "")->chunks.empty());
}

}  // namespace
}  // namespace npuc::cache
