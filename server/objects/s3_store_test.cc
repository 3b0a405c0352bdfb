#include "server/objects/s3_store.h"

#include "absl/strings/str_cat.h"
#include "compiler_core/base/digest.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/http_client/fake_server.h"

namespace npuc::objects {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string Answer(int status, const std::string& body = "", const std::string& head = "") {
  return absl::StrCat("HTTP/1.1 ", status, " Any\r\n", head, "Content-Length: ", body.size(),
                      "\r\n\r\n", body);
}

std::string ErrorAnswer(int status, const std::string& code, const std::string& head = "") {
  return Answer(
      status, absl::StrCat("<?xml version=\"1.0\"?><Error><Code>", code, "</Code></Error>"), head);
}

// A store whose server gives these answers, in turn.
struct Bucket {
  explicit Bucket(std::vector<std::string> answers, http_client::Limits limits = {})
      : server(std::move(answers)),
        store({.location = {.kind = Location::Kind::kS3,
                            .bucket = "farm",
                            .prefix = "npuc/",
                            .endpoint = server.url(""),
                            .region = "eu-1"},
               .limits = limits,
               .credentials = [this]() -> absl::StatusOr<Credentials> { return credentials; },
               .now = [this] { return now; },
               .sleep = [this](absl::Duration pause) { pauses.push_back(pause); }}) {}

  http_client::FakeServer server;
  Credentials credentials{.key_id = "ID", .secret = "secret"};
  absl::Time now = absl::FromUnixSeconds(1'400'000'000);
  std::vector<absl::Duration> pauses;
  S3Store store;
};

absl::Status PutText(S3Store& store, const std::string& bytes) {
  return store.Put("c/one", bytes.size(),
                   [&](uint64_t offset, size_t max_bytes) -> absl::StatusOr<std::string> {
                     return bytes.substr(offset, max_bytes);
                   });
}

TEST(S3StoreTest, PutsUnderASignatureThatCoversTheBytes) {
  Bucket bucket({Answer(200)});
  ASSERT_TRUE(PutText(bucket.store, "some bytes").ok());
  const std::string request = bucket.server.requests().at(0);
  EXPECT_THAT(request, HasSubstr("PUT /farm/npuc/c/one HTTP/1.1\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nContent-Length: 10\r\n"));
  EXPECT_THAT(request, HasSubstr(absl::StrCat("\r\nx-amz-content-sha256: ", Sha256Hex("some bytes"),
                                              "\r\n")));
  EXPECT_THAT(request, HasSubstr("SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature="));
  EXPECT_THAT(request, HasSubstr("Credential=ID/20140513/eu-1/s3/aws4_request"));
  EXPECT_THAT(request, HasSubstr("\r\n\r\nsome bytes"));
  EXPECT_THAT(request, ::testing::Not(HasSubstr("secret")));
}

TEST(S3StoreTest, ReadsRangesAndBoundsThem) {
  Bucket bucket({Answer(206, "bytes"), Answer(416), Answer(200, "whole"), Answer(200, "whole"),
                 Answer(206, std::string(6, 'x'))});
  EXPECT_EQ(*bucket.store.Read("c/one", 7, 5), "bytes");
  const std::string request = bucket.server.requests().at(0);
  EXPECT_THAT(request, HasSubstr("GET /farm/npuc/c/one HTTP/1.1\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nrange: bytes=7-11\r\n"));
  EXPECT_THAT(request, HasSubstr("SignedHeaders=host;range;"));
  EXPECT_EQ(*bucket.store.Read("c/one", 99, 5), "") << "behind the end";
  EXPECT_EQ(*bucket.store.Read("c/one", 0, 5), "whole") << "the range was ignored";
  EXPECT_TRUE(absl::IsUnavailable(bucket.store.Read("c/one", 7, 5).status())) << "other bytes";
  EXPECT_TRUE(absl::IsUnavailable(bucket.store.Read("c/one", 7, 5).status())) << "more bytes";
}

// Only the store itself says that an object is not there: a proxy's 404 would remove contents.
TEST(S3StoreTest, OnlyNoSuchKeyIsNotFound) {
  const std::pair<std::string, absl::StatusCode> cases[] = {
      {ErrorAnswer(404, "NoSuchKey"), absl::StatusCode::kNotFound},
      {ErrorAnswer(404, "NoSuchBucket"), absl::StatusCode::kUnavailable},
      {Answer(404, "<html>gone</html>"), absl::StatusCode::kUnavailable},
      {Answer(404), absl::StatusCode::kUnavailable},
      {Answer(301), absl::StatusCode::kUnavailable},
      {ErrorAnswer(403, "AccessDenied"), absl::StatusCode::kPermissionDenied},
      {ErrorAnswer(403, "QuotaExceeded"), absl::StatusCode::kPermissionDenied},
      {Answer(507), absl::StatusCode::kResourceExhausted},
  };
  for (const auto& [answer, code] : cases) {
    Bucket bucket({answer});
    EXPECT_EQ(bucket.store.Read("c/one", 0, 5).status().code(), code) << answer;
    EXPECT_THAT(bucket.server.requests(), SizeIs(1)) << answer;
  }
}

TEST(S3StoreTest, WhatMayPassIsTriedAgainAfterPauses) {
  Bucket bucket({Answer(429), "", Answer(200)});
  ASSERT_TRUE(PutText(bucket.store, "some bytes").ok());
  EXPECT_THAT(bucket.server.requests(), SizeIs(3));
  EXPECT_THAT(bucket.server.requests().at(2), HasSubstr("\r\n\r\nsome bytes"));
  EXPECT_THAT(bucket.pauses, SizeIs(2));
  for (const absl::Duration pause : bucket.pauses) {
    EXPECT_GE(pause, absl::Milliseconds(40));
    EXPECT_LE(pause, absl::Milliseconds(600));
  }
  Bucket broken({ErrorAnswer(503, "SlowDown")});
  const absl::Status status = broken.store.Remove("c/one");
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("503 SlowDown"));
  EXPECT_THAT(broken.server.requests(), SizeIs(S3Store::kMaxTries));
}

TEST(S3StoreTest, NobodyThereIsUnavailable) {
  std::string url;
  {
    Bucket gone({Answer(200)});
    url = gone.server.url("");
  }
  S3Store store({.location = {.bucket = "farm", .endpoint = url, .region = "a"},
                 .credentials = []() -> absl::StatusOr<Credentials> { return Credentials(); },
                 .now = [] { return absl::UnixEpoch(); },
                 .sleep = [](absl::Duration) {}});
  EXPECT_TRUE(absl::IsUnavailable(store.Read("c/one", 0, 5).status()));
  Bucket slow({http_client::FakeServer::kHangs}, {.whole = absl::Milliseconds(20)});
  EXPECT_TRUE(absl::IsUnavailable(slow.store.Remove("c/one")));
}

TEST(S3StoreTest, TheServersTimeIsTakenWhereThisMachinesIsWrong) {
  Bucket bucket(
      {ErrorAnswer(403, "RequestTimeTooSkewed", "Date: Wed, 14 May 2014 00:53:20 GMT\r\n"),
       Answer(204)});
  ASSERT_TRUE(bucket.store.Remove("c/one").ok());
  EXPECT_THAT(bucket.server.requests().at(0), HasSubstr("x-amz-date: 20140513T165320Z"));
  EXPECT_THAT(bucket.server.requests().at(1), HasSubstr("x-amz-date: 20140514T005320Z"));
  EXPECT_THAT(bucket.pauses, IsEmpty());
}

TEST(S3StoreTest, NewCredentialsNeedNoRestart) {
  Bucket bucket({Answer(204)});
  ASSERT_TRUE(bucket.store.Remove("c/one").ok());
  bucket.credentials = {.key_id = "NEW", .secret = "other", .session_token = "token"};
  ASSERT_TRUE(bucket.store.Remove("c/one").ok());
  EXPECT_THAT(bucket.server.requests().at(0), HasSubstr("Credential=ID/"));
  EXPECT_THAT(bucket.server.requests().at(1), HasSubstr("Credential=NEW/"));
  EXPECT_THAT(bucket.server.requests().at(1), HasSubstr("\r\nx-amz-security-token: token\r\n"));
}

TEST(S3StoreTest, ErrorsOfTheContentAreTheContents) {
  Bucket bucket({Answer(200)});
  const auto failing = [](uint64_t offset, size_t max_bytes) -> absl::StatusOr<std::string> {
    return absl::InternalError("the disk");
  };
  EXPECT_EQ(bucket.store.Put("c/one", 10, failing).code(), absl::StatusCode::kInternal);
  EXPECT_THAT(bucket.server.requests(), IsEmpty());
  // It breaks when it is sent.
  int reads = 0;
  const auto later = [&](uint64_t offset, size_t max_bytes) -> absl::StatusOr<std::string> {
    if (++reads > 1) return absl::DataLossError("the disk");
    return std::string(10, 'x');
  };
  EXPECT_EQ(bucket.store.Put("c/one", 10, later).code(), absl::StatusCode::kDataLoss);
}

TEST(S3StoreTest, ListsItsOwnNamesPageByPage) {
  Bucket bucket(
      {Answer(200,
              "<ListBucketResult><IsTruncated>true</IsTruncated>"
              "<Contents><Key>npuc/c/1</Key></Contents>"
              "<Contents><Key>npuc/c/Not ours</Key></Contents>"
              "<Contents><Key>other/c/1</Key></Contents>"
              "<Contents><Key>npuc/cc/1</Key></Contents>"
              "<Contents><Key>npuc/c/2</Key></Contents></ListBucketResult>"),
       Answer(200, "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"),
       Answer(200, "<ListBucketResult>")});
  const auto first = bucket.store.List("c", "");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_THAT(first->names, ElementsAre("c/1", "c/2"));
  EXPECT_FALSE(first->is_end);
  EXPECT_THAT(bucket.server.requests().at(0),
              HasSubstr("GET /farm/?list-type=2&max-keys=1000&prefix=npuc%2Fc%2F HTTP/1.1"));
  EXPECT_TRUE(bucket.store.List("c", "c/2")->is_end) << "a page without names is the last";
  EXPECT_THAT(bucket.server.requests().at(1), HasSubstr("&start-after=npuc%2Fc%2F2 HTTP/1.1"));
  EXPECT_TRUE(absl::IsUnavailable(bucket.store.List("c", "").status()));
}

// Signed for the name of the bucket's own host, which no test can look up.
TEST(S3StoreTest, TheVirtualStyleNamesTheBucketInTheHost) {
  S3Store store({.location = {.bucket = "farm",
                              .endpoint = "http://localhost:1",
                              .region = "a",
                              .is_path_style = false},
                 .credentials = []() -> absl::StatusOr<Credentials> { return Credentials(); },
                 .now = [] { return absl::UnixEpoch(); },
                 .sleep = [](absl::Duration) {}});
  EXPECT_THAT(std::string(store.Read("c/one", 0, 5).status().message()),
              HasSubstr("GET http://farm.localhost:1/c/one"));
}

}  // namespace
}  // namespace npuc::objects
