#include "server/scheduler/fair_queue.h"

#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/jobs/service_error.h"

namespace npuc::scheduler {
namespace {

std::string PopAll(jobs::JobQueue& queue) {
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
  EXPECT_EQ(jobs::ErrorDetailsOf(full)->reason, "QUEUE_FULL");
  EXPECT_TRUE(jobs::ErrorDetailsOf(full)->retry_delay.has_value());
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

TEST(FairQueueTest, WaitingIsWorthPriority) {
  FairQueue queue({.ageing = absl::Seconds(30)});
  const absl::Time start = absl::FromUnixSeconds(1'700'000'000);
  queue.Push({.id = "old", .priority = 0, .accept_order = 1, .create_time = start}, false);
  queue.Push(
      {.id = "urgent", .priority = 2, .accept_order = 2, .create_time = start + absl::Seconds(59)},
      false);
  queue.Push({.id = "too-late",
              .priority = 2,
              .accept_order = 3,
              .create_time = start + absl::Seconds(61)},
             false);
  EXPECT_EQ(PopAll(queue), "urgent old too-late ");
}

TEST(FairQueueTest, ATenantWithNothingWaitingFindsAPlaceThoughAnotherSendsWithoutEnd) {
  FairQueue queue({.max_queued = 10, .kept_for_idle = 2});
  int64_t greedy = 0;
  while (queue.Reserve("greedy").ok()) ++greedy;
  EXPECT_EQ(greedy, 8);
  for (const char* tenant : {"a", "b"}) {
    EXPECT_TRUE(queue.Reserve(tenant).ok());
  }
  const auto full = queue.Reserve("c");
  EXPECT_EQ(jobs::ErrorDetailsOf(full)->reason, "QUEUE_FULL");
  EXPECT_TRUE(jobs::ErrorDetailsOf(full)->retry_delay.has_value());
}

TEST(FairQueueTest, TenantsHaveBounds) {
  FairQueue queue({.max_queued = 100, .policy = [](absl::string_view tenant) {
                     return tenant == "small" ? TenantPolicy{.max_queued = 2, .max_running = 1}
                                              : TenantPolicy{};
                   }});
  ASSERT_TRUE(queue.Reserve("small").ok());
  ASSERT_TRUE(queue.Reserve("small").ok());
  const absl::Status refused = queue.Reserve("small");
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  const jobs::ErrorDetails details = *jobs::ErrorDetailsOf(refused);
  EXPECT_EQ(details.reason, "QUOTA_EXCEEDED");
  EXPECT_FALSE(details.retry_delay.has_value());
  ASSERT_EQ(details.quota_violations.size(), 1u);
  EXPECT_EQ(details.quota_violations[0].subject, "queued_jobs");
  EXPECT_TRUE(queue.Reserve("large").ok());
  queue.Push({.id = "s1", .accept_order = 1, .tenant = "small"}, true);
  queue.Push({.id = "s2", .accept_order = 2, .tenant = "small"}, true);
  queue.Push({.id = "l1", .accept_order = 3, .tenant = "large"}, true);
  EXPECT_EQ(queue.Pop()->id, "s1");
  EXPECT_TRUE(queue.Look("s2")->tenant_limited);
  EXPECT_EQ(queue.Pop()->id, "l1");
  EXPECT_FALSE(queue.HasReady());
  EXPECT_FALSE(queue.Pop().has_value());
  queue.Done("small", absl::Seconds(1));
  EXPECT_EQ(queue.Pop()->id, "s2");
  EXPECT_EQ(queue.CountsOf("small").running, 1);
}

TEST(FairQueueTest, ParkedJobsWaitAndAreNotStarted) {
  FairQueue queue({});
  queue.Push({.id = "a", .accept_order = 1}, false);
  queue.Push({.id = "b", .accept_order = 2}, false);
  EXPECT_TRUE(queue.Park("a"));
  EXPECT_FALSE(queue.Park("a"));
  EXPECT_EQ(queue.size(), 2);
  EXPECT_EQ(queue.Look("b")->position, 0);
  EXPECT_EQ(queue.Pop()->id, "b");
  EXPECT_FALSE(queue.HasReady());
  queue.Push({.id = "a", .accept_order = 1}, false);
  EXPECT_EQ(queue.Pop()->id, "a");
  queue.Push({.id = "c", .accept_order = 3}, false);
  EXPECT_TRUE(queue.Park("c"));
  EXPECT_TRUE(queue.Take("c"));
  EXPECT_EQ(queue.CountsOf("").running, 3);
}

// Workers in virtual time that take the next job whenever one is free.
class Workers {
 public:
  Workers(FairQueue* queue, int slots) : queue_(queue), slots_(slots) {}

  // Starts one job, at the time at which a worker is free; returns it and its tenant.
  jobs::QueuedJob StartOne(double seconds) {
    if (static_cast<int>(running_.size()) == slots_) {
      const auto first = running_.begin();
      now_ = first->first;
      queue_->Done(first->second.first, absl::Seconds(first->second.second));
      running_.erase(first);
    }
    jobs::QueuedJob job = *queue_->Pop();
    served_[job.tenant] += seconds;
    running_.emplace(now_ + seconds, std::pair(job.tenant, seconds));
    return job;
  }

  double now() const { return now_; }
  double served(const std::string& tenant) { return served_[tenant]; }

 private:
  FairQueue* const queue_;
  const int slots_;
  double now_ = 0;
  std::multimap<double, std::pair<std::string, double>> running_;  // by time of end
  std::map<std::string, double> served_;
};

// Run times between 0.2 and 1.8 s, 1 s in the mean.
double RunSeconds(std::mt19937_64& random) {
  return 0.2 + 1.6 * static_cast<double>(random() % 1000) / 999.0;
}

TEST(FairnessTest, AFloodOfOneTenantDelaysAnotherByOneJob) {
  for (const int slots : {1, 4}) {
    FairQueue queue({.max_queued = 20000, .slots = slots});
    Workers workers(&queue, slots);
    std::mt19937_64 random(7);
    uint64_t order = 0;
    for (int i = 0; i < 10000; ++i) {
      queue.Push({.id = absl::StrCat("flood", i), .accept_order = ++order, .tenant = "a"}, false);
    }
    for (int i = 0; i < 500; ++i) workers.StartOne(RunSeconds(random));
    queue.Push({.id = "one", .accept_order = ++order, .tenant = "b"}, false);
    EXPECT_LE(queue.Look("one")->position, 1);
    const double came = workers.now();
    while (workers.StartOne(RunSeconds(random)).id != "one") {
    }
    EXPECT_LE(workers.now() - came, 1.0 + 1.0) << slots;  // one mean job time + 1 s
  }
}

TEST(FairnessTest, TenEqualTenantsGetEqualShares) {
  FairQueue queue({.slots = 4});
  Workers workers(&queue, 4);
  std::mt19937_64 random(8);
  uint64_t order = 0;
  const auto add = [&](const std::string& tenant) {
    ++order;
    queue.Push({.id = absl::StrCat(order), .accept_order = order, .tenant = tenant}, false);
  };
  // Very different numbers of jobs wait.
  for (int t = 0; t < 10; ++t) {
    for (int i = 0; i < 300 * (t + 1); ++i) add(absl::StrCat("t", t));
  }
  while (workers.now() < 500) {
    const auto seconds = RunSeconds(random);
    workers.StartOne(seconds);
  }
  double sum = 0;
  double squares = 0;
  for (int t = 0; t < 10; ++t) {
    const double got = workers.served(absl::StrCat("t", t));
    sum += got;
    squares += got * got;
  }
  EXPECT_GE(sum * sum / (10 * squares), 0.95);
}

TEST(FairnessTest, SharesAreAsTheWeights) {
  const std::map<std::string, double> weights = {{"a", 1}, {"b", 2}, {"c", 4}};
  FairQueue queue({.slots = 3, .policy = [&](absl::string_view tenant) {
                     return TenantPolicy{.weight = weights.at(std::string(tenant))};
                   }});
  Workers workers(&queue, 3);
  std::mt19937_64 random(9);
  uint64_t order = 0;
  for (int i = 0; i < 3000; ++i) {
    for (const auto& [tenant, weight] : weights) {
      ++order;
      queue.Push({.id = absl::StrCat(order), .accept_order = order, .tenant = tenant}, false);
    }
  }
  while (workers.now() < 1000) workers.StartOne(RunSeconds(random));
  const double all = workers.served("a") + workers.served("b") + workers.served("c");
  for (const auto& [tenant, weight] : weights) {
    EXPECT_NEAR(workers.served(tenant) / all, weight / 7, 0.05 * weight / 7) << tenant;
  }
}

}  // namespace
}  // namespace npuc::scheduler
