#include "server/auth/sessions.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::auth {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const SignIn kToken = {SignIn::Way::kToken, "ab12"};
const SignIn kCertificate = {SignIn::Way::kCertificate, "CN=\tx\ny\\"};

class SessionsTest : public ::testing::Test {
 protected:
  SessionsTest() : path_(::testing::TempDir() + "/sessions") { std::filesystem::remove(path_); }

  std::unique_ptr<Sessions> Open() {
    auto sessions = Sessions::Open(
        {.path = path_, .lifetime = absl::Hours(12), .now = [this] { return now_; }});
    EXPECT_TRUE(sessions.ok()) << sessions.status();
    return *std::move(sessions);
  }

  const std::string path_;
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
};

TEST_F(SessionsTest, OutliveTheProcessAndWhatEndedStaysEnded) {
  std::string first, second;
  {
    const auto sessions = Open();
    first = *sessions->Start(kToken);
    second = *sessions->Start(kCertificate);
    EXPECT_EQ(first.size(), 43u);
    EXPECT_TRUE(sessions->End(first).ok());
    EXPECT_TRUE(sessions->End(first).ok());
  }
  const auto sessions = Open();
  EXPECT_FALSE(sessions->Find(first).ok());
  EXPECT_EQ(*sessions->Find(second), kCertificate);
  std::ifstream in(path_);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  EXPECT_THAT(text, Not(HasSubstr(second))) << "a stolen file must name no session";
}

TEST_F(SessionsTest, EndAfterTheirTime) {
  const auto sessions = Open();
  const std::string name = *sessions->Start(kToken);
  now_ += absl::Hours(12) - absl::Seconds(1);
  EXPECT_TRUE(sessions->Find(name).ok());
  now_ += absl::Seconds(1);
  const auto found = sessions->Find(name);
  EXPECT_EQ(found.status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_FALSE(Open()->Find(name).ok());
}

TEST_F(SessionsTest, OfOneAndOfAllAreBoundedAndTheOldestGoes) {
  const auto sessions = Open();
  const std::string other = *sessions->Start(kCertificate);
  std::vector<std::string> names;
  for (size_t i = 0; i < kMaxSessionsOfOne + 2; ++i) {
    now_ += absl::Seconds(1);
    names.push_back(*sessions->Start(kToken));
  }
  EXPECT_FALSE(sessions->Find(names[0]).ok());
  EXPECT_FALSE(sessions->Find(names[1]).ok());
  for (size_t i = 2; i < names.size(); ++i) EXPECT_TRUE(sessions->Find(names[i]).ok()) << i;
  EXPECT_TRUE(sessions->Find(other).ok());
}

TEST_F(SessionsTest, ManyOfManyPeopleAreBounded) {
  {
    std::ofstream out(path_);
    for (size_t i = 0; i < kMaxSessions; ++i) {
      out << "name" << i << "\ttoken\t" << absl::ToUnixSeconds(now_) + static_cast<int64_t>(i % 7)
          << "\tkey" << i << "\n";
    }
  }
  const auto sessions = Open();
  const std::string name = *sessions->Start(kToken);
  EXPECT_TRUE(sessions->Find(name).ok());
  std::ifstream in(path_);
  EXPECT_EQ(std::count(std::istreambuf_iterator<char>(in), {}, '\n'),
            static_cast<int64_t>(kMaxSessions));
}

TEST_F(SessionsTest, ADamagedFileIsTold) {
  for (const char* text : {"x", "a\ttoken\tx\tk", "a\tguess\t1\tk", "a\ttoken\t1\tk\tmore"}) {
    std::ofstream(path_) << text << "\n";
    const auto sessions = Sessions::Open({.path = path_, .now = [] { return absl::Now(); }});
    EXPECT_EQ(sessions.status().code(), absl::StatusCode::kFailedPrecondition) << text;
  }
}

}  // namespace
}  // namespace npuc::auth
