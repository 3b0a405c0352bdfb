#include "compiler_core/base/zip_writer.h"

#include <string>
#include <vector>

#include "compiler_core/base/zip_directory.h"
#include "compiler_core/base/zip_entry.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

constexpr int64_t kMaxEntries = 8;

TEST(ZipWriterTest, WhatIsWrittenIsReadBack) {
  const std::vector<ZipFile> files = {
      {"a.txt", "hello"}, {"folder/empty", ""}, {"b", std::string(70000, 'x')}};
  const absl::StatusOr<std::string> zip = WriteZip(files);
  ASSERT_TRUE(zip.ok()) << zip.status();
  const absl::StatusOr<std::vector<ZipRecord>> records = ReadZipDirectory(*zip, kMaxEntries);
  ASSERT_TRUE(records.ok()) << records.status();
  ASSERT_EQ(records->size(), files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    std::string inflated;
    EXPECT_EQ((*records)[i].name, files[i].name);
    const absl::StatusOr<absl::string_view> bytes = ReadZipEntry(*zip, (*records)[i], inflated);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_EQ(*bytes, files[i].bytes);
  }
}

TEST(ZipWriterTest, RefusesANameThatItsFieldCannotCount) {
  EXPECT_EQ(WriteZip({{std::string(65536, 'n'), ""}}).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace npuc
