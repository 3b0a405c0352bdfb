// The feature level of a cluster: what its nodes know, and what they may write.
#include "server/pg/node.h"

#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/features.h"
#include "server/pg/pg_test_util.h"

namespace npuc::pg {
namespace {

using ::testing::HasSubstr;

class FeatureLevelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    NPUC_SKIP_WITHOUT_POSTGRES();
    sessions_ = std::make_unique<Sessions>(TestServer::Get()->NewDatabase());
  }
  absl::StatusOr<std::unique_ptr<Node>> Join(const std::string& name, int64_t level,
                                             absl::Duration wait = absl::ZeroDuration()) {
    return Node::Join(sessions_.get(), {.name = name,
                                        .build_id = "deadbeef",
                                        .feature_level = level,
                                        .feature_wait = wait,
                                        .steady_now = absl::Now});
  }
  std::unique_ptr<Node> MustJoin(const std::string& name, int64_t level,
                                 absl::Duration wait = absl::ZeroDuration()) {
    auto node = Join(name, level, wait);
    EXPECT_TRUE(node.ok()) << node.status();
    return *std::move(node);
  }
  // As a build without levels does it; returns its incarnation.
  int64_t JoinAsVersion10(const std::string& name) {
    const auto rows = sessions_->Run(Sessions::Repeat::kOnce, "SELECT join_node($1, 'b', 'x', 1)",
                                     {absl::string_view(name)});
    EXPECT_TRUE(rows.ok()) << rows.status();
    return rows->Int(0, 0);
  }
  void Leave(int64_t incarnation) {
    EXPECT_TRUE(
        sessions_->Run(Sessions::Repeat::kOnce, "SELECT leave_node($1)", {incarnation}).ok());
  }
  static int64_t LevelAfterBeat(Node& node) {
    EXPECT_TRUE(node.Beat().ok());
    return node.feature_level();
  }

  std::unique_ptr<Sessions> sessions_;
};

TEST_F(FeatureLevelTest, ItRisesWithTheLastOldNodeAndNeverFalls) {
  const int64_t old = JoinAsVersion10("old");
  const auto a = MustJoin("a", 2);
  const auto b = MustJoin("b", 3);
  EXPECT_EQ(LevelAfterBeat(*b), 1) << "the old node could not read more";
  Leave(old);
  EXPECT_EQ(LevelAfterBeat(*b), 2);
  EXPECT_EQ(LevelAfterBeat(*a), 2);
  ASSERT_TRUE(a->Leave().ok());
  EXPECT_EQ(LevelAfterBeat(*b), 3);
  ASSERT_TRUE(b->Leave().ok());
  EXPECT_EQ(MustJoin("c", 3)->feature_level(), 3) << "also when nobody is there";
}

TEST_F(FeatureLevelTest, ANodeThatKnowsLessIsRefused) {
  const auto a = MustJoin("a", 3);
  ASSERT_EQ(a->feature_level(), 3);
  const absl::Status refused = Join("b", 2).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused.message(),
            "NODE_TOO_OLD: the cluster is at feature level 3, and this npucd (build deadbeef) "
            "knows levels up to 2; start a newer npucd, since the level never falls");
  // A build without levels does not know the question; PostgreSQL answers it.
  EXPECT_THAT(sessions_->Run(Sessions::Repeat::kOnce, "SELECT join_node('old', 'b', 'x', 1)", {})
                  .status()
                  .ToString(),
              HasSubstr("levels up to 1"));
  EXPECT_EQ(a->Peers()->size(), 1u);
}

TEST_F(FeatureLevelTest, TheWaitBeginsAnewWithEachOldNode) {
  const absl::Duration wait = absl::Hours(1);
  const auto begun = [&] {
    const auto rows = sessions_->Read("SELECT feature_since_us IS NOT NULL FROM cluster", {});
    return rows->Bool(0, 0);
  };
  const int64_t old = JoinAsVersion10("old");
  const auto a = MustJoin("a", 2, wait);
  EXPECT_FALSE(begun());
  Leave(old);
  EXPECT_EQ(LevelAfterBeat(*a), 1) << "the operator may go back to the old build yet";
  EXPECT_TRUE(begun());
  const int64_t back = JoinAsVersion10("old");
  EXPECT_FALSE(begun());
  Leave(back);
  EXPECT_EQ(LevelAfterBeat(*a), 1);
  ASSERT_TRUE(sessions_
                  ->Run(Sessions::Repeat::kOnce,
                        "UPDATE cluster SET feature_since_us = feature_since_us - $1",
                        {absl::ToInt64Microseconds(wait)})
                  .ok());
  EXPECT_EQ(LevelAfterBeat(*a), 2);
}

// An upgrade that ends when the wait for an earlier level is over.
TEST_F(FeatureLevelTest, EachLevelHasItsWait) {
  const absl::Duration wait = absl::Hours(1);
  const auto pass = [&] {
    ASSERT_TRUE(sessions_
                    ->Run(Sessions::Repeat::kOnce,
                          "UPDATE cluster SET feature_since_us = feature_since_us - $1",
                          {absl::ToInt64Microseconds(wait)})
                    .ok());
  };
  Leave(JoinAsVersion10("old"));
  const auto a = MustJoin("a", 2, wait);
  EXPECT_EQ(LevelAfterBeat(*a), 1);
  const auto b = MustJoin("a", 3, wait);  // the next build takes its place
  pass();
  EXPECT_EQ(LevelAfterBeat(*b), 2);
  EXPECT_EQ(LevelAfterBeat(*b), 2) << "somebody may go back to the build that knows 2";
  pass();
  EXPECT_EQ(LevelAfterBeat(*b), 3);
}

TEST_F(FeatureLevelTest, ANewClusterWaitsForNobody) {
  EXPECT_EQ(MustJoin("a", base::kFeatureLevel, absl::Hours(24))->feature_level(),
            base::kFeatureLevel);
}

}  // namespace
}  // namespace npuc::pg
