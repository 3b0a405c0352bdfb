#ifndef NPUC_SERVER_API_WATCHED_JOBS_TEST_UTIL_H_
#define NPUC_SERVER_API_WATCHED_JOBS_TEST_UTIL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "server/api/dependencies.h"
#include "server/auth/caller.h"
#include "server/executor/lifecycle.h"
#include "server/jobs/job_service.h"
#include "server/jobs/local_board.h"
#include "server/jobs/memory_job_store.h"
#include "server/scheduler/fair_queue.h"

namespace npuc::api {

// Says where the job waits, and counts the questions.
class CountingBoard : public jobs::LocalBoard {
 public:
  using LocalBoard::LocalBoard;
  std::optional<jobs::BoardView> Look(absl::string_view /*job_id*/) const override {
    ++looks;
    if (ahead < 0) return std::nullopt;
    jobs::BoardView view;
    view.queue.position = ahead;
    return view;
  }
  int64_t ahead = 0;  // below 0: it has no place
  mutable int looks = 0;
};

// A job service in memory, for tests of what watches its jobs.
class WatchedJobs : public ::testing::Test {
 protected:
  WatchedJobs() {
    EXPECT_TRUE(service_.Recover(nullptr).ok());
    lifecycle_.Enter(executor::Lifecycle::Phase::kServing);
    deps_.jobs = &service_;
    deps_.lifecycle = &lifecycle_;
    caller_.tenant = "default";
  }

  // The id of a new job, which waits.
  std::string Submitted() {
    jobs::NewJob request;
    request.spec.inputs = {{.role = "MODEL_FILE", .name = "m.pb", .sha256 = "s", .md5 = "m"}};
    request.tenant = caller_.tenant;
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
  ApiDependencies deps_;
  auth::Caller caller_;
};

}  // namespace npuc::api

#endif  // NPUC_SERVER_API_WATCHED_JOBS_TEST_UTIL_H_
