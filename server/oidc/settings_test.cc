#include "server/oidc/settings.h"

#include "gtest/gtest.h"

namespace npuc::oidc {
namespace {

TEST(OidcSettingsTest, IssuersHaveNoQuery) {
  EXPECT_TRUE(CheckIssuer("https://a/realms/farm").ok());
  EXPECT_FALSE(CheckIssuer("https://a/token?x=1").ok());
  EXPECT_FALSE(CheckIssuer("http://login.farm.example").ok());
}

TEST(OidcSettingsTest, ThePageIsAnOrigin) {
  EXPECT_EQ(*ReadPageUrl("https://NPUC.farm.example"), "https://npuc.farm.example");
  EXPECT_EQ(*ReadPageUrl("https://npuc.farm.example:443/"), "https://npuc.farm.example");
  EXPECT_EQ(*ReadPageUrl("https://npuc.farm.example:8443"), "https://npuc.farm.example:8443");
  EXPECT_EQ(*ReadPageUrl("http://127.0.0.1:80"), "http://127.0.0.1");
  for (const char* wrong : {"https://a/npuc", "https://a?x", "http://npuc.farm.example", "a", ""}) {
    EXPECT_FALSE(ReadPageUrl(wrong).ok()) << wrong;
  }
}

TEST(OidcSettingsTest, ScopesAndClaims) {
  EXPECT_TRUE(CheckScopes("openid").ok());
  EXPECT_TRUE(CheckScopes("profile openid groups").ok());
  for (const char* wrong : {"", "email", "openid  email", " openid", "openid \"x\"", "openid\n"}) {
    EXPECT_FALSE(CheckScopes(wrong).ok()) << wrong;
  }
  for (const char* good : {"email", "sub", "groups", "https://farm.example/team"}) {
    EXPECT_TRUE(CheckClaimName(good).ok()) << good;
  }
  for (const char* wrong : {"", "a b", "a\"", "\n"}) EXPECT_FALSE(CheckClaimName(wrong).ok());
  EXPECT_FALSE(CheckClaimName(std::string(65, 'a')).ok());
}

}  // namespace
}  // namespace npuc::oidc
