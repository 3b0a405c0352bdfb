#include "server/auth/issued_tokens.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/kept_text_test_util.h"

namespace npuc::auth {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

class IssuedTokensTest : public ::testing::Test {
 protected:
  std::unique_ptr<IssuedTokens> Open() {
    auto tokens = std::make_unique<IssuedTokens>([this] { return now_; });
    EXPECT_TRUE(tokens->Attach(&text_).ok());
    return tokens;
  }
  // For the identity of the tenants file whose tokens are `file_`.
  absl::StatusOr<std::optional<absl::Time>> Rotate(IssuedTokens& tokens, const std::string& sha256,
                                                   absl::Duration grace = absl::Hours(1)) {
    return tokens.Rotate({.owner = {"audio", "ci"},
                          .token_sha256 = sha256,
                          .file_sha256s = {file_.begin(), file_.end()},
                          .grace = grace},
                         [this](absl::string_view one) { return file_.contains(one); });
  }
  // True: the token is valid now.
  bool IsValid(const IssuedTokens& tokens, const std::string& sha256) {
    const auto token = tokens.Find(sha256);
    return token.has_value() ? now_ < token->end : file_.contains(sha256);
  }

  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
  std::set<std::string, std::less<>> file_ = {"f"};
  base::MemoryText text_;
};

TEST_F(IssuedTokensTest, TwoAreValidAtOnceAndTheOldOneEnds) {
  EXPECT_THAT(*Rotate(*Open(), "n1"), Optional(now_ + absl::Hours(1)));
  const auto tokens = Open();  // as after a restart
  EXPECT_TRUE(IsValid(*tokens, "f"));
  EXPECT_TRUE(IsValid(*tokens, "n1"));
  EXPECT_EQ(tokens->Find("n1")->owner->identity, "ci");
  EXPECT_FALSE(tokens->Find("f")->owner.has_value());
  now_ += absl::Hours(1);
  EXPECT_FALSE(IsValid(*tokens, "f"));
  EXPECT_TRUE(IsValid(*tokens, "n1"));
  // A token of the file stays invalid after a later rotation.
  ASSERT_TRUE(Rotate(*tokens, "n2").ok());
  EXPECT_FALSE(IsValid(*tokens, "f"));
}

TEST_F(IssuedTokensTest, NeverMoreThanTwo) {
  const auto tokens = Open();
  ASSERT_TRUE(Rotate(*tokens, "n1").ok());
  EXPECT_THAT(*Rotate(*tokens, "n2"), Optional(now_ + absl::Hours(1)));
  EXPECT_FALSE(IsValid(*tokens, "f"));
  EXPECT_TRUE(IsValid(*tokens, "n1"));
  EXPECT_TRUE(IsValid(*tokens, "n2"));
  // A client repeats a call after a lost answer.
  EXPECT_THAT(*Rotate(*tokens, "n2"), Optional(now_ + absl::Hours(1)));
  EXPECT_TRUE(IsValid(*tokens, "n1"));
  ASSERT_TRUE(Rotate(*tokens, "n3", absl::ZeroDuration()).ok());
  EXPECT_FALSE(IsValid(*tokens, "n1"));
  EXPECT_FALSE(IsValid(*tokens, "n2"));
  EXPECT_TRUE(IsValid(*tokens, "n3"));
  EXPECT_FALSE(tokens->Find("n1").has_value());  // nothing is kept of it
}

TEST_F(IssuedTokensTest, ATokenIsOneIdentitysAlone) {
  const auto tokens = Open();
  ASSERT_TRUE(Rotate(*tokens, "n1").ok());
  const auto other = tokens->Rotate({.owner = {"vision", "ci"}, .token_sha256 = "n1", .grace = {}},
                                    [](absl::string_view) { return false; });
  EXPECT_TRUE(absl::IsAlreadyExists(other.status()));
  EXPECT_TRUE(absl::IsAlreadyExists(Rotate(*tokens, "f").status()));
  EXPECT_EQ(tokens->Find("n1")->owner->tenant, "audio");
}

TEST_F(IssuedTokensTest, NodesHaveTheSame) {
  const auto here = Open();
  const auto there = Open();
  ASSERT_TRUE(Rotate(*there, "n1").ok());
  ASSERT_TRUE(Rotate(*here, "n2").ok());  // without a look at the change
  EXPECT_TRUE(*there->Refresh());
  EXPECT_FALSE(*there->Refresh());
  EXPECT_TRUE(IsValid(*there, "n1"));
  EXPECT_TRUE(IsValid(*there, "n2"));
  EXPECT_FALSE(IsValid(*there, "f"));
}

TEST_F(IssuedTokensTest, WhatCannotBeKeptOrReadIsTold) {
  const auto tokens = Open();
  text_.error = absl::InternalError("no disk");
  EXPECT_FALSE(Rotate(*tokens, "n1").ok());
  EXPECT_FALSE(IsValid(*tokens, "n1"));
  EXPECT_TRUE(IsValid(*tokens, "f"));
  text_.error = absl::OkStatus();
  for (const char* bad : {"nonsense\n", "a\tsoon\tt\ti\n", "a\t1\tt\t\n"}) {
    text_.text = bad;
    IssuedTokens damaged([this] { return now_; });
    EXPECT_THAT(std::string(damaged.Attach(&text_).message()), HasSubstr("damaged")) << bad;
  }
}

}  // namespace
}  // namespace npuc::auth
