#include "server/auth/authenticator.h"

#include <cstdio>
#include <fstream>
#include <set>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/digest.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/kept_text_test_util.h"
#include "server/jobs/service_error.h"

namespace npuc::auth {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

void Write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::trunc) << text;
}

std::string FileWith(const std::string& token, const std::string& rights) {
  return absl::StrCat("format: 1\ntenants: {audio: {identities: {ci: {token_sha256: ",
                      Sha256Hex(token), ", rights: ", rights, "}}}}\n");
}

class AuthenticatorTest : public ::testing::Test {
 protected:
  const std::string path_ = absl::StrCat(
      ::testing::TempDir(), "/", ::testing::UnitTest::GetInstance()->current_test_info()->name(),
      ".tenants.yaml");
  const std::string token_ = NewToken();
};

TEST_F(AuthenticatorTest, EverybodyIsTheLocalAdmin) {
  const auto authenticator = Authenticator::Everybody();
  const auto caller = authenticator->Authenticate({});
  ASSERT_TRUE(caller.ok());
  EXPECT_EQ(caller->tenant, "default");
  for (const Right right : kAllRights) EXPECT_TRUE(caller->Require(right).ok());
  EXPECT_FALSE(*authenticator->Reload());
}

// Calls that an identity with the token makes before one is refused; at most 100.
int CallsOf(const Authenticator& authenticator, const std::string& token) {
  int count = 0;
  while (count < 100 && authenticator.Authenticate({token, {}}).ok()) ++count;
  return count;
}

TEST_F(AuthenticatorTest, BoundsATenantsCallsButNotAnOperators) {
  const auto with = [&](const std::string& rights) {
    return absl::StrCat("format: 1\ntenants: {audio: {quota: {call_rate: 2}, identities: ",
                        "{ci: {token_sha256: ", Sha256Hex(token_), ", rights: ", rights, "}}}}\n");
  };
  Write(path_, with("[read, submit]"));
  const auto authenticator = *Authenticator::FromFile(path_, [] { return absl::Now(); });
  const int calls = CallsOf(*authenticator, token_);
  EXPECT_GE(calls, 20);
  EXPECT_LT(calls, 100);
  Write(path_, with("[admin]"));
  EXPECT_TRUE(*authenticator->Reload());
  EXPECT_EQ(CallsOf(*authenticator, token_), 100);
}

// A clock, and what an operator decided by it.
struct Decided {
  absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  base::MemoryText tokens_text, limits_text;
  IssuedTokens tokens{[this] { return now; }};
  TemporaryLimits limits{[this] { return now; }};
};

TEST_F(AuthenticatorTest, ARotatedTokenCountsBesideTheOldOneUntilThatEnds) {
  Write(path_, FileWith(token_, "[read]"));
  Decided decided;
  ASSERT_TRUE(decided.tokens.Attach(&decided.tokens_text).ok());
  const auto authenticator =
      *Authenticator::FromFile(path_, [&] { return decided.now; }, nullptr, 0,
                               {.tokens = &decided.tokens, .limits = &decided.limits});
  const std::string fresh = NewToken();
  EXPECT_FALSE(authenticator->Authenticate({fresh, {}}).ok());
  const auto directory = authenticator->directory();
  ASSERT_TRUE(decided.tokens
                  .Rotate({.owner = {"audio", "ci"},
                           .token_sha256 = Sha256Hex(fresh),
                           .file_sha256s = directory->TokensOf("audio", "ci"),
                           .grace = absl::Hours(1)},
                          [&](absl::string_view one) { return directory->HasToken(one); })
                  .ok());
  for (const std::string& token : {token_, fresh}) {
    const auto caller = authenticator->Authenticate({token, {}});
    ASSERT_TRUE(caller.ok()) << caller.status();
    EXPECT_EQ(caller->identity, "ci");
    EXPECT_FALSE(caller->Require(Right::kSubmit).ok());
  }
  // Sessions of a page that began with either.
  Credentials old_page;
  old_page.session = SignIn{SignIn::Way::kToken, Sha256Hex(token_)};
  Credentials page;
  page.session = authenticator->Authenticate({fresh, {}})->sign_in;
  EXPECT_TRUE(authenticator->Authenticate(old_page).ok());
  EXPECT_TRUE(authenticator->Authenticate(page).ok());
  decided.now += absl::Hours(1);
  EXPECT_EQ(jobs::ErrorDetailsOf(authenticator->Authenticate(old_page).status())->reason,
            "SESSION_ENDED");
  EXPECT_TRUE(authenticator->Authenticate(page).ok());
  EXPECT_THAT(std::string(authenticator->Authenticate({token_, {}}).status().message()),
              HasSubstr("was replaced"));
  EXPECT_TRUE(authenticator->Authenticate({fresh, {}}).ok());
  // Rights and existence of an identity are the file's.
  Write(path_, "format: 1\ntenants: {audio: {identities: {other: {token_sha256: " +
                   std::string(64, 'a') + ", rights: [read]}}}}\n");
  ASSERT_TRUE(*authenticator->Reload());
  EXPECT_FALSE(authenticator->Authenticate({fresh, {}}).ok());
}

TEST_F(AuthenticatorTest, ACallRateSetForATimeHolds) {
  Write(path_, FileWith(token_, "[read]"));
  Decided decided;
  ASSERT_TRUE(decided.limits.Attach(&decided.limits_text).ok());
  ASSERT_TRUE(
      decided.limits.Set("audio", {.quota = {.call_rate = 2}, .end = decided.now + absl::Hours(1)})
          .ok());
  const auto authenticator =
      *Authenticator::FromFile(path_, [&] { return decided.now; }, nullptr, 0,
                               {.tokens = &decided.tokens, .limits = &decided.limits});
  EXPECT_LT(CallsOf(*authenticator, token_), 100);
  decided.now += absl::Hours(1);
  EXPECT_EQ(CallsOf(*authenticator, token_), 100);
}

TEST_F(AuthenticatorTest, ANewFileHoldsAfterReload) {
  Write(path_, FileWith(token_, "read"));
  const auto authenticator = *Authenticator::FromFile(path_, [] { return absl::Now(); });
  EXPECT_FALSE(authenticator->Authenticate({token_, {}})->rights.Has(Right::kSubmit));
  EXPECT_FALSE(*authenticator->Reload());
  Write(path_, FileWith(token_, "[read, submit]"));
  const auto before = authenticator->directory();
  EXPECT_TRUE(*authenticator->Reload());
  EXPECT_TRUE(authenticator->Authenticate({token_, {}})->rights.Has(Right::kSubmit));
  EXPECT_NE(before, authenticator->directory());
  EXPECT_NE(before->Find("audio"), nullptr);  // what a call under way has stays whole
}

TEST_F(AuthenticatorTest, AWrongFileLeavesTheOldOneInForce) {
  Write(path_, FileWith(token_, "read"));
  const auto authenticator = *Authenticator::FromFile(path_, [] { return absl::Now(); });
  Write(path_, "format: 1\ntenants: {audio: {weigth: 3, quotta: 1}}\n");
  const auto changed = authenticator->Reload();
  const std::string problems(changed.status().message());
  EXPECT_THAT(problems, HasSubstr("did you mean weight? [NPUC1003], "));
  EXPECT_THAT(problems, Not(HasSubstr("\n")));  // one field of one line in the log
  EXPECT_TRUE(authenticator->Authenticate({token_, {}}).ok());
  std::remove(path_.c_str());
  EXPECT_EQ(authenticator->Reload().status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(authenticator->Authenticate({token_, {}}).ok());
}

TEST_F(AuthenticatorTest, AMissingFileIsAnErrorAtTheStart) {
  const auto authenticator = Authenticator::FromFile(path_ + ".none", [] { return absl::Now(); });
  EXPECT_THAT(authenticator.status().message(), HasSubstr("cannot read the tenants file"));
}

TEST(NewToken, IsLongEnoughAndNeverTheSame) {
  std::set<std::string> tokens;
  for (int i = 0; i < 1000; ++i) {
    const std::string token = NewToken();
    EXPECT_GE(token.size(), kMinTokenChars);
    tokens.insert(token);
  }
  EXPECT_EQ(tokens.size(), 1000u);
}

}  // namespace
}  // namespace npuc::auth
