#include "compiler_core/base/zip_directory.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "compiler_core/frontends/torchscript/archive_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::pt {
namespace {

using ::testing::HasSubstr;

TEST(ZipDirectoryTest, BothFormsAreRead) {
  for (const bool zip64 : {false, true}) {
    ZipBuilder zip;
    zip.Stored("a", "12345").Deflated("b", std::string(1000, 'x')).Stored("c", "").Zip64(zip64);
    const std::string bytes = zip.Bytes();
    const auto records = ReadZipDirectory(bytes, 3);
    ASSERT_TRUE(records.ok()) << records.status();
    ASSERT_EQ(records->size(), 3u);
    EXPECT_EQ((*records)[0].name, "a");
    EXPECT_EQ((*records)[0].size, 5u);
    EXPECT_EQ((*records)[0].end_offset, 36u);
    EXPECT_EQ((*records)[1].method, 8);
    EXPECT_EQ((*records)[1].size, 1000u);
    EXPECT_LT((*records)[1].compressed_size, 1000u);
    EXPECT_TRUE(absl::IsResourceExhausted(ReadZipDirectory(bytes, 2).status()));
  }
}

TEST(ZipDirectoryTest, TruncatedAtEveryLength) {
  ZipBuilder zip;
  zip.Stored("a", "12345").Stored("b", "678");
  const std::string bytes = zip.Bytes();
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_TRUE(
        absl::IsNotFound(ReadZipDirectory(absl::string_view(bytes).substr(0, length), 10).status()))
        << length;
  }
}

TEST(ZipDirectoryTest, OverlapsAreRefused) {
  // Two records of one entry.
  ZipBuilder zip;
  zip.Stored("a", "12345").Stored("a", "12345");
  zip.last().local_offset = 0;
  EXPECT_THAT(ReadZipDirectory(zip.Bytes(), 10).status().message(), HasSubstr("overlap"));
  // An entry whose data are the next entry, header and all.
  ZipBuilder inner;
  inner.Stored("a", "12345");
  ZipBuilder quine;
  quine.Stored("q", inner.Bytes().substr(0, 36)).Stored("a", "x");
  quine.last().local_offset = 31;
  EXPECT_THAT(ReadZipDirectory(quine.Bytes(), 10).status().message(), HasSubstr("overlap"));
}

TEST(ZipDirectoryTest, NamesThatDifferAreRefused) {
  ZipBuilder zip;
  zip.Stored("a", "12345").Stored("b", "678");
  zip.last().local_offset = 0;
  EXPECT_THAT(ReadZipDirectory(zip.Bytes(), 10).status().message(), HasSubstr("another name"));
}

TEST(ZipDirectoryTest, PlacesOutsideTheFileAreRefused) {
  ZipBuilder zip;
  zip.Stored("a", "12345");
  zip.last().local_offset = 1;
  EXPECT_THAT(ReadZipDirectory(zip.Bytes(), 10).status().message(), HasSubstr("no header"));
  zip.last().local_offset = 0xfffffff0;
  EXPECT_THAT(ReadZipDirectory(zip.Bytes(), 10).status().message(), HasSubstr("no header"));
  zip.Zip64(true).last().local_offset = int64_t{1} << 62;
  EXPECT_THAT(ReadZipDirectory(zip.Bytes(), 10).status().message(), HasSubstr("no header"));
}

TEST(ZipDirectoryTest, SecondEndRecordsAreRefused) {
  ZipBuilder zip;
  zip.Stored("a", "PK\x05\x06 and more");
  EXPECT_THAT(ReadZipDirectory(zip.Bytes(), 10).status().message(), HasSubstr("more than one"));
}

TEST(ZipDirectoryTest, CountsThatLieAreRefused) {
  ZipBuilder zip;
  zip.Stored("a", "12345");
  std::string more = zip.Bytes();
  more[more.size() - 12] = 2;
  EXPECT_THAT(ReadZipDirectory(more, 10).status().message(), HasSubstr("says that it has 2"));
  std::string fewer = zip.Bytes();
  fewer[fewer.size() - 12] = 0;
  EXPECT_THAT(ReadZipDirectory(fewer, 10).status().message(), HasSubstr("behind its last record"));
  // 2^60 entries in a zip64 file of a few hundred bytes.
  std::string huge = zip.Zip64(true).Bytes();
  huge[huge.size() - 22 - 20 - 56 + 32 + 7] = 0x10;
  EXPECT_TRUE(absl::IsResourceExhausted(ReadZipDirectory(huge, 10000).status()));
}

}  // namespace
}  // namespace npuc::pt
