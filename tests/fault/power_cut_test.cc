#include "tests/fault/power_cut.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace npuc::fault {
namespace {

namespace fs = std::filesystem;

// A process that is killed while it makes the table leaves an empty file, or a part of one.
TEST(PowerCutTest, ATableThatWasNotFinishedHasNoEntries) {
  std::string pattern = ::testing::TempDir() + "/cut_XXXXXX";
  const std::string folder = mkdtemp(pattern.data());
  fs::create_directory(folder + "/data");
  std::ofstream(folder + "/data/kept") << "bytes";
  for (const size_t size : {size_t{0}, sizeof(SyncedFile), sizeof(SyncedFile) * 1000 + 5}) {
    std::ofstream(folder + "/synced", std::ios::trunc) << std::string(size, '\0');
    const auto cut = DropUnsynced(folder + "/synced", folder + "/data", 1);
    ASSERT_TRUE(cut.ok()) << cut.status();
    EXPECT_EQ(cut->files_gone, 0u);
    EXPECT_EQ(fs::file_size(folder + "/data/kept"), 5u);
  }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace npuc::fault
