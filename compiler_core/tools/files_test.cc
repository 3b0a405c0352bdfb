#include "compiler_core/tools/files.h"

#include <filesystem>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/files_test_util.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

namespace fs = std::filesystem;

class PendingFileTest : public testing::Test {
 protected:
  PendingFileTest() : folder_(fs::path(testing::TempDir()) / "npuc_pending_file_test") {
    fs::remove_all(folder_);
  }
  ~PendingFileTest() override { fs::remove_all(folder_); }
  PendingFileTest(const PendingFileTest&) = delete;
  PendingFileTest& operator=(const PendingFileTest&) = delete;

  std::string Path() const { return (folder_ / "inside" / "a.txt").string(); }
  int64_t FilesBesideIt() const {
    return std::distance(fs::directory_iterator(folder_ / "inside"), fs::directory_iterator());
  }

 private:
  fs::path folder_;
};

TEST_F(PendingFileTest, BytesAreSeenOnceTheyArePutInPlace) {
  for (const std::string text : {"first", "second, which replaces it", ""}) {
    const std::string before = ReadTestFile(Path());
    absl::StatusOr<PendingFile> file = PendingFile::Write(Path(), WriterOf(text));
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(ReadTestFile(Path()), before);
    PendingFile moved = *std::move(file);
    ASSERT_TRUE(moved.PutInPlace().ok());
    EXPECT_EQ(ReadTestFile(Path()), text);
    EXPECT_EQ(FilesBesideIt(), 1);
  }
}

TEST_F(PendingFileTest, WhatIsNotPutInPlaceLeavesNothing) {
  { ASSERT_TRUE(PendingFile::Write(Path(), WriterOf("dropped")).ok()); }
  EXPECT_EQ(FilesBesideIt(), 0);
  ASSERT_TRUE(WriteFileAtomically(Path(), "kept").ok());
  { ASSERT_TRUE(PendingFile::Write(Path(), WriterOf("dropped")).ok()); }
  EXPECT_EQ(ReadTestFile(Path()), "kept");
  EXPECT_EQ(FilesBesideIt(), 1);
}

TEST_F(PendingFileTest, AFolderInItsPlaceIsLeftAloneWithNothingBeside) {
  fs::create_directories(Path());
  EXPECT_FALSE(WriteFileAtomically(Path(), "text").ok());
  EXPECT_TRUE(fs::is_directory(Path()));
  EXPECT_EQ(FilesBesideIt(), 1);
}

TEST_F(PendingFileTest, SaysWhyThereIsNoFolder) {
  const fs::path folder = fs::path(Path()).parent_path();
  fs::create_directories(folder.parent_path());
  fs::create_symlink("nowhere", folder);  // which is why the file itself is not found
  const absl::Status written = WriteFileAtomically(Path(), "text");
  EXPECT_EQ(std::string(written.message()),
            absl::StrCat("cannot make folder ", folder.string(), ": File exists"));
}

TEST(ReadFileBytes, ReadsAWholeFileWithinTheLimit) {
  const std::string path = testing::TempDir() + "npuc_read_file_bytes_test";
  for (const size_t size : {size_t{0}, size_t{1} << 20, (size_t{3} << 20) + 5}) {
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i % 251);
    ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
    const absl::StatusOr<FileBytes> read = ReadFileBytes(path, static_cast<int64_t>(size));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(read->view() == bytes) << size << " bytes";
    if (size == 0) continue;
    EXPECT_TRUE(
        absl::IsResourceExhausted(ReadFileBytes(path, static_cast<int64_t>(size) - 1).status()));
  }
  fs::remove(path);
}

}  // namespace
}  // namespace npuc
