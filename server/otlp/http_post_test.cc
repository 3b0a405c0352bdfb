#include "server/otlp/http_post.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/otlp/otlp_test_util.h"

namespace npuc::otlp {
namespace {

using ::testing::HasSubstr;

TEST(HttpPostTest, ReadsEndpoints) {
  const auto plain = ParseEndpoint("http://collector");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->ToString(), "http://collector:4318/v1/traces");
  EXPECT_EQ(ParseEndpoint("http://127.0.0.1:9/")->ToString(), "http://127.0.0.1:9/v1/traces");
  EXPECT_EQ(ParseEndpoint("http://[::1]:80/otlp")->host, "::1");
  EXPECT_EQ(ParseEndpoint("http://[::1]:80/otlp")->path, "/otlp/v1/traces");
  for (const char* wrong :
       {"", "collector:4318", "https://collector", "http://", "http://:4318", "http://a:0",
        "http://a:65536", "http://a:x", "http://a b", "http://u:p@a", "http://a/?x", "http://a#x",
        "http://[::1", "http://a\r\nX: y"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseEndpoint(wrong).status())) << wrong;
  }
  EXPECT_THAT(ParseEndpoint("https://a").status().message(), HasSubstr("TLS"));
}

TEST(HttpPostTest, ReadsHeaders) {
  const auto headers =
      ParseHeaders("# of the collector\n\nAuthorization: Bearer a:b\nX-Scope:1\r\n");
  ASSERT_TRUE(headers.ok()) << headers.status();
  EXPECT_EQ(*headers, (Headers{{"Authorization", "Bearer a:b"}, {"X-Scope", "1"}}));
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

TEST(HttpPostTest, SendsWhatItIsGiven) {
  FakeCollector collector({"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nRetry-After: 7\r\n\r\n{}"});
  const auto answer =
      PostJson(collector.endpoint(), {{"X-A", "b"}}, "{\"a\":1}", absl::Seconds(20));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "{}");
  EXPECT_EQ(answer->retry_after, absl::Seconds(7));
  const std::string request = collector.requests().at(0);
  EXPECT_THAT(request, HasSubstr("POST /v1/traces HTTP/1.1\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nX-A: b\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nContent-Length: 7\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\n\r\n{\"a\":1}"));
}

TEST(HttpPostTest, AnswersThatAreNone) {
  const std::string long_answer =
      absl::StrCat("HTTP/1.1 200 OK\r\n\r\n", std::string(2 * kMaxAnswerBytes, 'x'));
  for (const std::string& garbage :
       {std::string("SSH-2.0-OpenSSH\r\n\r\n"), std::string("HTTP/1.1 abc\r\n\r\n"),
        std::string("x"), long_answer}) {
    FakeCollector collector({garbage});
    EXPECT_TRUE(absl::IsInvalidArgument(
        PostJson(collector.endpoint(), {}, "{}", absl::Seconds(20)).status()))
        << garbage.substr(0, 40);
  }
  FakeCollector silent({""});  // closes
  EXPECT_TRUE(
      absl::IsUnavailable(PostJson(silent.endpoint(), {}, "{}", absl::Seconds(20)).status()));
}

TEST(HttpPostTest, WaitsNoLongerThanItsTime) {
  FakeCollector collector({FakeCollector::kHangs});
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      PostJson(collector.endpoint(), {}, "{}", absl::Milliseconds(50)).status()));
}

TEST(HttpPostTest, ReadsAnAnswerInChunksByItsStatus) {
  FakeCollector collector(
      {"HTTP/1.1 503 x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"});
  const auto answer = PostJson(collector.endpoint(), {}, "{}", absl::Seconds(20));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 503);
}

TEST(HttpPostTest, NobodyListens) {
  Endpoint endpoint;
  {
    FakeCollector gone({});
    endpoint = gone.endpoint();
  }
  EXPECT_TRUE(absl::IsUnavailable(PostJson(endpoint, {}, "{}", absl::Seconds(20)).status()));
}

}  // namespace
}  // namespace npuc::otlp
