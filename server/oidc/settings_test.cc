#include "server/oidc/settings.h"

#include "gtest/gtest.h"

namespace npuc::oidc {
namespace {

TEST(OidcSettingsTest, ProvidersAreReachedByTlsOrOnThisMachine) {
  for (const char* good : {"https://login.farm.example", "https://login.farm.example/realms/farm",
                           "https://a:8443/x", "https://[2001:db8::1]/x", "http://127.0.0.1:1/x",
                           "http://localhost", "http://[::1]:80", "https://a/token?x=1"}) {
    EXPECT_TRUE(CheckProviderUrl(good).ok()) << CheckProviderUrl(good);
  }
  for (const char* wrong :
       {"", "login.farm.example", "http://login.farm.example", "http://127.0.0.1.farm.example",
        "ftp://a", "file:///etc/passwd", "https://", "https:///x", "https://u:p@a", "https://a:0",
        "https://a:65536", "https://a:x", "https://a b", "https://a#x", "https://a\r\nX: y",
        "https://a\\b", "https://[::1", "https://?x", "HTTPS://a"}) {
    EXPECT_EQ(CheckProviderUrl(wrong).code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
  EXPECT_FALSE(CheckProviderUrl("https://a/" + std::string(kMaxUrlBytes, 'x')).ok());
  EXPECT_TRUE(CheckIssuer("https://a/realms/farm").ok());
  EXPECT_FALSE(CheckIssuer("https://a/token?x=1").ok());
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
