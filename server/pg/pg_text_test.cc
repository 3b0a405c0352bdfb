#include "server/pg/pg_text.h"

#include "gtest/gtest.h"
#include "server/pg/pg_test_util.h"

namespace npuc::pg {
namespace {

TEST(PgTextTest, NodesHaveOneTextAndTheFirstOfTwoWritersWins) {
  NPUC_SKIP_WITHOUT_POSTGRES();
  const ConnectionOptions options = TestServer::Get()->NewDatabase();
  Sessions here(options);
  Sessions there(options);
  PgText a(&here, "paused");
  PgText b(&there, "paused");
  EXPECT_EQ(*b.Read(), "");
  const std::string text("1\n\t\0x\n", 6);
  ASSERT_TRUE(a.Replace("", text).ok());
  EXPECT_EQ(*b.Read(), text);
  EXPECT_EQ(*PgText(&there, "other").Read(), "");
  EXPECT_TRUE(absl::IsAborted(b.Replace("", "mine")));
  ASSERT_TRUE(a.Replace("", text).ok());  // as a repeated call
  ASSERT_TRUE(b.Replace(text, "mine").ok());
  EXPECT_EQ(*a.Read(), "mine");
  ASSERT_TRUE(a.Replace("mine", "").ok());
  EXPECT_EQ(*b.Read(), "");
  EXPECT_TRUE(
      absl::IsResourceExhausted(a.Replace("", std::string(base::KeptText::kMaxBytes + 1, 'x'))));
}

}  // namespace
}  // namespace npuc::pg
