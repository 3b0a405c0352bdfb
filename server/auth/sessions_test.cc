#include "server/auth/sessions.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/digest.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/features.h"
#include "server/base/kept_text_test_util.h"
#include "server/jobs/service_error.h"

namespace npuc::auth {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const SignIn kToken = {SignIn::Way::kToken, "ab12"};
const SignIn kCertificate = {SignIn::Way::kCertificate, "CN=\tx\ny\\"};

class SessionsTest : public ::testing::Test {
 protected:
  std::unique_ptr<Sessions> Open() {
    auto sessions = std::make_unique<Sessions>(
        Sessions::Options{.lifetime = absl::Hours(12), .now = [this] { return now_; }});
    const absl::Status attached = sessions->Attach(&text_);
    EXPECT_TRUE(attached.ok()) << attached;
    return sessions;
  }

  base::MemoryText text_;
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
  EXPECT_THAT(text_.text, Not(HasSubstr(second))) << "a stolen text must name no session";
}

TEST_F(SessionsTest, OlderNodesGetNoSessionThatTheyCannotRead) {
  int64_t level = 1;
  const base::Features features([&level] { return level; });
  Sessions sessions({.now = [this] { return now_; }, .features = &features});
  ASSERT_TRUE(sessions.Attach(&text_).ok());
  const SignIn person = {SignIn::Way::kProvider, "https://login email\na@b\nu-17"};
  const absl::Status refused = sessions.Start(person).status();
  EXPECT_EQ(jobs::ErrorDetailsOf(refused)->reason, "FEATURE_NOT_YET");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("feature level 1, and it takes 2"));
  EXPECT_EQ(text_.text, "");
  EXPECT_TRUE(sessions.Start(kToken).ok());
  level = base::kFeatureLevel;
  EXPECT_TRUE(sessions.Start(person).ok());
}

TEST_F(SessionsTest, ASessionOfANewerNodeStaysAsItIs) {
  const std::string name = "a name that a newer node made";
  const std::string line = absl::StrCat(Sha256Hex(name), "\tpasskey\t1799999999\tk\\ty\n");
  text_.text = line;
  const auto sessions = Open();
  const absl::Status unknown = sessions->Find(name).status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kUnavailable) << unknown;
  EXPECT_EQ(jobs::ErrorDetailsOf(unknown)->reason, "RECORD_TOO_NEW");
  ASSERT_TRUE(sessions->Start(kToken).ok());
  EXPECT_THAT(text_.text, HasSubstr(line));
}

TEST_F(SessionsTest, StreamsSeeTheEndOfTheirSession) {
  const auto here = Open(), there = Open();
  const SignIn person = {SignIn::Way::kProvider, "https://login email\na@b\nu-17"};
  const std::string first = *here->Start(person), second = *here->Start(person);
  EXPECT_EQ(*Open()->Find(first), person);
  EXPECT_TRUE(here->Holds(Sha256Hex(first)));
  EXPECT_FALSE(here->Holds(first)) << "the name itself is none";
  ASSERT_TRUE(here->End(first).ok());
  EXPECT_FALSE(here->Holds(Sha256Hex(first)));
  ASSERT_TRUE(there->Refresh().ok());
  EXPECT_FALSE(there->Holds(Sha256Hex(first)));
  EXPECT_TRUE(there->Holds(Sha256Hex(second)));
  now_ += absl::Hours(12);
  EXPECT_FALSE(there->Holds(Sha256Hex(second)));
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
  for (size_t i = 0; i < kMaxSessions; ++i) {
    absl::StrAppend(&text_.text, "name", i, "\ttoken\t",
                    absl::ToUnixSeconds(now_) + static_cast<int64_t>(i % 7), "\tkey", i, "\n");
  }
  const auto sessions = Open();
  const std::string name = *sessions->Start(kToken);
  EXPECT_TRUE(sessions->Find(name).ok());
  EXPECT_EQ(std::count(text_.text.begin(), text_.text.end(), '\n'),
            static_cast<int64_t>(kMaxSessions));
}

TEST_F(SessionsTest, ADamagedTextIsTold) {
  for (const char* text : {"x", "a\ttoken\tx\tk", "a\t\t1\tk", "a\ttoken\t1\tk\tmore"}) {
    text_.text = absl::StrCat(text, "\n");
    Sessions sessions({.now = [this] { return now_; }});
    EXPECT_EQ(sessions.Attach(&text_).code(), absl::StatusCode::kFailedPrecondition) << text;
  }
}

TEST_F(SessionsTest, BeginAndEndAtAllNodes) {
  const auto here = Open();
  const auto there = Open();
  now_ += absl::Seconds(1);
  const std::string name = *here->Start(kToken);
  EXPECT_EQ(*there->Find(name), kToken);
  const std::string other = *there->Start(kCertificate);
  EXPECT_EQ(*here->Find(name), kToken);
  ASSERT_TRUE(there->End(name).ok());
  ASSERT_TRUE(here->Refresh().ok());
  EXPECT_FALSE(here->Find(name).ok());
  EXPECT_EQ(*here->Find(other), kCertificate);
}

TEST_F(SessionsTest, WrongNamesDoNotReadTheTextEachTime) {
  const auto here = Open();
  EXPECT_EQ(here->Find("wrong").status().code(), absl::StatusCode::kUnauthenticated);
  text_.error = absl::UnavailableError("away");
  EXPECT_EQ(here->Find("wrong").status().code(), absl::StatusCode::kUnauthenticated);
  now_ += absl::Seconds(1);
  EXPECT_EQ(here->Find("wrong").status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(SessionsTest, WhatCannotBeKeptDoesNotBegin) {
  const auto here = Open();
  const std::string name = *here->Start(kToken);
  text_.error = absl::UnavailableError("away");
  EXPECT_EQ(here->Start(kToken).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(here->End(name).code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(here->Find(name).ok());
}

}  // namespace
}  // namespace npuc::auth
