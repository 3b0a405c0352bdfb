#include "server/api/job_watch.h"

#include <deque>
#include <optional>
#include <string>

#include "gtest/gtest.h"
#include "server/api/watched_jobs_test_util.h"

namespace npuc::api {
namespace {

constexpr absl::Duration kHeartbeat = absl::Seconds(10);

class JobWatchTest : public WatchedJobs {
 protected:
  JobWatchTest() {
    watch_.emplace(&deps_, caller_, Submitted(), 1, kHeartbeat, [this] { return now_; });
  }

  // The kinds of the events of a call, a letter each: Kept, Place, Heartbeat.
  std::string Kinds(absl::StatusOr<bool> more) {
    EXPECT_TRUE(more.ok()) << more.status();
    std::string kinds;
    for (const v1::JobEvent& event : events_) {
      kinds += event.seq() != 0 ? 'K' : event.has_queue_position() ? 'P' : 'H';
    }
    events_.clear();
    return kinds;
  }
  std::string Next() { return Kinds(watch_->Next(now_, &events_)); }
  std::string ByClock() { return Kinds(watch_->NextByClock(now_, &events_)); }
  std::string ByClockAfterSilence() {
    return Kinds(watch_->NextByClock(now_ - kHeartbeat, &events_));
  }
  jobs::Lease Lease() {
    auto leased = service_.TryLease();
    EXPECT_TRUE(leased.ok() && leased->has_value());
    return (*leased)->lease;
  }

  absl::Time now_ = absl::UnixEpoch();  // of the watch
  std::optional<JobWatch> watch_;
  std::deque<v1::JobEvent> events_;
};

TEST_F(JobWatchTest, AsksForThePlaceBehindTheKeptEvents) {
  EXPECT_EQ(Next(), "K");
  EXPECT_EQ(watch_->place_due(), absl::InfinitePast());
  EXPECT_EQ(board_.looks, 0);
  EXPECT_EQ(Next(), "P");
  EXPECT_EQ(Next(), "") << "the place is that of before";
  EXPECT_EQ(board_.looks, 2);
}

// 1,000 silent watchers of a cluster would else ask its database 200 times a second.
TEST_F(JobWatchTest, HeartbeatsAskNobody) {
  board_.ahead = 1000;
  Next();
  EXPECT_EQ(Next(), "P");
  EXPECT_EQ(watch_->place_due(), now_ + absl::Seconds(30));
  now_ += absl::Seconds(29);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(ByClockAfterSilence(), "H");
  EXPECT_EQ(ByClock(), "") << "no heartbeat is due";
  EXPECT_EQ(board_.looks, 1);
  board_.ahead = 900;
  now_ += absl::Seconds(1);
  EXPECT_EQ(ByClock(), "P");
}

// In a queue that stands still those near its front would else ask without need.
TEST_F(JobWatchTest, LooksSeldomAtAPlaceThatDoesNotMove) {
  board_.ahead = 1;
  Next();
  EXPECT_EQ(Next(), "P");
  for (int seconds = 0; seconds < 300; ++seconds) {
    now_ += absl::Seconds(1);
    EXPECT_EQ(ByClock(), "");
  }
  EXPECT_LE(board_.looks, 20);
  EXPECT_LE(watch_->place_due(), now_ + absl::Seconds(35));
  board_.ahead = 0;
  now_ = watch_->place_due();
  EXPECT_EQ(ByClock(), "P");
  EXPECT_EQ(watch_->place_due(), now_) << "it moves again";
}

// Watches that look at one time share a statement of the database.
TEST_F(JobWatchTest, LooksThatAreFarOffComeTogether) {
  board_.ahead = 1000;
  now_ += absl::Milliseconds(1234);
  Next();
  EXPECT_EQ(Next(), "P");
  EXPECT_EQ(watch_->place_due(), absl::UnixEpoch() + absl::Seconds(35));
  board_.ahead = 60;
  EXPECT_EQ(Next(), "P");
  EXPECT_EQ(watch_->place_due(), absl::UnixEpoch() + absl::Seconds(10));
}

TEST_F(JobWatchTest, LooksOftenAtAPlaceNearTheFront) {
  Next();
  EXPECT_EQ(Next(), "P");
  board_.ahead = 3;
  EXPECT_EQ(ByClock(), "P");
  EXPECT_EQ(watch_->place_due(), now_ + absl::Milliseconds(300));
}

// A report says that the job has changed, wherever it stands.
TEST_F(JobWatchTest, AReportMakesItLookAtOnce) {
  board_.ahead = 1000;
  Next();
  EXPECT_EQ(Next(), "P");
  board_.ahead = 999;
  EXPECT_EQ(Next(), "P");
}

// Its place is gone, though no report has come: the store knows where it went.
TEST_F(JobWatchTest, AJobWithoutAPlaceIsReadAgain) {
  Next();
  EXPECT_EQ(Next(), "P");
  board_.ahead = -1;
  EXPECT_EQ(ByClock(), "");
  Lease();
  EXPECT_EQ(ByClock(), "K") << "it runs";
  EXPECT_EQ(watch_->place_due(), absl::InfiniteFuture());
}

// A report may be missed; a job that runs is read again after half a minute, one that waits where
// it has lost its place.
TEST_F(JobWatchTest, AJobIsReadNowAndThen) {
  board_.ahead = 1000;
  Next();
  EXPECT_EQ(Next(), "P");
  const jobs::Lease lease = Lease();
  board_.ahead = -1;
  now_ += absl::Seconds(29);
  EXPECT_EQ(ByClockAfterSilence(), "H") << "nobody has said that it runs";
  now_ += absl::Seconds(1);
  EXPECT_EQ(ByClock(), "") << "it has no place";
  EXPECT_EQ(ByClock(), "K");
  ASSERT_TRUE(service_.Lose(lease, jobs::LossKind::kHandBack, "the daemon stops", {}).ok());
  now_ += absl::Seconds(29);
  EXPECT_EQ(ByClockAfterSilence(), "H") << "nobody has said that it waits again";
  now_ += absl::Seconds(1);
  EXPECT_EQ(ByClock(), "K");
}

TEST_F(JobWatchTest, ARunThatNobodyReportedShowsThoughTheJobWaitsAgain) {
  board_.ahead = 1000;
  Next();
  EXPECT_EQ(Next(), "P");
  const jobs::Lease lease = Lease();
  ASSERT_TRUE(service_.Lose(lease, jobs::LossKind::kHandBack, "the daemon stops", {}).ok());
  now_ += absl::Minutes(4);
  EXPECT_EQ(ByClock(), "");
  now_ += absl::Minutes(1);
  EXPECT_EQ(ByClock(), "KK");
}

// One look may see the start, the loss of the run and the return to the queue.
TEST_F(JobWatchTest, APlaceIsSaidAgainAfterARetry) {
  Next();
  EXPECT_EQ(Next(), "P");
  const jobs::Lease lease = Lease();
  ASSERT_TRUE(service_.Lose(lease, jobs::LossKind::kHandBack, "the daemon stops", {}).ok());
  EXPECT_EQ(Next(), "KK");
  EXPECT_EQ(Next(), "P");
}

}  // namespace
}  // namespace npuc::api
