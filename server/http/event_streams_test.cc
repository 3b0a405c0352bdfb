#include "server/http/event_streams.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "server/executor/lifecycle.h"
#include "server/jobs/local_board.h"
#include "server/jobs/memory_job_store.h"
#include "server/scheduler/fair_queue.h"

namespace npuc::http {
namespace {

constexpr char kTenant[] = "default";

// Says that the job waits behind a thousand, and counts the questions.
class CountingBoard : public jobs::LocalBoard {
 public:
  using LocalBoard::LocalBoard;
  std::optional<jobs::BoardView> Look(absl::string_view /*job_id*/) const override {
    ++looks;
    jobs::BoardView view;
    view.queue.position = 1000;
    return view;
  }
  mutable int looks = 0;
};

class EventStreamsTest : public ::testing::Test {
 protected:
  EventStreamsTest() {
    EXPECT_TRUE(service_.Recover(nullptr).ok());
    lifecycle_.Enter(executor::Lifecycle::Phase::kServing);
    deps_.jobs = &service_;
    deps_.lifecycle = &lifecycle_;
    caller_.tenant = kTenant;
  }

  std::string Submitted() {
    jobs::NewJob request;
    request.spec.inputs = {{.role = "MODEL_FILE", .name = "m.pb", .sha256 = "s", .md5 = "m"}};
    request.tenant = kTenant;
    request.spec.timeout = absl::Minutes(10);
    const auto submitted = service_.SubmitAndWait(std::move(request));
    EXPECT_TRUE(submitted.ok()) << submitted.status();
    return submitted->job->id;
  }

  uint64_t random_ = 0;
  jobs::MemoryJobStore store_;
  std::unique_ptr<jobs::JobQueue> queue_ = scheduler::MakeFairQueue(10);
  CountingBoard board_{queue_.get(), absl::Minutes(5)};
  jobs::JobService service_{
      {.now = [] { return absl::Now(); }, .random = [this] { return ++random_; }, .retry = {}},
      &store_,
      &board_};
  executor::Lifecycle lifecycle_;
  api::ApiDependencies deps_;
  auth::Caller caller_;
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
