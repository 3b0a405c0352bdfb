#include "server/base/work_pool.h"

#include <atomic>
#include <barrier>
#include <future>

#include "gtest/gtest.h"

namespace npuc::base {
namespace {

TEST(WorkPoolTest, OneMoreThanMayWaitIsRefused) {
  std::promise<void> let_go;
  std::promise<void> began;
  std::atomic<int> done = 0;
  {
    WorkPool pool(1, 2);
    ASSERT_TRUE(pool.TryPost([&] {
      began.set_value();
      let_go.get_future().wait();
    }));
    began.get_future().wait();
    EXPECT_TRUE(pool.TryPost([&] { ++done; }));
    EXPECT_TRUE(pool.TryPost([&] { ++done; }));
    EXPECT_FALSE(pool.TryPost([&] { ++done; }));
    let_go.set_value();
  }
  EXPECT_EQ(done, 2) << "what was let in is done, what was refused is not";
}

// Each task waits for the others, so each needs a thread of its own.
TEST(WorkPoolTest, ATaskThatWaitsHoldsUpNoOther) {
  constexpr int kTasks = 8;
  std::barrier<> all(kTasks + 1);
  WorkPool pool(kTasks, kTasks);
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < kTasks; ++i) pool.Post([&all] { all.arrive_and_wait(); });
    all.arrive_and_wait();
  }
}

}  // namespace
}  // namespace npuc::base
