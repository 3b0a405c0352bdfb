#include "server/http_client/url.h"

#include <string>

#include "gtest/gtest.h"

namespace npuc::http_client {
namespace {

TEST(UrlTest, TellsConfidentialOnes) {
  for (const char* good : {"https://login.farm.example", "https://login.farm.example/realms/farm",
                           "https://a:8443/x", "https://[2001:db8::1]/x", "http://127.0.0.1:1/x",
                           "http://localhost", "http://[::1]:80", "https://a/token?x=1"}) {
    EXPECT_TRUE(CheckConfidentialUrl(good).ok()) << CheckConfidentialUrl(good);
    EXPECT_TRUE(CheckUrl(good).ok()) << CheckUrl(good);
  }
  for (const char* plain : {"http://login.farm.example", "http://127.0.0.1.farm.example"}) {
    EXPECT_FALSE(CheckConfidentialUrl(plain).ok()) << plain;
    EXPECT_TRUE(CheckUrl(plain).ok()) << CheckUrl(plain);
  }
  for (const char* wrong : {"", "login.farm.example", "ftp://a", "file:///etc/passwd", "https://",
                            "https:///x", "https://u:p@a", "https://a:0", "https://a:65536",
                            "https://a:x", "https://a b", "https://a#x", "https://a\r\nX: y",
                            "https://a\\b", "https://[::1", "https://?x", "HTTPS://a"}) {
    EXPECT_EQ(CheckUrl(wrong).code(), absl::StatusCode::kInvalidArgument) << wrong;
    EXPECT_EQ(CheckConfidentialUrl(wrong).code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
  EXPECT_FALSE(CheckUrl("https://a/" + std::string(kMaxUrlBytes, 'x')).ok());
}

}  // namespace
}  // namespace npuc::http_client
