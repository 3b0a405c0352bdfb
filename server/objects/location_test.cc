#include "server/objects/location.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/objects/object_store.h"

namespace npuc::objects {
namespace {

using ::testing::HasSubstr;

TEST(LocationTest, ThreeKinds) {
  EXPECT_EQ(ParseLocation("pg")->kind, Location::Kind::kPostgres);
  const Location folder = *ParseLocation("file:///mnt/share/");
  EXPECT_EQ(folder.kind, Location::Kind::kFolder);
  EXPECT_EQ(folder.folder, "/mnt/share");
  const Location amazon = *ParseLocation("s3://farm/npuc?region=eu-west-1");
  EXPECT_EQ(amazon.kind, Location::Kind::kS3);
  EXPECT_EQ(amazon.bucket, "farm");
  EXPECT_EQ(amazon.prefix, "npuc/");
  EXPECT_EQ(amazon.endpoint, "https://s3.eu-west-1.amazonaws.com");
  EXPECT_FALSE(amazon.is_path_style);
  const Location own = *ParseLocation("s3://farm?endpoint=https://store:9000&region=us-east-1");
  EXPECT_EQ(own.endpoint, "https://store:9000");
  EXPECT_EQ(own.prefix, "");
  EXPECT_TRUE(own.is_path_style);
  EXPECT_FALSE(ParseLocation("s3://farm?endpoint=https://store&region=us-east-1&style=virtual")
                   ->is_path_style);
  EXPECT_TRUE(ParseLocation("s3://farm/?endpoint=http://127.0.0.1:9000&region=a").ok());
}

TEST(LocationTest, OthersAreRefusedWithWhatToWrite) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "none of pg"},
      {"/mnt/share", "none of pg"},
      {"file://share", "absolute path"},
      {"file:///", "absolute path"},
      {"s3://", "bucket"},
      {"s3://Farm?region=a", "bucket"},
      {"s3://farm/../x?region=a", "prefix"},
      {"s3://farm//x?region=a", "prefix"},
      {"s3://farm", "?region=NAME"},
      {"s3://farm?region=A", "none of region=NAME"},
      {"s3://farm?region=a&style=other", "style=path"},
      {"s3://farm?region=a&endpoint=http://store", "use https://"},
      {"s3://farm?region=a&endpoint=https://store/x", "nothing behind"},
      {"s3://farm?region=a&secret=b", "none of region=NAME"},
  };
  for (const auto& [text, said] : cases) {
    const absl::Status status = ParseLocation(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(said)) << text;
  }
}

TEST(ObjectNameTest, IsOneForEveryStore) {
  for (const char* name : {"a", "a/b-1_c.part", "0f/9"}) EXPECT_TRUE(IsObjectName(name)) << name;
  for (const char* name :
       {"", "/a", "a/", "a//b", "..", "a/../b", ".a", "A", "a b", "a\\b", "a%2f"}) {
    EXPECT_FALSE(IsObjectName(name)) << name;
  }
  EXPECT_FALSE(IsObjectName(std::string(ObjectStore::kMaxNameBytes + 1, 'a')));
}

}  // namespace
}  // namespace npuc::objects
