#include "server/otlp/collector.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::otlp {
namespace {

using ::testing::HasSubstr;

TEST(CollectorTest, ReadsUrls) {
  EXPECT_EQ(*TracesUrl("http://collector"), "http://collector:4318/v1/traces");
  EXPECT_EQ(*TracesUrl("https://collector/"), "https://collector:4318/v1/traces");
  EXPECT_EQ(*TracesUrl("http://127.0.0.1:9/"), "http://127.0.0.1:9/v1/traces");
  EXPECT_EQ(*TracesUrl("http://[::1]:80/otlp"), "http://[::1]:80/otlp/v1/traces");
  EXPECT_EQ(*TracesUrl("https://[::1]/otlp/"), "https://[::1]:4318/otlp/v1/traces");
  for (const char* wrong : {"", "collector:4318", "http://", "http://:4318", "http://a:0",
                            "http://u:p@a", "http://a/?x", "http://a#x", "http://a\r\nX: y"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(TracesUrl(wrong).status())) << wrong;
  }
  EXPECT_THAT(TracesUrl("collector:4318").status().message(), HasSubstr("https://HOST:4318"));
}

TEST(CollectorTest, ReadsHeaders) {
  const auto headers =
      ParseHeaders("# of the collector\n\nAuthorization: Bearer a:b\nX-Scope:1\r\n");
  ASSERT_TRUE(headers.ok()) << headers.status();
  EXPECT_EQ(*headers, (http_client::Headers{{"Authorization", "Bearer a:b"}, {"X-Scope", "1"}}));
  for (const char* wrong : {"no colon", ": x", "a b: x", "Content-Length: 3", "host: x", "a: \x01",
                            "Transfer-Encoding: chunked"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseHeaders(wrong).status())) << wrong;
  }
  const std::string secret = absl::StrCat("a: ", std::string(5000, 's'));
  EXPECT_EQ(ParseHeaders(secret).status().message().find("sss"), std::string::npos);
  std::string many;
  for (int i = 0; i < 33; ++i) absl::StrAppend(&many, "a", i, ": x\n");
  EXPECT_TRUE(absl::IsInvalidArgument(ParseHeaders(many).status()));
}

}  // namespace
}  // namespace npuc::otlp
