#include "server/jobs/committer.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::jobs {
namespace {

using ::testing::ElementsAre;
using Numbers = Committer<int>;

// Writes numbers; a write waits while the disk is held, so that others gather.
class Disk {
 public:
  explicit Disk(size_t max_group = 1000) : max_group_(max_group) {}

  size_t Commit(Numbers::Group group) {
    std::unique_lock<std::mutex> lock(mutex_);
    EXPECT_FALSE(group.empty());
    ++begun_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !held_; });
    const size_t count = std::min(group.size(), max_group_);
    sizes_.push_back(count);
    for (Numbers::Write& write : group.first(count)) {
      written_.push_back(write.payload);
      if (write.payload < 0) write.status = absl::InternalError("negative");
    }
    return count;
  }

  void Hold() {
    std::lock_guard<std::mutex> lock(mutex_);
    held_ = true;
  }
  void LetGo() {
    std::lock_guard<std::mutex> lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }
  void AwaitBegin(int count) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return begun_ >= count; });
  }

  // To be looked at when nobody writes.
  std::vector<int> written_;
  std::vector<size_t> sizes_;

 private:
  const size_t max_group_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  int begun_ = 0;
};

class CommitterTest : public ::testing::TestWithParam<Answers> {};
INSTANTIATE_TEST_SUITE_P(Answers, CommitterTest,
                         ::testing::Values(Answers::kByWriter, Answers::kApart),
                         [](const auto& info) {
                           return info.param == Answers::kApart ? "Apart" : "ByWriter";
                         });

TEST_P(CommitterTest, WhatComesMeanwhileIsOneWrite) {
  Disk disk;
  std::vector<std::string> told;
  {
    Numbers numbers([&](Numbers::Group group) { return disk.Commit(group); }, GetParam());
    const auto put = [&](int number) {
      numbers.Put(number, [&, number](const absl::Status& status) {
        told.push_back(std::to_string(number) + (status.ok() ? " ok" : " failed"));
      });
    };
    disk.Hold();
    put(1);
    disk.AwaitBegin(1);
    for (const int number : {2, -3, 4}) put(number);
    disk.LetGo();
  }
  EXPECT_THAT(disk.written_, ElementsAre(1, 2, -3, 4));
  EXPECT_THAT(disk.sizes_, ElementsAre(1u, 3u));
  EXPECT_THAT(told, ElementsAre("1 ok", "2 ok", "-3 failed", "4 ok"));
}

TEST_P(CommitterTest, WhatACommitLeavesIsTheNextOne) {
  Disk disk(/*max_group=*/2);
  std::atomic<int> told = 0;
  {
    Numbers numbers([&](Numbers::Group group) { return disk.Commit(group); }, GetParam());
    disk.Hold();
    numbers.Put(1, [&](const absl::Status&) { ++told; });
    disk.AwaitBegin(1);
    for (int i = 2; i <= 6; ++i) numbers.Put(i, [&](const absl::Status&) { ++told; });
    disk.LetGo();
  }
  EXPECT_EQ(told, 6);
  EXPECT_THAT(disk.sizes_, ElementsAre(1u, 2u, 2u, 1u));
  EXPECT_THAT(disk.written_, ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_P(CommitterTest, TheQueueHasABound) {
  Disk disk;
  {
    Numbers numbers([&](Numbers::Group group) { return disk.Commit(group); }, GetParam(),
                    /*max_waiting=*/2);
    disk.Hold();
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 50; ++i) numbers.Put(i, [](const absl::Status&) {});
      });
    }
    disk.AwaitBegin(1);
    disk.LetGo();
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(disk.written_.size(), 8u * 50u);
  EXPECT_LE(*std::max_element(disk.sizes_.begin(), disk.sizes_.end()), 2u);
}

TEST_P(CommitterTest, EveryWriteOfManyThreadsIsToldOnce) {
  Disk disk(/*max_group=*/7);
  constexpr int kThreads = 8;
  constexpr int kWrites = 400;
  std::atomic<int> told = 0;
  {
    Numbers numbers([&](Numbers::Group group) { return disk.Commit(group); }, GetParam(),
                    /*max_waiting=*/20);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kWrites; ++i) {
          numbers.Put(t * kWrites + i + 1, [&](const absl::Status& status) {
            EXPECT_TRUE(status.ok());
            ++told;
          });
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(told, kThreads * kWrites);
  std::sort(disk.written_.begin(), disk.written_.end());
  ASSERT_EQ(disk.written_.size(), static_cast<size_t>(kThreads * kWrites));
  for (int i = 0; i < kThreads * kWrites; ++i) ASSERT_EQ(disk.written_[i], i + 1);
}

}  // namespace
}  // namespace npuc::jobs
