#include "server/http/http_message.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::http {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<HttpFraming> Check(HttpHeaders headers, const std::string& method = "POST",
                                  int minor_version = 1) {
  headers.emplace_back("Host", "localhost:80");
  return CheckHead(method, headers, minor_version);
}

TEST(HttpMessageTest, BodiesEndWhereOneReadingHasThem) {
  EXPECT_FALSE(Check({})->has_body());
  EXPECT_FALSE(Check({{"Content-Length", "0"}}, "GET")->has_body());
  EXPECT_EQ(Check({{"content-length", "12"}})->content_length, 12u);
  EXPECT_TRUE(Check({{"Transfer-Encoding", "Chunked"}})->chunked);
}

TEST(HttpMessageTest, WhatHasTwoReadingsIsRefused) {
  for (const HttpHeaders& headers : {
           HttpHeaders{{"Content-Length", "2"}, {"Content-Length", "3"}},
           HttpHeaders{{"Content-Length", "2"}, {"content-length", "2"}},
           HttpHeaders{{"Content-Length", "2"}, {"Transfer-Encoding", "chunked"}},
           HttpHeaders{{"Transfer-Encoding", "chunked"}, {"Transfer-Encoding", "chunked"}},
           HttpHeaders{{"Transfer-Encoding", "xchunked"}},
           HttpHeaders{{"Transfer-Encoding", "gzip, chunked"}},
           HttpHeaders{{"Transfer-Encoding", "identity"}},
           HttpHeaders{{"Transfer-Encoding", ""}},
           HttpHeaders{{"Content-Length", "+2"}},
           HttpHeaders{{"Content-Length", "-2"}},
           HttpHeaders{{"Content-Length", "2, 2"}},
           HttpHeaders{{"Content-Length", "0x2"}},
           HttpHeaders{{"Content-Length", ""}},
           HttpHeaders{{"Content-Length", "99999999999999999999"}},
       }) {
    EXPECT_FALSE(Check(headers).ok()) << headers[0].first << ": " << headers[0].second;
  }
  EXPECT_FALSE(Check({{"Content-Length", "2"}}, "GET").ok());
  EXPECT_FALSE(Check({{"Transfer-Encoding", "chunked"}}, "HEAD").ok());
  EXPECT_FALSE(Check({{"Transfer-Encoding", "chunked"}}, "POST", 0).ok());
}

TEST(HttpMessageTest, ThereIsOneHost) {
  EXPECT_FALSE(CheckHead("GET", {}, 1).ok());
  EXPECT_TRUE(CheckHead("GET", {}, 0).ok());
  EXPECT_THAT(std::string(CheckHead("GET", {{"Host", "a"}, {"host", "b"}}, 1).status().message()),
              HasSubstr("2 Host headers"));
  EXPECT_FALSE(CheckHead("GET", {{"Host", "a, b"}}, 1).ok());
  EXPECT_TRUE(CheckHead("GET", {{"Host", "[::1]:8480"}}, 1).ok());
}

TEST(HttpMessageTest, TargetsAreDecodedOnce) {
  HttpRequest request;
  ASSERT_TRUE(ParseTarget("/a%2fb+c?x=1%26&y=a+b&x=2&z&&=v", &request).ok());
  EXPECT_EQ(request.path, "/a/b+c");
  EXPECT_EQ(request.params, (std::multimap<std::string, std::string>{
                                {"", "v"}, {"x", "1&"}, {"x", "2"}, {"y", "a b"}, {"z", ""}}));
  for (const char* bad : {"", "*", "http://host/", "host:80", "/%", "/%4", "/%4x", "/?a=%zz"}) {
    EXPECT_FALSE(ParseTarget(bad, &request).ok()) << bad;
  }
}

}  // namespace
}  // namespace npuc::http
