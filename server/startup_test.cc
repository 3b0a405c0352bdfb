#include "server/startup.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
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

TEST_F(DataDirTest, ANodeKeepsItsName) {
  const auto name = KeptNodeName(root_);
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_GT(name->size(), 9u);
  EXPECT_EQ(*KeptNodeName(root_), *name);
  const std::string other = root_ + "/other";
  std::filesystem::create_directory(other);
  EXPECT_NE(*KeptNodeName(other), *name);
}

TEST_F(DataDirTest, ASecretIsTheFirstLineOfAFileThatOthersCannotRead) {
  const std::string path = root_ + "/secret";
  const auto read = [&](absl::string_view text, mode_t mode) {
    std::ofstream(path, std::ios::trunc) << text;
    chmod(path.c_str(), mode);
    return ReadSecret("--cluster-secret-file", path);
  };
  EXPECT_EQ(*read("s3 cret\nmore\n", 0600), "s3 cret");
  EXPECT_EQ(*read("s3cret", 0440), "s3cret");
  for (const auto& [text, mode] : {std::pair<std::string, mode_t>("s3cret", 0644),
                                   {"", 0600},
                                   {"\n", 0600},
                                   {std::string(5000, 's'), 0600}}) {
    const absl::Status status = read(text, mode).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.ToString(), HasSubstr(path));
    EXPECT_THAT(status.ToString(), ::testing::Not(HasSubstr("s3cret")));
  }
  EXPECT_EQ(ReadSecret("--oidc-client-secret-file", root_ + "/none").status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(DataDirTest, CredentialsOfS3AreSecrets) {
  const std::string path = root_ + "/credentials";
  const auto read = [&](absl::string_view text, mode_t mode) {
    std::ofstream(path, std::ios::trunc) << text;
    chmod(path.c_str(), mode);
    return ReadS3Credentials(path);
  };
  const std::string good = "aws_access_key_id = id\naws_secret_access_key = s3cret\n";
  EXPECT_EQ(read(good, 0640)->secret, "s3cret");
  for (const auto& [text, mode] :
       {std::pair<std::string, mode_t>(good, 0644), {"s3cret\n", 0600}}) {
    const absl::Status status = read(text, mode).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.ToString(), HasSubstr(path));
    EXPECT_THAT(status.ToString(), ::testing::Not(HasSubstr("s3cret")));
  }
}

TEST_F(DataDirTest, HeadersOfTheCollectorAreSecrets) {
  const std::string path = root_ + "/headers";
  const auto read = [&](absl::string_view text, mode_t mode) {
    std::ofstream(path, std::ios::trunc) << text;
    chmod(path.c_str(), mode);
    return ReadOtlpHeaders(path);
  };
  EXPECT_TRUE(ReadOtlpHeaders("")->empty());
  EXPECT_EQ(*read("# c\nX-Key: s3cret\n", 0600), (http_client::Headers{{"X-Key", "s3cret"}}));
  for (const auto& [text, mode] : {std::pair<std::string, mode_t>("X-Key: s3cret\n", 0644),
                                   {"s3cret\n", 0600},
                                   {"Host: s3cret\n", 0600},
                                   {std::string(70'000, 's'), 0600}}) {
    const absl::Status status = read(text, mode).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.ToString(), HasSubstr("--otlp-headers-file"));
    EXPECT_THAT(status.ToString(), ::testing::Not(HasSubstr("s3cret")));
  }
  EXPECT_FALSE(ReadOtlpHeaders(root_ + "/none").ok());
}

TEST(AwaitStoreTest, TriesAgainWhileTheStoreIsAway) {
  const log::Logger log(nullptr, [] { return absl::Now(); });
  int tries = 0;
  EXPECT_TRUE(AwaitStore(&log, [&] {
                return ++tries < 3 ? absl::UnavailableError("away") : absl::OkStatus();
              }).ok());
  EXPECT_EQ(tries, 3);
  const absl::Status refused = AwaitStore(&log, [&] {
    ++tries;
    return absl::FailedPreconditionError("no tables");
  });
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(tries, 4);
}

}  // namespace
}  // namespace npuc::daemon
