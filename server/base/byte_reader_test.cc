#include "server/base/byte_reader.h"

#include "gtest/gtest.h"

namespace npuc::base {
namespace {

TEST(ReadNextTest, GivesAtLeastOneByteAndNoMoreThanAskedFor) {
  const std::string content = "abcdef";
  const ByteReader read = [&](uint64_t offset, size_t max_bytes) -> absl::StatusOr<std::string> {
    return content.substr(offset, max_bytes);
  };
  EXPECT_EQ(*ReadNext(read, 0, 6, 4, "c"), "abcd");
  EXPECT_EQ(*ReadNext(read, 4, 6, 4, "c"), "ef");
  EXPECT_EQ(*ReadNext(read, 5, 9, 4, "c"), "f") << "a reader may give less";
  const absl::Status ends = ReadNext(read, 6, 9, 4, "c").status();
  EXPECT_TRUE(absl::IsDataLoss(ends));
  EXPECT_EQ(ends.message(), "content c ends at byte 6 of 9");
  const ByteReader more = [](uint64_t, size_t max_bytes) -> absl::StatusOr<std::string> {
    return std::string(max_bytes + 1, 'x');
  };
  EXPECT_TRUE(absl::IsDataLoss(ReadNext(more, 0, 6, 4, "c").status()));
  const ByteReader fails = [](uint64_t, size_t) -> absl::StatusOr<std::string> {
    return absl::AbortedError("gone");
  };
  EXPECT_EQ(ReadNext(fails, 0, 6, 4, "c").status(), absl::AbortedError("gone"));
}

}  // namespace
}  // namespace npuc::base
