#include "server/executor/config_memo.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/executor/executor_test_util.h"

namespace npuc::executor {
namespace {

class ConfigMemoTest : public ::testing::Test {
 protected:
  absl::StatusOr<ParsedConfig> Parse(const std::string& text, const std::string& name = "c.yaml") {
    diagnostics_ = Diagnostics();
    return memo_.Parse(text, name, diagnostics_);
  }

  int parses_ = 0;
  Diagnostics diagnostics_;
  ConfigMemo memo_{
      [this](absl::string_view text, absl::string_view name, Diagnostics& diagnostics) {
        ++parses_;
        return FakeParseConfig(text, name, diagnostics);
      },
      /*max_bytes=*/100};
};

TEST_F(ConfigMemoTest, AGoodConfigIsReadOnce) {
  EXPECT_EQ(Parse("one")->options.model_info, "one");
  EXPECT_EQ(Parse("two")->options.model_info, "two");
  EXPECT_EQ(Parse("one")->options.model_info, "one");
  EXPECT_EQ(parses_, 2);
  ASSERT_TRUE(Parse("one", "other.yaml").ok());
  EXPECT_EQ(parses_, 3);
}

TEST_F(ConfigMemoTest, ABadConfigTellsItsProblemsEachTime) {
  for (int i = 1; i <= 2; ++i) {
    EXPECT_FALSE(Parse("bad").ok());
    EXPECT_EQ(diagnostics_.list().size(), 2u);
    EXPECT_EQ(parses_, i);
  }
  EXPECT_EQ(memo_.bytes(), 0u);
}

TEST_F(ConfigMemoTest, BoundedByBytesLeastRecentlyUsedFirst) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Parse(absl::StrCat(std::string(25, 'x'), i)).ok());
  EXPECT_EQ(memo_.bytes(), 96u);
  ASSERT_TRUE(Parse(absl::StrCat(std::string(25, 'x'), 0)).ok());
  ASSERT_TRUE(Parse(std::string(20, 'y')).ok());
  EXPECT_EQ(memo_.bytes(), 90u);
  EXPECT_EQ(parses_, 4);
  ASSERT_TRUE(Parse(absl::StrCat(std::string(25, 'x'), 0)).ok());
  EXPECT_EQ(parses_, 4);
  ASSERT_TRUE(Parse(absl::StrCat(std::string(25, 'x'), 1)).ok());
  EXPECT_EQ(parses_, 5);
  ASSERT_TRUE(Parse(std::string(200, 'z')).ok());  // larger than all of it
  EXPECT_LE(memo_.bytes(), 100u);
}

}  // namespace
}  // namespace npuc::executor
