#include "server/scheduler/fair_queue.h"

#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/jobs/service_error.h"

namespace npuc {
namespace {

std::string PopAll(JobQueue& queue) {
  std::string order;
  while (const auto job = queue.Pop()) absl::StrAppend(&order, job->id, " ");
  return order;
}

TEST(JobQueueTest, PriorityThenAge) {
  const auto queue = MakeFairQueue(10);
  queue->Push({"late", 0, 3}, false);
  queue->Push({"low", -100, 1}, false);
  queue->Push({"early", 0, 2}, false);
  queue->Push({"high", 100, 4}, false);
  EXPECT_EQ(queue->Look("high")->position, 0);
  EXPECT_EQ(queue->Look("early")->position, 1);
  EXPECT_EQ(queue->Look("low")->position, 3);
  EXPECT_FALSE(queue->Look("other").has_value());
  EXPECT_EQ(PopAll(*queue), "high early late low ");
  EXPECT_FALSE(queue->Pop().has_value());
}

TEST(JobQueueTest, AJobThatComesBackHasItsOldPlace) {
  const auto queue = MakeFairQueue(10);
  for (uint64_t i = 1; i <= 3; ++i) queue->Push({absl::StrCat("j", i), 0, i}, false);
  const auto first = queue->Pop();
  queue->Push(*first, false);
  EXPECT_EQ(PopAll(*queue), "j1 j2 j3 ");
}

TEST(JobQueueTest, BoundsWhatIsAccepted) {
  const auto queue = MakeFairQueue(2);
  ASSERT_TRUE(queue->Reserve("").ok());
  ASSERT_TRUE(queue->Reserve("").ok());
  const absl::Status full = queue->Reserve("");
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrorDetailsOf(full)->reason, "QUEUE_FULL");
  EXPECT_TRUE(ErrorDetailsOf(full)->retry_delay.has_value());
  queue->Push({"j1", 0, 1}, true);
  queue->Release("");
  ASSERT_TRUE(queue->Reserve("").ok());
  EXPECT_FALSE(queue->Reserve("").ok());
  queue->Push({"j2", 0, 2}, true);
  // A recovered job is never refused.
  queue->Push({"j3", 0, 3}, false);
  EXPECT_EQ(queue->size(), 3);
  EXPECT_FALSE(queue->Reserve("").ok());
}

TEST(JobQueueTest, RepeatedPushAndRemove) {
  const auto queue = MakeFairQueue(1);
  ASSERT_TRUE(queue->Reserve("").ok());
  queue->Push({"j1", 0, 1}, true);
  queue->Push({"j1", 0, 1}, false);
  EXPECT_EQ(queue->size(), 1);
  EXPECT_TRUE(queue->Remove("j1"));
  EXPECT_FALSE(queue->Remove("j1"));
  EXPECT_EQ(queue->size(), 0);
  EXPECT_TRUE(queue->Reserve("").ok());
}

TEST(JobQueueTest, EachJobGoesToOneTaker) {
  const auto queue = MakeFairQueue(1000);
  for (uint64_t i = 0; i < 1000; ++i) queue->Push({absl::StrCat("j", i), 0, i}, false);
  std::vector<int> taken(4);
  std::vector<std::thread> takers;
  for (int& count : taken) {
    takers.emplace_back([&] {
      while (queue->Pop()) ++count;
    });
  }
  for (std::thread& taker : takers) taker.join();
  EXPECT_EQ(taken[0] + taken[1] + taken[2] + taken[3], 1000);
}

}  // namespace
}  // namespace npuc
