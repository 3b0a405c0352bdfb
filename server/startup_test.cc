#include "server/startup.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
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

TEST(StartupTest, OneProcessHoldsADataDirectory) {
  const std::string dir = absl::StrCat(::testing::TempDir(), "/startup_test_data");
  ASSERT_EQ(LockDataDir(dir), absl::OkStatus());
  EXPECT_THAT(std::string(LockDataDir(dir).message()), HasSubstr("in use by another npucd"));
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace npuc
