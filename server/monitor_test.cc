#include "server/monitor.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <future>
#include <mutex>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::daemon {
namespace {

using ::testing::HasSubstr;

class MonitorTest : public ::testing::Test {
 protected:
  MonitorTest() : log_(nullptr, [] { return absl::Now(); }) {
    options_ = {.watchdog = &watchdog_,
                .readiness = &readiness_,
                .metrics = &metrics_,
                .log = &log_,
                .data_dir = ::testing::TempDir(),
                .worker_health = [] { return absl::OkStatus(); },
                .probe_stores = [] { return absl::OkStatus(); },
                .run_canary =
                    [this] {
                      ++canaries_;
                      return absl::OkStatus();
                    },
                .on_memory = [this](bool over) { over_memory_ = over; },
                .on_look =
                    [this] {
                      const std::lock_guard<std::mutex> lock(mutex_);
                      looked_.notify_all();
                    }};
  }
  // Waits for a look after which the condition holds.
  bool Soon(const std::function<bool()>& condition) {
    std::unique_lock<std::mutex> lock(mutex_);
    return looked_.wait_for(lock, std::chrono::seconds(30), condition);
  }
  bool Holds(const std::string& condition) const {
    const auto conditions = readiness_.Conditions();
    const auto found = conditions.find(condition);
    return found != conditions.end() && found->second.ok();
  }
  bool Fails(const std::string& condition) const {
    const auto conditions = readiness_.Conditions();
    const auto found = conditions.find(condition);
    return found != conditions.end() && !found->second.ok();
  }

  std::mutex mutex_;
  std::condition_variable looked_;
  std::atomic<int64_t> now_seconds_ = 1000;
  std::atomic<int> canaries_ = 0;
  std::atomic<bool> over_memory_ = false;
  const log::Logger log_;
  observe::NoMetrics metrics_;
  observe::Watchdog watchdog_{[this] { return absl::FromUnixSeconds(now_seconds_); }};
  observe::Readiness readiness_{[](absl::string_view, const absl::Status&) {}};
  MonitorOptions options_;
};

TEST_F(MonitorTest, IsReadyWhereEverythingHolds) {
  const Monitor monitor(options_);
  EXPECT_TRUE(Soon([&] {
    return Holds("store") && Holds("disk") && Holds("canary") && Holds("watchdog") &&
           Holds("workers");
  })) << readiness_.Json();
  EXPECT_TRUE(readiness_.ready());
  EXPECT_EQ(canaries_, 1) << "one a period";
}

TEST_F(MonitorTest, EachConditionIsToldWithItsReason) {
  options_.disk_reserve_bytes = uint64_t{1} << 60;
  options_.probe_stores = [] { return absl::InternalError("read-only file system"); };
  const Monitor monitor(options_);
  EXPECT_TRUE(Soon([&] { return Fails("store") && Fails("disk"); }));
  EXPECT_THAT(readiness_.Json(), HasSubstr("read-only file system"));
  EXPECT_THAT(readiness_.Json(), HasSubstr("MiB must be"));
  std::atomic<int> looks = 0;
  EXPECT_TRUE(Soon([&] { return ++looks > 3; }));
  EXPECT_EQ(canaries_, 0) << "nothing could be stored";
}

TEST_F(MonitorTest, WorkersThatCannotBeStartedAreToldUntilTheyCan) {
  std::atomic<bool> can_start = false;
  options_.worker_health = [&] {
    return can_start ? absl::OkStatus()
                     : absl::FailedPreconditionError("cannot execute npuc-worker");
  };
  const Monitor monitor(options_);
  EXPECT_TRUE(Soon([&] { return Fails("workers"); }));
  EXPECT_FALSE(readiness_.ready());
  EXPECT_THAT(readiness_.Json(), HasSubstr("cannot execute npuc-worker"));
  can_start = true;
  EXPECT_TRUE(Soon([&] { return Holds("workers") && readiness_.ready(); }));
}

TEST_F(MonitorTest, ACanaryThatFailsIsToldWithItsReason) {
  options_.run_canary = [] { return absl::InternalError("it does not compile"); };
  const Monitor monitor(options_);
  EXPECT_TRUE(Soon([&] { return Fails("canary"); }));
  EXPECT_THAT(readiness_.Json(), HasSubstr("it does not compile"));
}

TEST_F(MonitorTest, ACanaryThatFoundNothingOutChangesNothing) {
  std::atomic<int> asked = 0;
  options_.run_canary = [&] {
    ++asked;
    return absl::UnavailableError("the queue is full");
  };
  const Monitor monitor(options_);
  EXPECT_TRUE(Soon([&] { return asked > 0 && Holds("disk"); }));
  EXPECT_FALSE(readiness_.Conditions().contains("canary"));
}

TEST_F(MonitorTest, AStuckPartIsSeenByTheThreadThatWaitsForNothing) {
  std::promise<void> let_go;
  const std::shared_future<void> gone_on = let_go.get_future().share();
  options_.probe_stores = [gone_on] {  // a disk that hangs
    gone_on.wait();
    return absl::OkStatus();
  };
  const Monitor monitor(options_);
  EXPECT_TRUE(Soon([&] { return Holds("watchdog"); }));
  now_seconds_ += 3600;
  EXPECT_TRUE(Soon([&] { return Fails("watchdog"); }));
  EXPECT_THAT(readiness_.Json(), HasSubstr("store probe"));
  let_go.set_value();
  EXPECT_TRUE(Soon([&] { return Holds("watchdog"); }));
}

TEST_F(MonitorTest, MemoryOverItsLimitIsTold) {
  EXPECT_GT(ResidentBytes(), uint64_t{1} << 20);
  options_.memory_limit_bytes = 1 << 20;  // this process has more
  std::FILE* const out = std::tmpfile();
  {
    const log::Logger log(out, [] { return absl::Now(); });
    options_.log = &log;
    const Monitor monitor(options_);
    EXPECT_TRUE(Soon([&] { return over_memory_.load(); }));
    std::atomic<int> looks = 0;
    EXPECT_TRUE(Soon([&] { return ++looks > 3; }));
  }
  std::string text(1 << 16, '\0');
  std::rewind(out);
  text.resize(std::fread(text.data(), 1, text.size(), out));
  std::fclose(out);
  EXPECT_THAT(text, HasSubstr("\"ERROR\",\"message\":\"close to --memory-mib"));
  EXPECT_EQ(text.find("close to"), text.rfind("close to")) << text;  // once, not at each look
}

}  // namespace
}  // namespace npuc::daemon
