#include "server/auth/tenant_rules.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace npuc::auth {
namespace {

class TenantRulesTest : public ::testing::Test {
 protected:
  TenantRulesTest()
      : path_(::testing::TempDir() + "npuc_tenant_rules_" + std::to_string(getpid())) {
    Write(
        "{weight: 3, shared_cache: true, "
        "quota: {job_bytes: 1MiB, stored_bytes: 2MiB, result_bytes: 3MiB}}");
    auto made = Authenticator::FromFile(path_, [] { return absl::UnixEpoch(); });
    EXPECT_TRUE(made.ok()) << made.status();
    if (made.ok()) authenticator_ = *std::move(made);
  }
  ~TenantRulesTest() override { std::filesystem::remove(path_); }

  void Write(const std::string& audio) {
    std::ofstream(path_) << absl::StrCat(
        "format: 1\ntenants:\n  audio: ", audio.substr(0, audio.size() - 1),
        ", identities: {ci: {token_sha256: [", std::string(64, 'a'), "], rights: [submit]}}}\n",
        "  plain: {identities: {ci: {token_sha256: [", std::string(64, 'b'),
        "], rights: [submit]}}}\n");
  }

  const std::string path_;
  std::unique_ptr<Authenticator> authenticator_;
};

TEST_F(TenantRulesTest, TheFileDecidesAndDefaultsFillIn) {
  const TenantRules rules(authenticator_.get(), {.default_stored_bytes = 77});
  EXPECT_EQ(rules.WeightOf("audio"), 3);
  EXPECT_EQ(rules.QuotaOf("audio").job_bytes, 1 << 20);
  EXPECT_EQ(rules.StoredBytesOf("audio"), 2u << 20);
  EXPECT_EQ(rules.ResultBytesOf("audio"), 3u << 20);
  for (const char* other : {"plain", "not in the file", ""}) {
    EXPECT_EQ(rules.WeightOf(other), 1) << other;
    EXPECT_EQ(rules.QuotaOf(other).job_bytes, std::nullopt) << other;
    EXPECT_EQ(rules.StoredBytesOf(other), 77u) << other;
    EXPECT_EQ(rules.ResultBytesOf(other), TenantRules::kNoLimit) << other;
  }
  EXPECT_EQ(rules.ResultBytesOf(kSharedScope), TenantRules::kNoLimit);
}

TEST_F(TenantRulesTest, ResultsAreSharedWhereBothSidesWantIt) {
  const TenantRules apart(authenticator_.get(), {.shared_cache = false});
  EXPECT_EQ(apart.ResultScopeOf("audio"), "audio");
  const TenantRules together(authenticator_.get(), {.shared_cache = true});
  EXPECT_EQ(together.ResultScopeOf("audio"), kSharedScope);
  EXPECT_EQ(together.ResultScopeOf("plain"), "plain");
  EXPECT_EQ(together.ResultScopeOf("0canary"), "0canary");
}

TEST_F(TenantRulesTest, AReloadedFileHoldsAtOnce) {
  const TenantRules rules(authenticator_.get(), {});
  Write("{weight: 5}");
  ASSERT_TRUE(authenticator_->Reload().value());
  EXPECT_EQ(rules.WeightOf("audio"), 5);
  EXPECT_EQ(rules.QuotaOf("audio").job_bytes, std::nullopt);
}

}  // namespace
}  // namespace npuc::auth
