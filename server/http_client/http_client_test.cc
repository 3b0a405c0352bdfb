#include "server/http_client/http_client.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "server/http_client/fake_server.h"

namespace npuc::http_client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Request Post(std::string url, std::string body, Headers headers = {}) {
  Request request{.method = "POST", .url = std::move(url), .headers = std::move(headers)};
  SetBody(std::move(body), request);
  return request;
}

TEST(HttpClientTest, PostsAndReadsTheAnswer) {
  FakeServer server(
      {"HTTP/1.1 400 Bad\r\nContent-Length: 2\r\nRetry-After: 7\r\nX-A:  b c \r\n\r\n{}"});
  CurlClient client("");
  const auto answer = client.Send(Post(server.url("/token"), "code=1&x=%20", {{"X-A", "b"}}));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 400);
  EXPECT_EQ(answer->body, "{}");
  EXPECT_EQ(answer->headers.at("retry-after"), "7");
  EXPECT_EQ(answer->headers.at("x-a"), "b c");
  const std::string request = server.requests().at(0);
  EXPECT_THAT(request, HasSubstr("POST /token HTTP/1.1\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nX-A: b\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nContent-Length: 12\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\n\r\ncode=1&x=%20"));
  EXPECT_THAT(request, Not(HasSubstr("Expect")));
  EXPECT_THAT(request, Not(HasSubstr("Transfer-Encoding")));
}

TEST(HttpClientTest, GetsWithoutABody) {
  FakeServer server(
      {"HTTP/1.1 100 Continue\r\nX-Interim: 1\r\n\r\n"
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"});
  CurlClient client("");
  const auto answer = client.Send({.url = server.url("/keys")});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "{}");
  EXPECT_EQ(answer->headers.count("x-interim"), 0);
  EXPECT_THAT(server.requests().at(0), HasSubstr("GET /keys HTTP/1.1\r\n"));
}

TEST(HttpClientTest, FollowsNoRedirect) {
  FakeServer other({"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"});
  FakeServer server({absl::StrCat("HTTP/1.1 307 Moved\r\nLocation: ", other.url(),
                                  "\r\nContent-Length: 0\r\n\r\n")});
  CurlClient client("");
  EXPECT_EQ(client.Send(Post(server.url(), ""))->status, 307);
  EXPECT_TRUE(other.requests().empty());
}

// A body and a head without end, the first in a length that it declares and in one that it does
// not.
TEST(HttpClientTest, TakesABoundedAnswer) {
  const size_t most = Limits().answer_bytes;
  const std::string much(most + 1, 'x');
  const std::string declared =
      absl::StrCat("HTTP/1.1 200 OK\r\nContent-Length: ", much.size(), "\r\n\r\n", much);
  std::string head = "HTTP/1.1 200 OK\r\n";
  for (int i = 0; i < 1000; ++i) {
    absl::StrAppend(&head, "X-", i, ": ", std::string(200, 'x'), "\r\n");
  }
  CurlClient client("");
  for (const std::string& answer :
       {declared, absl::StrCat("HTTP/1.1 200 OK\r\n\r\n", much), absl::StrCat(head, "\r\n{}")}) {
    FakeServer server({answer});
    const auto got = client.Send(Post(server.url(), ""));
    EXPECT_EQ(got.status().code(), absl::StatusCode::kInvalidArgument) << got.status();
  }
  FakeServer server({absl::StrCat("HTTP/1.1 200 OK\r\n\r\n", much.substr(1))});
  EXPECT_EQ(client.Send(Post(server.url(), ""))->body.size(), most);
}

TEST(HttpClientTest, WaitsNoLongerThanItsTime) {
  FakeServer server({FakeServer::kHangs});
  Request request = Post(server.url(), "");
  request.limits.whole = absl::Milliseconds(50);
  const auto got = CurlClient("").Send(request);
  EXPECT_EQ(got.status().code(), absl::StatusCode::kDeadlineExceeded) << got.status();
}

TEST(HttpClientTest, ErrorsOfTheBodyComeBack) {
  FakeServer server({"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"});
  CurlClient client("");
  Request request{.method = "PUT", .url = server.url(), .body_bytes = 10};
  request.body = [](uint64_t, size_t) { return absl::AbortedError("gone"); };
  EXPECT_EQ(client.Send(request).status(), absl::AbortedError("gone"));
  request.body = [](uint64_t, size_t) -> absl::StatusOr<std::string> { return ""; };
  EXPECT_TRUE(absl::IsDataLoss(client.Send(request).status()));
}

TEST(HttpClientTest, FailuresSayWhy) {
  CurlClient client("");
  FakeServer server({"SSH-2.0-OpenSSH\r\n\r\n"});
  const auto no_http = client.Send({.url = server.url()});
  EXPECT_EQ(no_http.status().code(), absl::StatusCode::kInvalidArgument) << no_http.status();
  FakeServer closes({""});
  const auto closed = client.Send({.url = closes.url()});
  EXPECT_EQ(closed.status().code(), absl::StatusCode::kUnavailable) << closed.status();
  const auto no_file = CurlClient("/no/such/ca.pem")
                           .Send({.url = absl::StrReplaceAll(server.url(), {{"http", "https"}})});
  EXPECT_EQ(no_file.status().code(), absl::StatusCode::kUnavailable) << no_file.status();
  // Nothing but HTTP, whatever the URL says.
  const auto file = client.Send({.url = "file:///etc/passwd"});
  EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument) << file.status();
  EXPECT_THAT(file.status().message(), HasSubstr("file:///etc/passwd"));
}

}  // namespace
}  // namespace npuc::http_client
