#include "server/jobs/write_groups.h"

#include <condition_variable>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using ::testing::ElementsAre;
using Groups = WriteGroups<int>;

// Writes numbers; the first write waits until it is let go, so that others gather.
class Disk {
 public:
  explicit Disk(size_t max_group = 1000) : max_group_(max_group) {}

  size_t Commit(Groups::Group group) {
    std::unique_lock<std::mutex> lock(mutex_);
    EXPECT_FALSE(writing_) << "two writes at once";
    EXPECT_FALSE(group.empty());
    writing_ = true;
    ++begun_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !held_; });
    const size_t count = std::min(group.size(), max_group_);
    sizes_.push_back(count);
    for (size_t i = 0; i < count; ++i) {
      written_.push_back(group[i]->payload);
      if (group[i]->payload < 0) group[i]->status = absl::InternalError("negative");
    }
    writing_ = false;
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
  bool writing_ = false;
  bool held_ = false;
  int begun_ = 0;
};

TEST(WriteGroupsTest, WhatComesMeanwhileIsOneWrite) {
  Disk disk;
  Groups groups([&](Groups::Group group) { return disk.Commit(group); });
  disk.Hold();
  std::thread first([&] { EXPECT_TRUE(groups.Put(1).ok()); });
  disk.AwaitBegin(1);
  std::vector<absl::Status> told;
  for (const int number : {2, -3, 4}) {
    groups.PutThen(number, nullptr,
                   [&](absl::Status status) { told.push_back(std::move(status)); });
  }
  EXPECT_TRUE(told.empty());
  disk.LetGo();
  first.join();  // who leads writes for those who do not wait, too
  EXPECT_THAT(disk.written_, ElementsAre(1, 2, -3, 4));
  EXPECT_THAT(disk.sizes_, ElementsAre(1u, 3u));
  ASSERT_EQ(told.size(), 3u);
  EXPECT_TRUE(told[0].ok());
  EXPECT_EQ(told[1].code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(told[2].ok());
}

TEST(WriteGroupsTest, WhoMayNotWaitLeavesEvenTheFirstWriteToAnother) {
  Disk disk;
  Groups groups([&](Groups::Group group) { return disk.Commit(group); }, /*max_left_behind=*/1);
  std::vector<std::function<void()>> tasks;
  const Groups::Later later = [&](std::function<void()> task) { tasks.push_back(std::move(task)); };
  int told = 0;
  groups.PutThen(1, later, [&](absl::Status) { ++told; });
  EXPECT_FALSE(groups.IsWriting());
  groups.PutThen(2, later, [&](absl::Status) { ++told; });  // the queue is full: it waits elsewhere
  EXPECT_TRUE(disk.written_.empty());
  ASSERT_EQ(tasks.size(), 2u);
  // Who waits does not wait for a thread that has not come yet, but writes itself.
  EXPECT_TRUE(groups.Put(3).ok());
  EXPECT_EQ(told, 1);
  for (const auto& task : tasks) task();
  EXPECT_EQ(told, 2);
  EXPECT_THAT(disk.written_, ElementsAre(1, 3, 2));
  EXPECT_FALSE(groups.IsWriting());
}

TEST(WriteGroupsTest, ALeaderWhoseWriteWasLeftOutGoesOn) {
  Disk disk(/*max_group=*/1);
  Groups groups([&](Groups::Group group) { return disk.Commit(group); });
  disk.Hold();
  std::thread first([&] { groups.PutThen(1, nullptr, [](absl::Status) {}); });
  disk.AwaitBegin(1);
  int told = 0;
  for (int i = 2; i <= 5; ++i) groups.PutThen(i, nullptr, [&](absl::Status) { ++told; });
  std::thread last([&] { EXPECT_TRUE(groups.Put(6).ok()); });
  disk.LetGo();
  first.join();
  last.join();
  EXPECT_EQ(told, 4);
  EXPECT_EQ(disk.written_.size(), 6u);
}

TEST(WriteGroupsTest, WhoWouldLeaveTooMuchBehindWaits) {
  Disk disk;
  Groups groups([&](Groups::Group group) { return disk.Commit(group); }, /*max_left_behind=*/2);
  disk.Hold();
  std::thread first([&] { EXPECT_TRUE(groups.Put(1).ok()); });
  disk.AwaitBegin(1);
  groups.PutThen(2, nullptr, [](absl::Status) {});
  bool told = false;
  std::thread third([&] {
    std::thread::id teller;
    groups.PutThen(3, nullptr, [&](absl::Status) {
      teller = std::this_thread::get_id();
      told = true;
    });
    EXPECT_TRUE(told);
    EXPECT_EQ(teller, std::this_thread::get_id());
  });
  while (groups.Unfinished() < 3) std::this_thread::yield();
  disk.LetGo();
  first.join();
  third.join();
  EXPECT_TRUE(told);
}

TEST(WriteGroupsTest, EveryWriteOfManyThreadsIsToldOnce) {
  Disk disk(/*max_group=*/7);
  Groups groups([&](Groups::Group group) { return disk.Commit(group); }, /*max_left_behind=*/20);
  constexpr int kThreads = 8;
  constexpr int kWrites = 400;
  std::atomic<int> told = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kWrites; ++i) {
        const int number = t * kWrites + i + 1;
        if ((t + i) % 3 == 0) {
          EXPECT_TRUE(groups.Put(number).ok());
          ++told;
        } else {
          groups.PutThen(number, nullptr, [&](absl::Status status) {
            EXPECT_TRUE(status.ok());
            ++told;
          });
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  // Who has led has not left before all was written.
  EXPECT_EQ(told, kThreads * kWrites);
  std::sort(disk.written_.begin(), disk.written_.end());
  for (int i = 0; i < kThreads * kWrites; ++i) ASSERT_EQ(disk.written_[i], i + 1);
}

}  // namespace
}  // namespace npuc
