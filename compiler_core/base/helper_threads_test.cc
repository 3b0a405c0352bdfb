#include "compiler_core/base/helper_threads.h"

#include <atomic>
#include <cstdint>
#include <latch>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace npuc {
namespace {

constexpr int kThreadCounts[] = {-1, 0, 1, 2, 5};

TEST(HelperThreads, CountTheOwnersThread) {
  EXPECT_EQ(HelperThreads(-1).threads(), 1);
  EXPECT_EQ(HelperThreads(0).threads(), 1);
  EXPECT_EQ(HelperThreads(1).threads(), 1);
  EXPECT_EQ(HelperThreads(5).threads(), 5);
}

TEST(HelperThreads, EachIndexOnceWithAnyThreads) {
  for (const int threads : kThreadCounts) {
    HelperThreads helpers(threads);
    for (const size_t count : {0, 1, 2, 7, 1000}) {
      std::vector<int> calls(count, 0);  // not atomic: ThreadSanitizer sees two calls of one index
      helpers.ForEach(count, [&](size_t i) { ++calls[i]; });
      EXPECT_EQ(calls, std::vector<int>(count, 1)) << threads << " threads";
    }
  }
}

TEST(HelperThreads, ResultsAreThereAfterWait) {
  for (const int threads : kThreadCounts) {
    HelperThreads helpers(threads);
    std::vector<std::string> results(100);
    {
      std::vector<HelperThreads::Task> tasks;
      for (std::string& result : results) {
        tasks.push_back(helpers.Start([&result] { result = "done"; }));
      }
      for (size_t i = 0; i < tasks.size(); ++i) {
        tasks[i].Wait();
        EXPECT_EQ(results[i], "done");
        tasks[i].Wait();  // again: nothing
      }
    }
  }
}

TEST(HelperThreads, TheEndOfATaskWaits) {
  for (const int threads : kThreadCounts) {
    HelperThreads helpers(threads);
    int value = 0;
    {
      const HelperThreads::Task task = helpers.Start([&] { value = 7; });
    }
    EXPECT_EQ(value, 7);
  }
}

TEST(HelperThreads, WorkRunsAtOnceAndWhatNobodyBeganRunsWhereItIsWaitedFor) {
  HelperThreads helpers(2);
  std::latch helper_runs(1);
  std::latch go_on(1);
  std::thread::id first;
  std::thread::id second;
  HelperThreads::Task busy = helpers.Start([&] {
    first = std::this_thread::get_id();
    helper_runs.count_down();
    go_on.wait();  // keeps the only helper until the owner has gone past the second task
  });
  helper_runs.wait();
  HelperThreads::Task queued = helpers.Start([&] { second = std::this_thread::get_id(); });
  queued.Wait();
  go_on.count_down();
  busy.Wait();
  EXPECT_NE(first, std::this_thread::get_id());
  EXPECT_EQ(second, std::this_thread::get_id());
}

TEST(HelperThreads, WhatWorkThrowsIsThrownByWait) {
  for (const int threads : kThreadCounts) {
    HelperThreads helpers(threads);
    HelperThreads::Task task = helpers.Start([] { throw std::runtime_error("no memory"); });
    EXPECT_THROW(task.Wait(), std::runtime_error);
    {
      const HelperThreads::Task dropped = helpers.Start([] { throw std::runtime_error("nobody"); });
    }
    std::atomic<int> calls = 0;
    EXPECT_THROW(helpers.ForEach(10,
                                 [&](size_t i) {
                                   ++calls;
                                   if (i == 3) throw std::runtime_error("the fourth");
                                 }),
                 std::runtime_error);
    EXPECT_GE(calls.load(), 4);
    // They go on helping.
    int value = 0;
    HelperThreads::Task after = helpers.Start([&] { value = 1; });
    after.Wait();
    EXPECT_EQ(value, 1);
  }
}

TEST(HelperThreads, ManyShortLivesAndTasks) {
  uint64_t sum = 0;
  for (int life = 0; life < 50; ++life) {
    HelperThreads helpers(1 + life % 4);
    std::vector<uint64_t> parts(64);
    HelperThreads::Task beside = helpers.Start([&] { parts[0] = 1; });
    helpers.ForEach(parts.size() - 1, [&](size_t i) { parts[i + 1] = i; });
    beside.Wait();
    for (const uint64_t part : parts) sum += part;
  }
  EXPECT_EQ(sum, 50U * (1 + 62 * 63 / 2));
}

}  // namespace
}  // namespace npuc
