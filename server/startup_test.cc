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

TEST(StartupTest, WhatDoesNotStartSaysWhatToDo) {
  const auto advice = [](absl::string_view message) {
    return std::string(WithStartAdvice(absl::InternalError(message), "/data").message());
  };
  EXPECT_THAT(advice("cannot execute '/bin/npuc-worker': No such file or directory"),
              HasSubstr("directory; build or install the npuc-worker of npucd's own build"));
  EXPECT_THAT(advice("job store: open /data/jobs: Permission denied"),
              HasSubstr("; all of /data must belong to the user that runs npucd, user id "));
  EXPECT_THAT(advice("/data/work: No space left on device"),
              HasSubstr("; free some space on the disk of /data"));
  EXPECT_EQ(advice("something else"), "something else");
}

TEST(StartupTest, OneProcessHoldsADataDirectory) {
  const std::string dir = absl::StrCat(::testing::TempDir(), "/startup_test_data");
  ASSERT_EQ(LockDataDir(dir), absl::OkStatus());
  EXPECT_THAT(std::string(LockDataDir(dir).message()), HasSubstr("in use by another npucd"));
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace npuc
