#include "server/observe/watchdog.h"

#include <atomic>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/observe/readiness.h"

namespace npuc::observe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Parts(const Watchdog& dog) {
  std::vector<std::string> parts;
  for (const Watchdog::Stuck& stuck : dog.Look()) parts.push_back(stuck.part);
  return parts;
}

TEST(WatchdogTest, WhatIsUnderWayForTooLongIsStuckUntilItEnds) {
  absl::Time now = absl::UnixEpoch();
  Watchdog dog([&] { return now; });
  Watchdog::Scope slow = dog.Enter("store", absl::Seconds(10));
  Watchdog::Scope patient = dog.Enter("upload", absl::Seconds(100));
  now += absl::Seconds(10);
  EXPECT_THAT(Parts(dog), IsEmpty());
  now += absl::Seconds(1);
  const auto stuck = dog.Look();
  ASSERT_EQ(stuck.size(), 1u);
  EXPECT_EQ(stuck[0].part, "store");
  EXPECT_EQ(stuck[0].since, absl::Seconds(11));
  Watchdog::Scope moved = std::move(slow);
  EXPECT_THAT(Parts(dog), ElementsAre("store"));
  moved.End();
  EXPECT_THAT(Parts(dog), IsEmpty());
}

TEST(WatchdogTest, TheOldestOfAPartCounts) {
  absl::Time now = absl::UnixEpoch();
  Watchdog dog([&] { return now; });
  const Watchdog::Scope first = dog.Enter("store", absl::Seconds(1));
  now += absl::Seconds(2);
  const Watchdog::Scope second = dog.Enter("store", absl::Seconds(1));
  now += absl::Seconds(2);
  ASSERT_EQ(dog.Look().size(), 1u);
  EXPECT_EQ(dog.Look()[0].since, absl::Seconds(4));
}

TEST(WatchdogTest, WhatStopsBeatingIsStuckUntilItBeatsOrRetires) {
  absl::Time now = absl::UnixEpoch();
  Watchdog dog([&] { return now; });
  dog.Beat("timer", absl::Seconds(5));
  dog.Beat("ticker", absl::Seconds(5));
  now += absl::Seconds(6);
  EXPECT_THAT(Parts(dog), ElementsAre("ticker", "timer"));
  dog.Beat("timer", absl::Seconds(5));
  EXPECT_THAT(Parts(dog), ElementsAre("ticker"));
  dog.Retire("ticker");
  EXPECT_THAT(Parts(dog), IsEmpty());
}

TEST(WatchdogTest, ManyThreadsAtOnce) {
  std::atomic<int64_t> ticks = 0;
  Watchdog dog([&] { return absl::UnixEpoch() + absl::Seconds(++ticks); });
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 1000; ++n) {
        const Watchdog::Scope scope = dog.Enter("store", absl::Seconds(1));
        dog.Beat("timer", absl::Seconds(1));
        dog.Look();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  dog.Retire("timer");
  EXPECT_THAT(Parts(dog), IsEmpty());
}

TEST(ReadinessTest, EveryConditionMustHold) {
  std::vector<std::string> changes;
  Readiness readiness([&](absl::string_view condition, const absl::Status& status) {
    changes.push_back(std::string(condition) + (status.ok() ? " holds" : " fails"));
  });
  EXPECT_FALSE(readiness.ready());
  readiness.Set("store", absl::OkStatus());
  EXPECT_TRUE(readiness.ready());
  readiness.Set("disk", absl::ResourceExhaustedError("is \"full\""));
  readiness.Set("disk", absl::ResourceExhaustedError("is fuller"));
  EXPECT_FALSE(readiness.ready());
  EXPECT_EQ(readiness.Json(),
            "{\"ready\":false,\"conditions\":{\"disk\":\"is fuller\",\"store\":\"ok\"}}\n");
  EXPECT_EQ(readiness.Reason(), "disk: is fuller");
  readiness.Set("disk", absl::OkStatus());
  EXPECT_TRUE(readiness.ready());
  EXPECT_THAT(changes, ElementsAre("disk fails", "disk holds"));
  readiness.Set("canary", absl::UnavailableError("none ran yet"));
  readiness.Set("canary", absl::InternalError("it does not compile"));
  EXPECT_THAT(changes, ElementsAre("disk fails", "disk holds", "canary fails", "canary fails"));
}

}  // namespace
}  // namespace npuc::observe
