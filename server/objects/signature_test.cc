#include "server/objects/signature.h"

#include "compiler_core/base/digest.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::objects {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

// The four examples of "Authenticating Requests: Using the Authorization Header (AWS Signature
// Version 4)" in the API reference of Amazon S3.
TEST(SignatureTest, AmazonsExamples) {
  const Credentials credentials{.key_id = "AKIAIOSFODNN7EXAMPLE",
                                .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"};
  const absl::Time time = absl::FromCivil(absl::CivilDay(2013, 5, 24), absl::UTCTimeZone());
  const S3Request base{
      .host = "examplebucket.s3.amazonaws.com", .path = "/", .payload_sha256 = Sha256Hex("")};
  S3Request get = base;
  get.path = "/test.txt";
  get.headers = {{"range", "bytes=0-9"}};
  S3Request put = base;
  put.method = "PUT";
  put.path = "/test$file.text";
  put.headers = {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
                 {"x-amz-storage-class", "REDUCED_REDUNDANCY"}};
  put.payload_sha256 = Sha256Hex("Welcome to Amazon S3.");
  S3Request lifecycle = base;
  lifecycle.query = {{"lifecycle", ""}};
  S3Request list = base;
  list.query = {{"max-keys", "2"}, {"prefix", "J"}};
  const std::pair<S3Request, const char*> examples[] = {
      {get, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
      {put, "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
      {lifecycle, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
      {list, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
  };
  for (const auto& [request, signature] : examples) {
    const auto headers = SignatureHeaders(request, credentials, "us-east-1", time);
    EXPECT_THAT(headers.at("authorization"), EndsWith(signature)) << request.path;
    EXPECT_EQ(headers.at("x-amz-date"), "20130524T000000Z");
  }
}

TEST(CredentialsTest, AsAmazonsToolsWriteThem) {
  const auto read = ParseCredentials(
      "# of the farm\n[default]\naws_access_key_id = ID\r\naws_secret_access_key=a/b+c=\n"
      "aws_session_token = t\n\n");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->key_id, "ID");
  EXPECT_EQ(read->secret, "a/b+c=");
  EXPECT_EQ(read->session_token, "t");
}

TEST(CredentialsTest, OthersAreRefusedWithoutTheirText) {
  for (const char* text :
       {"", "aws_access_key_id = seCret", "aws_secret_access_key = seCret", "seCret",
        "aws_access_key_id = a\naws_secret_access_key = seCret seCret",
        "aws_access_key_id = a\naws_secret_access_key =",
        "aws_access_key_id = a\naws_secret_access_key = seCret\naws_access_key_id = b",
        "[other]\naws_access_key_id = a\naws_secret_access_key = seCret"}) {
    const absl::Status status = ParseCredentials(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("seCret"))) << text;
  }
}

}  // namespace
}  // namespace npuc::objects
