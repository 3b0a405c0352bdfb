#include "server/http/event_streams.h"

#include <string>

#include "gtest/gtest.h"
#include "server/api/watched_jobs_test_util.h"

namespace npuc::http {
namespace {

class EventStreamsTest : public api::WatchedJobs {
 protected:
  EventStreamsTest() { board_.ahead = 1000; }

  EventStreams streams_{&deps_, /*heartbeat=*/absl::Hours(1), /*max_age=*/absl::Hours(1)};
};

// A page of 64 jobs would else ask the store and the board 64 times for each change of one.
TEST_F(EventStreamsTest, OnlyAJobThatHasChangedIsRead) {
  const std::string changes = Submitted();
  const std::string waits = Submitted();
  auto stream = streams_.OpenOfMany(caller_, {{changes, 1}, {waits, 1}});
  ASSERT_TRUE(stream.ok()) << stream.status();
  int wakes = 0;
  (*stream)->SetWake([&wakes] { ++wakes; });
  const auto next = [&] {
    const auto piece = (*stream)->Next();
    EXPECT_TRUE(piece.ok()) << piece.status();
    return piece.ok() ? piece->bytes : "";
  };
  EXPECT_NE(next(), "") << "the kept events";
  EXPECT_NE(next(), "") << "the places";
  const int looks = board_.looks;
  EXPECT_EQ(looks, 2);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(next(), "");
  EXPECT_EQ(board_.looks, looks) << "no change was reported";
  service_.hub().Notify(changes);
  EXPECT_EQ(wakes, 1);
  EXPECT_EQ(next(), "") << "the place is that of before";
  EXPECT_EQ(board_.looks, looks + 1) << "of the job that has changed alone";
  EXPECT_EQ(next(), "");
  EXPECT_EQ(board_.looks, looks + 1) << "one look for one report";
}

}  // namespace
}  // namespace npuc::http
