#include "compiler_core/base/archive.h"

#include <filesystem>
#include <fstream>

#include "compiler_core/base/folder_archive.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::vector<std::pair<std::string, std::string>> PairsOf(const std::vector<ZipFile>& entries) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const ZipFile& entry : entries) pairs.emplace_back(entry.name, entry.bytes);
  return pairs;
}

TEST(ArchiveTest, WhatIsWrittenIsReadByName) {
  const std::string archive = *WriteZip({{"b/2", "two"}, {"a", ""}, {"b/10", "ten"}});
  EXPECT_TRUE(LooksLikeZip(archive));
  const auto entries = ReadArchive(archive, 1 << 20);
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_THAT(PairsOf(*entries),
              ElementsAre(Pair("a", ""), Pair("b/10", "ten"), Pair("b/2", "two")));
  EXPECT_TRUE(ReadArchive(*WriteZip({}), 100)->empty());
}

TEST(ArchiveTest, WhatADesktopLeavesIsNotAmongTheEntries) {
  const auto entries = ReadArchive(
      *WriteZip({{"x/", ""}, {"x/.DS_Store", "1"}, {"__MACOSX/x/a", "2"}, {"x/a", "3"}}), 1 << 20);
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_THAT(PairsOf(*entries), ElementsAre(Pair("x/a", "3")));
}

TEST(ArchiveTest, DamageAndSizeAreRefused) {
  const std::string archive = *WriteZip({{"a", std::string(100, 'x')}});
  EXPECT_EQ(ReadArchive(archive, 99).status().code(), absl::StatusCode::kResourceExhausted);
  std::string damaged = archive;
  damaged[40] ^= 1;
  EXPECT_THAT(std::string(ReadArchive(damaged, 1 << 20).status().message()),
              HasSubstr("entry 'a' is damaged"));
  for (size_t i = 0; i < archive.size(); ++i) {
    EXPECT_FALSE(ReadArchive(archive.substr(0, i), 1 << 20).ok()) << i;
  }
}

class FolderArchiveTest : public testing::Test {
 protected:
  FolderArchiveTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void Write(const std::string& name, const std::string& bytes) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  std::filesystem::path folder_;
};

TEST_F(FolderArchiveTest, AFolderIsTheArchiveOfItsFiles) {
  Write("b", "1");
  Write("a/z", "2");
  Write(".hidden/x", "3");
  Write("a/.x", "4");
  EXPECT_TRUE(IsFolder(folder_.string()));
  EXPECT_FALSE(IsFolder((folder_ / "b").string()));
  const auto archive = ArchiveFolder(folder_.string());
  ASSERT_TRUE(archive.ok()) << archive.status();
  EXPECT_EQ(*archive, *WriteZip({{"a/z", "2"}, {"b", "1"}}));
}

TEST_F(FolderArchiveTest, WhatCannotBeReadIsNamed) {
  EXPECT_THAT(std::string(ArchiveFolder((folder_ / "none").string()).status().message()),
              HasSubstr("none"));
  Write("x.npz", *WriteZip({}));
  EXPECT_THAT(std::string(ArchiveFolder(folder_.string()).status().message()),
              HasSubstr("x.npz: it is an archive in a folder"));
  std::filesystem::remove(folder_ / "x.npz");
  Write("1/2/3/4/5/6/7/8/9/10/x", "");
  EXPECT_EQ(ArchiveFolder(folder_.string()).status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace npuc
