#include "server/startup.h"

#include <stdlib.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::daemon {
namespace {

using ::testing::HasSubstr;

TEST(StartupTest, APortThatCannotBeHadNamesItsFlagAndTheFix) {
  const absl::Status status = OfFlag(
      "--http", absl::UnavailableError("cannot listen on 127.0.0.1:80 (Address already in use)"));
  EXPECT_EQ(status.message(),
            "--http: cannot listen on 127.0.0.1:80 (Address already in use); give an address of "
            "this machine with a port that nobody else has, or port 0 for any");
  EXPECT_EQ(OfFlag("--web", absl::OkStatus()), absl::OkStatus());
  const absl::Status other = absl::InvalidArgumentError("--tls-cert x: No such file");
  EXPECT_EQ(OfFlag("--web", other), other);
}

class DataDirTest : public ::testing::Test {
 protected:
  DataDirTest() {
    std::string pattern = ::testing::TempDir() + "/startup_XXXXXX";
    root_ = mkdtemp(pattern.data());
  }
  ~DataDirTest() override { std::filesystem::remove_all(root_); }

  std::string root_;
  bool is_new_ = false;
};

TEST_F(DataDirTest, OneProcessHoldsIt) {
  const std::string dir = root_ + "/data";
  ASSERT_EQ(LockDataDir(dir, &is_new_), absl::OkStatus());
  EXPECT_TRUE(is_new_);
  EXPECT_THAT(std::string(LockDataDir(dir, &is_new_).message()),
              HasSubstr("in use by another npucd"));
  EXPECT_FALSE(is_new_);
}

TEST_F(DataDirTest, AMistypedPathMakesNothing) {
  const absl::Status status = LockDataDir(root_ + "/typo/data", &is_new_);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the folder above it is missing"));
  EXPECT_FALSE(std::filesystem::exists(root_ + "/typo"));
}

TEST_F(DataDirTest, APartThatIsALinkIsRefused) {
  const std::string dir = root_ + "/data";
  std::filesystem::create_directory(dir);
  std::filesystem::create_directory(root_ + "/other");
  std::filesystem::create_directory_symlink(root_ + "/other", dir + "/work");
  const absl::Status status = LockDataDir(dir, &is_new_);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/work is a symbolic link"));
}

}  // namespace
}  // namespace npuc::daemon
