#include "compiler_core/frontends/torchscript/checksum.h"

#include <zlib.h>

#include <random>
#include <string>

#include "gtest/gtest.h"

namespace npuc::pt {
namespace {

TEST(ZipChecksum, IsThatOfZlib) {
  EXPECT_EQ(ZipChecksum("123456789"), 0xcbf43926u);  // the check value of CRC-32
  std::mt19937 random(3);
  std::string bytes(100'000, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  const auto expect_same = [](absl::string_view some) {
    EXPECT_EQ(ZipChecksum(some),
              crc32_z(0, reinterpret_cast<const Bytef*>(some.data()), some.size()))
        << some.size() << " bytes";
  };
  for (size_t size = 0; size < 200; ++size) {
    expect_same(absl::string_view(bytes).substr(size % 7, size));
    expect_same(absl::string_view(bytes).substr(size % 7, (16 << 10) - 100 + size));
    expect_same(absl::string_view(bytes).substr(size % 7, 90'000 + size));
  }
  expect_same(std::string(50'000, '\0'));
  expect_same(std::string(50'000, '\xff'));
}

TEST(ZipChecksum, SeesEachBit) {
  std::string bytes((16 << 10) + 37, 'a');
  const uint32_t checksum = ZipChecksum(bytes);
  for (size_t i = 0; i < bytes.size(); i += 11) {
    bytes[i] = static_cast<char>(bytes[i] ^ 1 << i % 8);
    EXPECT_NE(ZipChecksum(bytes), checksum) << i;
    bytes[i] = 'a';
  }
}

}  // namespace
}  // namespace npuc::pt
