#include "server/executor/operator_switch.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/kept_text_test_util.h"

namespace npuc::executor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OperatorSwitchTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<OperatorSwitch>> Open() {
    return OperatorSwitch::Open("DATA/paused", &text_, [this](bool on) { applied_.push_back(on); });
  }

  base::MemoryText text_;
  std::vector<bool> applied_;
};

TEST_F(OperatorSwitchTest, HoldsOverRestartsUntilItIsTurnedOff) {
  const absl::Time since = absl::FromUnixSeconds(1'800'000'000);
  auto first = *Open();
  EXPECT_FALSE(first->Get().on);
  ASSERT_TRUE(first->Set({.on = true, .reason = "disk\nswap", .by = "ops", .since = since}).ok());
  auto second = *Open();
  EXPECT_TRUE(second->Get().on);
  EXPECT_EQ(second->Get().reason, "disk\\x0aswap");
  EXPECT_EQ(second->Get().by, "ops");
  EXPECT_EQ(second->Get().since, since);
  ASSERT_TRUE(second->Set({}).ok());
  ASSERT_TRUE(second->Set({}).ok());  // again
  EXPECT_FALSE((*Open())->Get().on);
  EXPECT_EQ(text_.text, "");
}

TEST_F(OperatorSwitchTest, TakesWhatAnotherNodeSets) {
  auto here = *Open();
  auto there = *Open();
  ASSERT_TRUE(there->Set({.on = true, .reason = "swap", .by = "ops"}).ok());
  applied_.clear();
  EXPECT_TRUE(*here->Refresh());
  EXPECT_FALSE(*here->Refresh());
  EXPECT_EQ(here->Get().reason, "swap");
  ASSERT_TRUE(here->Set({}).ok());
  // It sets the switch without a look at the change; the last setter wins.
  ASSERT_TRUE(there->Set({.on = true, .reason = "again", .by = "ops"}).ok());
  EXPECT_TRUE(*here->Refresh());
  EXPECT_THAT(applied_, ElementsAre(true, false, true, true));
}

TEST_F(OperatorSwitchTest, ADamagedTextIsToldAndOneThatCannotBeKeptChangesNothing) {
  text_.text = "nonsense";
  EXPECT_THAT(std::string(Open().status().message()), HasSubstr("DATA/paused is damaged"));
  text_.text.clear();
  auto made = *Open();
  text_.error = absl::InternalError("no disk");
  EXPECT_FALSE(made->Set({.on = true}).ok());
  EXPECT_FALSE(made->Get().on);
  EXPECT_FALSE(made->Refresh().ok());
  EXPECT_THAT(applied_, ElementsAre(false));
}

}  // namespace
}  // namespace npuc::executor
