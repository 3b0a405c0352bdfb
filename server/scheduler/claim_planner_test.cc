#include "server/scheduler/claim_planner.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace npuc::scheduler {
namespace {

using Kind = ClaimPlanner::Plan::Kind;

constexpr QuestionPeriod kEachTime = {};
constexpr QuestionPeriod kPeriod = {.least = absl::Milliseconds(100),
                                    .per_node = absl::Milliseconds(10)};
constexpr ClusterSize kAlone = {.nodes = 1, .slots = 4};
constexpr ClusterSize kMany = {.nodes = 100, .slots = 400};

class ClaimPlannerTest : public ::testing::Test {
 protected:
  ClaimPlanner::Plan Next(ClaimPlanner& planner, ClusterSize size = kAlone, int64_t slots = 1,
                          int tries = 0) {
    return planner.Next(tries, slots, /*pinned_only=*/false, size, now_);
  }
  // Answers the question that the planner has.
  void Read(ClaimPlanner& planner, std::vector<ReadyTenant> tenants, ClusterSize size = kAlone) {
    ASSERT_EQ(Next(planner, size).kind, Kind::kRead);
    planner.SetView({.tenants = std::move(tenants)}, now_);
  }
  static ReadyTenant Ready(const std::string& name, double clock_s, double weight = 1,
                           double mean_s = 2) {
    return {.tenant = name, .clock_s = clock_s, .mean_s = mean_s, .weight = weight};
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
};

TEST_F(ClaimPlannerTest, TheLeastClockIsNext) {
  ClaimPlanner planner(kPeriod, 1);
  Read(planner, {Ready("b", 10), Ready("a", 20), Ready("c", 30)});
  ClaimPlanner::Plan plan = Next(planner, kAlone, 3);
  EXPECT_EQ(plan.kind, Kind::kTenant);
  EXPECT_EQ(plan.tenant, "b");
  EXPECT_EQ(plan.floor_s, 10);
  EXPECT_EQ(plan.until_s, 20) << "the last job that starts may bring it past the next tenant";
  EXPECT_EQ(plan.jobs, 3);
  planner.Learn({.tenant = Ready("b", 22), .has_more = true}, now_);
  plan = Next(planner);
  EXPECT_EQ(plan.tenant, "a");
  EXPECT_EQ(plan.until_s, 22);
}

TEST_F(ClaimPlannerTest, ATenantThatIsAloneGetsAllSlots) {
  ClaimPlanner planner(kPeriod, 1);
  Read(planner, {Ready("a", 20)});
  EXPECT_EQ(Next(planner, kAlone, 4).until_s, std::numeric_limits<double>::infinity());
}

TEST_F(ClaimPlannerTest, TheViewIsReadOnceInAPeriodThatGrowsWithTheNodes) {
  ClaimPlanner planner(kPeriod, 1);
  Read(planner, {Ready("a", 1)});
  now_ += absl::Milliseconds(99);
  EXPECT_EQ(Next(planner).kind, Kind::kTenant);
  now_ += absl::Milliseconds(1);
  EXPECT_EQ(Next(planner, {.nodes = 50, .slots = 50}).kind, Kind::kTenant);
  EXPECT_EQ(Next(planner).kind, Kind::kRead);
  ClaimPlanner eager(kEachTime, 1);
  Read(eager, {Ready("a", 1)});
  EXPECT_EQ(Next(eager, kAlone, 1, /*tries=*/1).kind, Kind::kTenant);
  EXPECT_EQ(Next(eager).kind, Kind::kRead);
}

TEST_F(ClaimPlannerTest, NodesWithEquallyOldViewsDrawByWeight) {
  std::map<std::string, int> drawn;
  constexpr int kPlanners = 3000;
  for (int i = 0; i < kPlanners; ++i) {
    ClaimPlanner planner(kPeriod, static_cast<uint64_t>(i));
    // The other nodes' 396 slots move the clocks by 396 / 6 seconds in a second.
    Read(planner, {Ready("a", 10), Ready("b", 12, 2), Ready("c", 14, 2, 4), Ready("d", 80)}, kMany);
    now_ += absl::Milliseconds(500);
    ++drawn[Next(planner, kMany).tenant];
  }
  EXPECT_NEAR(drawn["a"], kPlanners / 4, kPlanners / 40);
  EXPECT_NEAR(drawn["b"], kPlanners / 2, kPlanners / 40);
  EXPECT_NEAR(drawn["c"], kPlanners / 4, kPlanners / 40) << "its jobs are twice as long";
  EXPECT_EQ(drawn.count("d"), 0u);
}

TEST_F(ClaimPlannerTest, AnAnswerIsComparedWithWhatOthersDidMeanwhile) {
  ClaimPlanner planner(kPeriod, 1);
  Read(planner, {Ready("a", 10), Ready("b", 10)}, kMany);
  now_ += absl::Milliseconds(900);
  // 198 seconds in a second: the old clock of the other one stands for 10 + 178.2.
  const std::string first = Next(planner, kMany).tenant;
  planner.Learn({.tenant = Ready(first, 1000), .has_more = true}, now_);
  for (int i = 0; i < 20; ++i) EXPECT_NE(Next(planner, kMany).tenant, first);
  planner.Learn({.tenant = Ready(first, 188), .has_more = true}, now_);
  std::set<std::string> drawn;
  for (int i = 0; i < 50; ++i) drawn.insert(Next(planner, kMany).tenant);
  EXPECT_EQ(drawn.size(), 2u);
}

TEST_F(ClaimPlannerTest, ATenantWithoutWorkIsForgottenUntilTheNextNews) {
  ClaimPlanner planner(kPeriod, 1);
  Read(planner, {Ready("a", 10)});
  EXPECT_EQ(Next(planner).tenant, "a");
  planner.Learn({.tenant = Ready("a", 10), .has_more = false}, now_);
  EXPECT_EQ(Next(planner).kind, Kind::kNothing);
  EXPECT_EQ(Next(planner).ask_again, absl::InfiniteFuture());
  planner.HearOfWork("a", /*is_own=*/false);
  EXPECT_EQ(Next(planner).tenant, "a");
}

TEST_F(ClaimPlannerTest, NewsDuringAQuestionAreNewerThanItsAnswer) {
  ClaimPlanner planner(kPeriod, 1);
  ASSERT_EQ(Next(planner).kind, Kind::kRead);
  planner.HearOfWork("a", /*is_own=*/true);
  planner.HearOfPinned();
  planner.SetView({}, now_);
  EXPECT_EQ(Next(planner).kind, Kind::kPinned);
  planner.HearOfPinned();
  planner.LearnPinned(false);
  EXPECT_EQ(Next(planner).kind, Kind::kPinned);
  planner.LearnPinned(false);
  EXPECT_EQ(Next(planner).tenant, "a");
  planner.HearOfWork("a", /*is_own=*/true);
  planner.Learn({.tenant = Ready("a", 10), .has_more = false}, now_);
  EXPECT_EQ(Next(planner).tenant, "a");
}

TEST_F(ClaimPlannerTest, ATenantThatComesThroughThisNodeIsNextWhereItsClockAllowsIt) {
  ClaimPlanner planner(kPeriod, 1);
  Read(planner, {Ready("a", 10), Ready("b", 11)});
  planner.HearOfWork("guest", /*is_own=*/true);
  planner.HearOfWork("b", /*is_own=*/true);
  const ClaimPlanner::Plan plan = Next(planner);
  EXPECT_EQ(plan.tenant, "guest");
  EXPECT_EQ(plan.until_s, 10) << "nothing is known of its clock";
  planner.Learn({.tenant = Ready("guest", 50), .has_more = true}, now_);
  EXPECT_EQ(Next(planner).tenant, "a");
}

TEST_F(ClaimPlannerTest, AClaimIsNotRefusedForEver) {
  ClaimPlanner planner(kPeriod, 1);
  Read(planner, {Ready("a", 10), Ready("b", 11)});
  EXPECT_LT(Next(planner, kAlone, 4, /*tries=*/3).until_s, 100);
  const ClaimPlanner::Plan plan = Next(planner, kAlone, 4, /*tries=*/4);
  EXPECT_EQ(plan.until_s, std::numeric_limits<double>::infinity());
  EXPECT_EQ(plan.jobs, 1);
}

TEST_F(ClaimPlannerTest, ATenantAtItsBoundWaitsForRoom) {
  ClaimPlanner planner(kPeriod, 1);
  ReadyTenant full = Ready("a", 5);
  full.room = 0;
  Read(planner, {full, Ready("b", 10)});
  EXPECT_EQ(Next(planner).tenant, "b");
  EXPECT_EQ(Next(planner).floor_s, 10) << "it is not waited for";
  planner.HearOfRoom("a");
  EXPECT_EQ(Next(planner).tenant, "a");
}

TEST_F(ClaimPlannerTest, FloorsNeverFall) {
  ClaimPlanner planner(kPeriod, 1);
  ASSERT_EQ(Next(planner).kind, Kind::kRead);
  planner.SetView({.tenants = {Ready("a", 5)}, .newest_floor_s = 40}, now_);
  EXPECT_EQ(Next(planner).floor_s, 40);
}

TEST_F(ClaimPlannerTest, WhatCameAfterTheViewIsAskedForWhenThatIsDue) {
  ClaimPlanner planner(kPeriod, 1);
  Read(planner, {});
  planner.HearOfAnything();
  EXPECT_EQ(Next(planner).ask_again, now_ + absl::Milliseconds(100));
}

TEST_F(ClaimPlannerTest, APausedNodePlansPinnedJobsAlone) {
  ClaimPlanner planner(kPeriod, 1);
  ASSERT_EQ(Next(planner).kind, Kind::kRead);
  planner.SetView({.tenants = {Ready("a", 1)}, .has_pinned = true}, now_);
  const auto next = [&] { return planner.Next(1, 2, /*pinned_only=*/true, kAlone, now_); };
  EXPECT_EQ(next().kind, Kind::kPinned);
  planner.LearnPinned(false);
  EXPECT_EQ(next().kind, Kind::kNothing);
}

}  // namespace
}  // namespace npuc::scheduler
