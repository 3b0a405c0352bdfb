#include "server/executor/dispatch_switch.h"

#include <filesystem>
#include <fstream>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::executor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DispatchSwitchTest : public ::testing::Test {
 protected:
  DispatchSwitchTest() : path_(::testing::TempDir() + "/dispatch_paused") {
    std::filesystem::remove(path_);
  }
  absl::StatusOr<std::unique_ptr<DispatchSwitch>> Open() {
    return DispatchSwitch::Open(path_, [this](bool paused) { applied_.push_back(paused); });
  }

  const std::string path_;
  std::vector<bool> applied_;
};

TEST_F(DispatchSwitchTest, HoldsOverRestartsUntilItIsResumed) {
  const absl::Time since = absl::FromUnixSeconds(1'800'000'000);
  auto first = *Open();
  EXPECT_FALSE(first->Get().paused);
  ASSERT_TRUE(
      first->Set({.paused = true, .reason = "disk\nswap", .by = "ops", .since = since}).ok());
  auto second = *Open();
  EXPECT_TRUE(second->Get().paused);
  EXPECT_EQ(second->Get().reason, "disk\\x0aswap");
  EXPECT_EQ(second->Get().by, "ops");
  EXPECT_EQ(second->Get().since, since);
  ASSERT_TRUE(second->Set({}).ok());
  ASSERT_TRUE(second->Set({}).ok());  // again
  EXPECT_FALSE((*Open())->Get().paused);
  EXPECT_THAT(applied_, ElementsAre(false, true, true, false, false, false));
}

TEST_F(DispatchSwitchTest, ADamagedFileIsToldAndAFolderThatIsGoneChangesNothing) {
  std::ofstream(path_) << "nonsense";
  EXPECT_THAT(std::string(Open().status().message()), HasSubstr("delete it"));
  std::filesystem::remove(path_);
  auto gone = *DispatchSwitch::Open(path_ + "/not/there", [](bool) {});
  EXPECT_FALSE(gone->Set({.paused = true}).ok());
  EXPECT_FALSE(gone->Get().paused);
}

}  // namespace
}  // namespace npuc::executor
