#include "server/oidc/fetcher.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "server/otlp/otlp_test_util.h"

namespace npuc::oidc {
namespace {

using ::testing::HasSubstr;

std::string UrlOf(const otlp::FakeCollector& server, const char* path = "/token") {
  return absl::StrCat("http://127.0.0.1:", server.endpoint().port, path);
}

TEST(CurlFetcherTest, PostsAFormAndReadsTheAnswer) {
  otlp::FakeCollector server({"HTTP/1.1 400 Bad\r\nContent-Length: 2\r\n\r\n{}"});
  CurlFetcher fetcher("");
  const auto answer =
      fetcher.Fetch({.url = UrlOf(server), .headers = {"X-A: b"}, .form = "code=1&x=%20"});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 400);
  EXPECT_EQ(answer->body, "{}");
  const std::string request = server.requests().at(0);
  EXPECT_THAT(request, HasSubstr("POST /token HTTP/1.1\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nX-A: b\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\n\r\ncode=1&x=%20"));
}

TEST(CurlFetcherTest, FollowsNoRedirect) {
  otlp::FakeCollector other({"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"});
  otlp::FakeCollector server({absl::StrCat("HTTP/1.1 307 Moved\r\nLocation: ", UrlOf(other),
                                           "\r\nContent-Length: 0\r\n\r\n")});
  CurlFetcher fetcher("");
  EXPECT_EQ(fetcher.Fetch({.url = UrlOf(server), .form = ""})->status, 307);
  EXPECT_TRUE(other.requests().empty());
}

// A body and a head without end, the first in a length that it declares and in one that it does
// not.
TEST(CurlFetcherTest, TakesABoundedAnswer) {
  const std::string much(kMaxDocumentBytes + 1, 'x');
  const std::string declared =
      absl::StrCat("HTTP/1.1 200 OK\r\nContent-Length: ", much.size(), "\r\n\r\n", much);
  std::string head = "HTTP/1.1 200 OK\r\n";
  for (int i = 0; i < 1000; ++i)
    absl::StrAppend(&head, "X-", i, ": ", std::string(200, 'x'), "\r\n");
  for (const std::string& answer :
       {declared, absl::StrCat("HTTP/1.1 200 OK\r\n\r\n", much), absl::StrCat(head, "\r\n{}")}) {
    otlp::FakeCollector server({answer});
    CurlFetcher fetcher("");
    const auto got = fetcher.Fetch({.url = UrlOf(server), .form = ""});
    EXPECT_EQ(got.status().code(), absl::StatusCode::kInvalidArgument) << got.status();
  }
  otlp::FakeCollector server({absl::StrCat("HTTP/1.1 200 OK\r\n\r\n", much.substr(1))});
  CurlFetcher fetcher("");
  EXPECT_EQ(fetcher.Fetch({.url = UrlOf(server), .form = ""})->body.size(), kMaxDocumentBytes);
}

TEST(CurlFetcherTest, WaitsNoLongerThanItsTime) {
  otlp::FakeCollector server({otlp::FakeCollector::kHangs});
  CurlFetcher fetcher("");
  const auto got =
      fetcher.Fetch({.url = UrlOf(server), .form = "", .timeout = absl::Milliseconds(50)});
  EXPECT_EQ(got.status().code(), absl::StatusCode::kDeadlineExceeded) << got.status();
}

TEST(CurlFetcherTest, FailuresSayWhy) {
  CurlFetcher fetcher("");
  otlp::FakeCollector server({"HTTP/1.1 200 OK\r\n\r\n"});
  const auto no_file =
      CurlFetcher("/no/such/ca.pem")
          .Fetch({.url = absl::StrCat("https://127.0.0.1:", server.endpoint().port, "/")});
  EXPECT_EQ(no_file.status().code(), absl::StatusCode::kUnavailable) << no_file.status();
  // Nothing but HTTP, whatever the URL says.
  const auto file = fetcher.Fetch({.url = "file:///etc/passwd"});
  EXPECT_EQ(file.status().code(), absl::StatusCode::kUnavailable) << file.status();
  EXPECT_THAT(file.status().message(), HasSubstr("file:///etc/passwd"));
}

}  // namespace
}  // namespace npuc::oidc
