#include "server/jobs/local_board.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/scheduler/fair_queue.h"

namespace npuc::jobs {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Place = BoardView::Place;

constexpr absl::Duration kTtl = absl::Minutes(5);

// Two daemons, "a" and "b", on one board.
class LocalBoardTest : public ::testing::Test {
 protected:
  void Accept(const std::string& id, const std::string& key = "", const std::string& pin = "") {
    ASSERT_TRUE(board_.Reserve("t").ok());
    board_.Accept({.place = {.id = id, .accept_order = board_.NextOrder(), .tenant = "t"},
                   .flight_key = key,
                   .pinned_to = pin},
                  /*reserved=*/true);
  }
  BoardClaim MustClaim(const std::string& owner) {
    const std::optional<BoardClaim> claim = board_.Claim(owner, now_);
    EXPECT_TRUE(claim.has_value());
    return claim.value_or(BoardClaim());
  }
  // Claims the next job for "a", with a lease.
  BoardClaim MustStart(uint64_t fence) {
    BoardClaim claim = MustClaim("a");
    EXPECT_TRUE(board_.Start(claim.id, fence, now_));
    claim.fence = fence;
    return claim;
  }
  Place PlaceOf(const std::string& id) const { return board_.Look(id)->place; }

  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  scheduler::FairQueue queue_{{.max_queued = 100, .slots = 2}};
  LocalBoard board_{&queue_, kTtl};
};

TEST_F(LocalBoardTest, AClaimIsOneDaemonsAndEndsOnce) {
  Accept("one");
  const BoardClaim claim = MustClaim("a");
  EXPECT_EQ(claim.job_id, "one");
  EXPECT_EQ(PlaceOf("one"), Place::kClaimed);
  EXPECT_FALSE(board_.Claim("b", now_).has_value());
  board_.End(claim.id, now_);
  EXPECT_FALSE(board_.Start(claim.id, 1, now_));
  EXPECT_FALSE(board_.Renew(claim.id, now_));
  EXPECT_EQ(MustClaim("b").job_id, "one");
}

TEST_F(LocalBoardTest, APinnedJobIsItsDaemonsAlone) {
  Accept("pinned", "key", "b");
  EXPECT_FALSE(board_.Claim("a", now_).has_value());
  Accept("free");
  EXPECT_EQ(MustClaim("b").job_id, "pinned");
  EXPECT_EQ(MustClaim("a").job_id, "free");
}

TEST_F(LocalBoardTest, AnOwnerSeesToItsExpiredClaimsFirst) {
  Accept("one");
  const BoardClaim claim = MustStart(1);
  now_ += kTtl;
  EXPECT_THAT(board_.Expired("a", now_), ElementsAre(claim));
  EXPECT_THAT(board_.Expired("b", now_), IsEmpty());
  EXPECT_THAT(board_.TakeExpired("b", now_), IsEmpty());
  EXPECT_TRUE(board_.Renew(claim.id, now_));
  now_ += kTtl;
  EXPECT_THAT(board_.TakeExpired("b", now_), IsEmpty());
}

TEST_F(LocalBoardTest, ATakenLeaseIsOverForItsOldOwner) {
  Accept("one", "key");
  Accept("two", "key");
  const BoardClaim old = MustStart(7);
  now_ += 2 * kTtl;
  const std::vector<BoardClaim> taken = board_.TakeExpired("b", now_);
  ASSERT_THAT(taken, SizeIs(1));
  EXPECT_EQ(taken[0].owner, "b");
  EXPECT_EQ(taken[0].job_id, "one");
  EXPECT_EQ(taken[0].fence, 7u);
  EXPECT_FALSE(board_.Renew(old.id, now_));
  EXPECT_FALSE(board_.Start(old.id, 8, now_));
  EXPECT_EQ(board_.PassOn(old.id, now_), std::nullopt);
  EXPECT_THAT(board_.Close(old.id, now_), IsEmpty());
  board_.End(old.id, now_);
  EXPECT_FALSE(board_.Claim("a", now_).has_value()) << "both wait for what becomes of the lease";
  EXPECT_EQ(PlaceOf("two"), Place::kFollows);
  EXPECT_EQ(board_.GetCounts().running, 0);
  board_.End(taken[0].id, now_);
  EXPECT_EQ(MustClaim("a").job_id, "one");
  EXPECT_EQ(PlaceOf("two"), Place::kFollows);
}

TEST_F(LocalBoardTest, EachDaemonTriesAgainWhatATakerLeft) {
  Accept("one");
  MustStart(1);
  now_ += 2 * kTtl;
  const std::vector<BoardClaim> taken = board_.TakeExpired("b", now_);
  EXPECT_EQ(board_.Expired("b", now_), taken);
  EXPECT_THAT(board_.TakeExpired("a", now_), SizeIs(1));
}

TEST_F(LocalBoardTest, AClaimWithoutALeaseEndsAsItIsTaken) {
  Accept("one", "key");
  Accept("two", "key");
  const BoardClaim claim = MustClaim("a");
  now_ += 2 * kTtl;
  EXPECT_THAT(board_.TakeExpired("b", now_), IsEmpty());
  EXPECT_FALSE(board_.Start(claim.id, 1, now_));
  EXPECT_EQ(MustClaim("b").job_id, "one");
}

// A run that was passed on stands for another job: nobody takes it for what it was.
TEST_F(LocalBoardTest, APassedOnClaimIsTakenAsItStands) {
  Accept("one", "key");
  Accept("two", "key");
  const BoardClaim claim = MustStart(1);
  board_.Forget("one");
  EXPECT_THAT(board_.Orphaned("a"), SizeIs(1));
  ASSERT_EQ(board_.PassOn(claim.id, now_)->job_id, "two");
  ASSERT_TRUE(board_.Start(claim.id, 5, now_));
  now_ += 2 * kTtl;
  const std::vector<BoardClaim> taken = board_.TakeExpired("b", now_);
  ASSERT_THAT(taken, SizeIs(1));
  EXPECT_EQ(taken[0].job_id, "two");
  EXPECT_EQ(taken[0].fence, 5u);
}

TEST_F(LocalBoardTest, AJobThatIsPassedOverReturns) {
  for (const bool goes_on : {true, false}) {
    for (const char* id : {"one", "two", "three"}) Accept(id, "key");
    const BoardClaim claim = MustStart(1);
    board_.Forget("one");
    ASSERT_EQ(board_.PassOn(claim.id, now_)->job_id, "two");
    ASSERT_EQ(board_.PassOn(claim.id, now_)->job_id, "three");
    if (goes_on) {
      ASSERT_TRUE(board_.Start(claim.id, 5, now_));
      EXPECT_EQ(PlaceOf("two"), Place::kFollows);
    } else {
      EXPECT_THAT(board_.TakeOwn("a", now_), IsEmpty());
      EXPECT_EQ(PlaceOf("two"), Place::kQueue);
    }
    for (const char* id : {"two", "three"}) board_.Forget(id);
    board_.End(claim.id, now_);
  }
  EXPECT_EQ(board_.GetCounts().queued, 0);
}

TEST_F(LocalBoardTest, TheClaimOfAnEndedJobEndsAsItIsTaken) {
  Accept("one", "key");
  MustStart(1);
  board_.Forget("one");
  now_ += 2 * kTtl;
  EXPECT_THAT(board_.TakeExpired("b", now_), IsEmpty());
  EXPECT_EQ(board_.GetCounts().running, 0);
  EXPECT_FALSE(board_.Has("one"));
}

TEST_F(LocalBoardTest, ARestartedDaemonTakesItsOwnClaimsAlone) {
  Accept("of a");
  Accept("of b");
  const BoardClaim of_a = MustStart(1);
  const BoardClaim of_b = MustClaim("b");
  EXPECT_THAT(board_.TakeOwn("a", now_), SizeIs(1));
  EXPECT_FALSE(board_.Renew(of_a.id, now_));
  EXPECT_TRUE(board_.Start(of_b.id, 1, now_));
}

TEST_F(LocalBoardTest, AStoredLeaseIsHeldUntilItsTime) {
  board_.Restore({.place = {.id = "one", .accept_order = 9}}, "a", 3, now_ + absl::Minutes(1));
  EXPECT_EQ(board_.NextOrder(), 10u);
  EXPECT_EQ(PlaceOf("one"), Place::kRuns);
  EXPECT_THAT(board_.Expired("a", now_), IsEmpty());
  EXPECT_THAT(board_.Expired("a", now_ + absl::Minutes(1)), SizeIs(1));
}

}  // namespace
}  // namespace npuc::jobs
