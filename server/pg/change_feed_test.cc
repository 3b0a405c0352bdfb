#include "server/pg/change_feed.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/jobs/transitions.h"
#include "server/pg/pg_job_store.h"
#include "server/pg/pg_test_util.h"

namespace npuc::pg {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ChangeFeedTest : public ::testing::Test {
 protected:
  // A node with a store.
  struct Writer {
    Writer(const ConnectionOptions& options, const std::string& name)
        : sessions(options),
          node(*Node::Join(&sessions, {.name = name, .steady_now = [] { return absl::Now(); }})),
          store(&sessions, node.get(), {.on_change = [this](const std::vector<std::string>&) {
            if (feed != nullptr) feed->Announce();
          }}) {}

    void Submit(const std::string& id) {
      const absl::Status status = store.ApplyAndWait(jobs::CreateJob(
          {.tenant = "acme", .spec = {.inputs = {{.sha256 = std::string(64, 'a')}}}}, id, 1,
          absl::FromUnixSeconds(1)));
      ASSERT_TRUE(status.ok()) << status;
    }

    ChangeFeed* feed = nullptr;
    Sessions sessions;
    std::unique_ptr<Node> node;
    PgJobStore store;
  };

  void SetUp() override {
    NPUC_SKIP_WITHOUT_POSTGRES();
    options_ = TestServer::Get()->NewDatabase();
    a_ = std::make_unique<Writer>(options_, "a");
    b_ = std::make_unique<Writer>(options_, "b");
    feed_ = std::make_unique<ChangeFeed>(&b_->sessions, b_->node.get());
  }
  ChangeFeed::Listener Listener() {
    return {.on_jobs =
                [this](const std::vector<jobs::Job>& jobs) {
                  const MutexLock lock(mutex_);
                  for (const jobs::Job& job : jobs) told_.push_back(job.id);
                  came_.NotifyAll();
                },
            .on_gap = [this] { ++gaps_; }};
  }
  std::vector<std::string> Look() {
    told_.clear();
    const absl::Status status = feed_->Look(Listener());
    EXPECT_TRUE(status.ok()) << status;
    return told_;
  }
  void MustRun(const std::string& sql) {
    const auto session = Connection::Open(options_);
    ASSERT_TRUE((*session)->RunScript(sql, absl::Seconds(10)).ok()) << sql;
  }

  ConnectionOptions options_;
  std::unique_ptr<Writer> a_, b_;
  std::unique_ptr<ChangeFeed> feed_;
  Mutex mutex_;
  CondVar came_;
  std::vector<std::string> told_;
  int gaps_ = 0;
};

TEST_F(ChangeFeedTest, TellsEachWriteOfOthersOnce) {
  a_->Submit("job1");
  ASSERT_TRUE(feed_->Begin().ok());
  EXPECT_THAT(Look(), IsEmpty());
  a_->Submit("job2");
  a_->Submit("job3");
  b_->Submit("job4");
  EXPECT_THAT(Look(), ElementsAre("job2", "job3"));
  EXPECT_THAT(Look(), IsEmpty());
  // More than one look takes.
  std::vector<std::string> ids;
  for (int i = 100; i < 300; ++i) {
    ids.push_back(absl::StrCat("job", i));
    a_->Submit(ids.back());
  }
  EXPECT_EQ(Look(), ids);
  // A node that comes later is heard from its first write on.
  Writer c(options_, "c");
  c.Submit("job5");
  EXPECT_THAT(Look(), ElementsAre("job5"));
  EXPECT_EQ(gaps_, 0);
}

TEST_F(ChangeFeedTest, WhatWasForgottenIsAGap) {
  a_->Submit("job1");
  ASSERT_TRUE(feed_->Begin().ok());
  a_->Submit("job2");
  a_->Submit("job3");
  MustRun("DELETE FROM npuc.change WHERE commit_no = 2");
  EXPECT_THAT(Look(), ElementsAre("job3"));
  EXPECT_EQ(gaps_, 1);
  a_->Submit("job4");
  EXPECT_THAT(Look(), ElementsAre("job4"));
  EXPECT_EQ(gaps_, 1);
}

TEST_F(ChangeFeedTest, AfterAFailedLookTheNextTellsTheSame) {
  ASSERT_TRUE(feed_->Begin().ok());
  a_->Submit("job1");
  MustRun("ALTER TABLE npuc.job RENAME TO away");
  EXPECT_FALSE(feed_->Look(Listener()).ok());
  MustRun("ALTER TABLE npuc.away RENAME TO job");
  EXPECT_THAT(Look(), ElementsAre("job1"));
}

TEST_F(ChangeFeedTest, TheNewestWritesOfALaneAreKept) {
  for (int i = 0; i < 1030; ++i) a_->Submit(absl::StrCat("job", 1000 + i));
  const auto rows = a_->sessions.Read("SELECT min(commit_no), count(*) FROM change", {});
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->Int(0, 0), 1030 - 1024 + 1);
  EXPECT_EQ(rows->Int(0, 1), 1024);
}

// With a poll that comes too late.
TEST_F(ChangeFeedTest, AHintWakesTheOtherNode) {
  ChangeFeed hinting(&a_->sessions, a_->node.get());
  ASSERT_TRUE(hinting.Begin().ok());
  hinting.Start({.on_jobs = [](const std::vector<jobs::Job>&) {}, .on_gap = [] {}});
  a_->feed = &hinting;
  ChangeFeed listening(&b_->sessions, b_->node.get(), {.poll_period = absl::Hours(1)});
  ASSERT_TRUE(listening.Begin().ok());
  listening.Start(Listener());
  const MutexLock lock(mutex_);
  const SteadyTime limit = SteadyTimeAfter(std::chrono::seconds(20));
  int sent = 0;
  // The first ones may come before it listens.
  while (told_.empty() && std::chrono::steady_clock::now() < limit) {
    mutex_.Unlock();
    a_->Submit(absl::StrCat("job", ++sent));
    mutex_.Lock();
    came_.WaitUntil(mutex_, SteadyTimeAfter(std::chrono::milliseconds(200)));
  }
  EXPECT_FALSE(told_.empty());
}

// A node that cannot read changes says so once, and goes on.
TEST_F(ChangeFeedTest, LooksThatFailAreReported) {
  std::atomic<int> failures = 0;
  ChangeFeed polling(&b_->sessions, b_->node.get(),
                     {.has_hints = false, .poll_period = absl::Milliseconds(50)});
  ASSERT_TRUE(polling.Begin().ok());
  ChangeFeed::Listener listener = Listener();
  listener.on_failure = [&failures] { ++failures; };
  polling.Start(std::move(listener));
  MustRun("ALTER TABLE change RENAME TO away");
  while (failures == 0) std::this_thread::yield();
  MustRun("ALTER TABLE away RENAME TO change");
  a_->Submit("job1");
  const MutexLock lock(mutex_);
  while (told_.empty()) came_.Wait(mutex_);
  EXPECT_EQ(failures, 1);
}

TEST_F(ChangeFeedTest, HintsOfOnePeriodShareALook) {
  constexpr std::chrono::milliseconds kPeriod(500);
  constexpr size_t kJobs = 20;
  ChangeFeed listening(&b_->sessions, b_->node.get(), {.hint_period = absl::FromChrono(kPeriod)});
  ASSERT_TRUE(listening.Begin().ok());
  ChangeFeed::Listener listener = Listener();
  std::atomic<int> looks = 0;
  listener.on_jobs = [&looks, tell = listener.on_jobs](const std::vector<jobs::Job>& jobs) {
    ++looks;
    tell(jobs);
  };
  const auto begin = std::chrono::steady_clock::now();
  listening.Start(listener);
  for (size_t i = 0; i < kJobs; ++i) {
    a_->Submit(absl::StrCat("job", i));
    MustRun("NOTIFY npuc, 'a'");
  }
  {
    const MutexLock lock(mutex_);
    while (told_.size() < kJobs) came_.Wait(mutex_);
  }
  const auto periods = (std::chrono::steady_clock::now() - begin) / kPeriod;
  EXPECT_LE(looks, periods + 1);
}

// As behind a pooler, where no session may listen.
TEST_F(ChangeFeedTest, WithoutHintsAPollFindsWrites) {
  ChangeFeed polling(&b_->sessions, b_->node.get(),
                     {.has_hints = false, .poll_period = absl::Milliseconds(10)});
  ASSERT_TRUE(polling.Begin().ok());
  polling.Start(Listener());
  b_->feed = &polling;
  b_->Submit("job0");  // announces nothing
  a_->Submit("job1");
  {
    const MutexLock lock(mutex_);
    while (told_.empty()) came_.Wait(mutex_);
    EXPECT_THAT(told_, ElementsAre("job1"));
  }
  const auto listeners = b_->sessions.Read(
      "SELECT count(*) FROM pg_stat_activity WHERE (query LIKE 'LISTEN%' OR query LIKE "
      "'%pg_notify(%') AND datname = current_database() AND pid <> pg_backend_pid()",
      {});
  EXPECT_EQ(listeners->Int(0, 0), 0);
}

}  // namespace
}  // namespace npuc::pg
