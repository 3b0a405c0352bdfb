#include "server/jobs/job_service.h"

#include <atomic>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/jobs/local_board.h"
#include "server/jobs/memory_job_store.h"
#include "server/jobs/service_error.h"

namespace npuc::jobs {
namespace {

using ::testing::HasSubstr;

// A queue with no more than the interface asks: the policies are the scheduler's.
class TestQueue : public JobQueue {
 public:
  explicit TestQueue(int64_t max_jobs) : max_jobs_(max_jobs) {}

  absl::Status Reserve(absl::string_view) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (static_cast<int64_t>(jobs_.size()) + reserved_ >= max_jobs_) {
      return ServiceError(absl::StatusCode::kResourceExhausted, "full", {.reason = "QUEUE_FULL"});
    }
    ++reserved_;
    return absl::OkStatus();
  }
  void Release(absl::string_view) override {
    std::lock_guard<std::mutex> lock(mutex_);
    --reserved_;
  }
  void Push(QueuedJob job, bool reserved) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (reserved) --reserved_;
    parked_.erase(job.id);
    const Place place{-job.priority, job.accept_order};
    jobs_.insert({place, std::move(job)});
  }
  std::optional<QueuedJob> Pop() override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (jobs_.empty()) return std::nullopt;
    QueuedJob job = jobs_.begin()->second;
    jobs_.erase(jobs_.begin());
    return job;
  }
  bool Take(absl::string_view id) override { return Remove(id); }
  void Done(absl::string_view, absl::Duration) override {}
  bool Park(absl::string_view id) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (Erase(id) == 0) return false;
    parked_.insert(std::string(id));
    return true;
  }
  bool Remove(absl::string_view id) override {
    std::lock_guard<std::mutex> lock(mutex_);
    return Erase(id) + parked_.erase(std::string(id)) > 0;
  }
  std::optional<QueueView> Look(absl::string_view id) const override {
    std::lock_guard<std::mutex> lock(mutex_);
    QueueView view;
    for (const auto& [place, job] : jobs_) {
      if (job.id == id) return view;
      ++view.position;
    }
    return std::nullopt;
  }
  int64_t size() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return static_cast<int64_t>(jobs_.size() + parked_.size());
  }
  bool HasReady() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return !jobs_.empty();
  }

 private:
  using Place = std::pair<int32_t, uint64_t>;
  size_t Erase(absl::string_view id) {
    return std::erase_if(jobs_, [&](const auto& job) { return job.second.id == id; });
  }

  const int64_t max_jobs_;
  mutable std::mutex mutex_;
  int64_t reserved_ = 0;             // guarded by mutex_
  std::map<Place, QueuedJob> jobs_;  // guarded by mutex_
  std::set<std::string> parked_;     // guarded by mutex_
};

class JobServiceTest : public ::testing::Test {
 protected:
  JobServiceTest() { Restart(/*max_jobs=*/100); }

  // A new daemon on the same store.
  void Restart(int64_t max_jobs) {
    service_.reset();
    queue_ = std::make_unique<TestQueue>(max_jobs);
    board_ = std::make_unique<LocalBoard>(queue_.get(), absl::Minutes(5));
    service_ = std::make_unique<JobService>(
        JobServiceOptions{.now = [this] { return absl::FromUnixSeconds(now_seconds_); },
                          .random = [this] { return ++random_; },
                          .retry = {}},
        &store_, board_.get());
    service_->SetEndListener([this](const Job& job) {
      std::lock_guard<std::mutex> lock(ended_mutex_);
      ended_.insert(job.id);
    });
    ASSERT_TRUE(service_->Recover(nullptr).ok());
  }

  static NewJob Request(std::string request_id = "", int32_t priority = 0) {
    NewJob request;
    request.request_sha256 = "sha-of-" + request_id;
    request.request_id = std::move(request_id);
    request.config_text = "CORENAME: GRUS";
    request.spec.inputs = {{.role = "MODEL_FILE", .name = "m.pb", .sha256 = "s", .md5 = "m"}};
    request.spec.timeout = absl::Minutes(10);
    request.spec.priority = priority;
    return request;
  }

  std::string Submit(int32_t priority = 0) {
    const auto submitted = service_->SubmitAndWait(Request("", priority));
    EXPECT_TRUE(submitted.ok()) << submitted.status();
    return submitted->job->id;
  }

  // The events of a job as text, checking that their numbers have no gap.
  std::string Story(const std::string& id) {
    std::string story;
    int64_t due = 1;
    const auto events = service_->ReadEvents(id, 1, 1000, 1 << 20);
    for (const JobEvent& event : *events) {
      EXPECT_EQ(event.seq, due++);
      if (const auto* state = std::get_if<StateChangedEvent>(&event.body)) {
        absl::StrAppend(&story, JobStateName(state->state), " ");
      } else if (const auto* log = std::get_if<LogEvent>(&event.body)) {
        absl::StrAppend(&story, log->text, " ");
      }
    }
    return story;
  }

  std::atomic<int64_t> now_seconds_ = 1'700'000'000;
  uint64_t random_ = 0;
  MemoryJobStore store_;
  std::unique_ptr<JobQueue> queue_;
  std::unique_ptr<LocalBoard> board_;
  std::unique_ptr<JobService> service_;
  std::mutex ended_mutex_;
  std::set<std::string> ended_;  // guarded by ended_mutex_
};

// Keeps new jobs until it is told to write.
class LaterStore : public MemoryJobStore {
 public:
  void Apply(std::shared_ptr<const JobChange> change, Done done) override {
    if (change->job.revision > 1) return MemoryJobStore::Apply(std::move(change), std::move(done));
    std::lock_guard<std::mutex> lock(mutex_);
    kept_.emplace_back(std::move(change), std::move(done));
  }
  void Write() {
    decltype(kept_) kept;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      kept.swap(kept_);
    }
    for (auto& [change, done] : kept) done(ApplyNow(*change));
  }
  absl::StatusOr<std::optional<std::string>> FindRequest(
      absl::string_view tenant, absl::string_view request_id) const override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      finders_.push_back(std::this_thread::get_id());
    }
    std::lock_guard<std::mutex> lock(may_find);
    return MemoryJobStore::FindRequest(tenant, request_id);
  }
  // FindRequest waits for it.
  mutable std::mutex may_find;
  // The threads that called FindRequest.
  std::vector<std::thread::id> finders() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return finders_;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::vector<std::thread::id> finders_;                         // guarded by mutex_
  std::vector<std::pair<std::shared_ptr<const JobChange>, Done>> kept_;  // guarded by mutex_
};

class SubmitTest : public JobServiceTest {
 protected:
  SubmitTest() {
    service_ = std::make_unique<JobService>(
        JobServiceOptions{.now = [this] { return absl::FromUnixSeconds(now_seconds_); },
                          .random = [this] { return ++random_; },
                          .retry = {}},
        &later_store_, board_.get());
    EXPECT_TRUE(service_->Recover(nullptr).ok());
  }

  void Begin(NewJob request) {
    service_->Submit(std::move(request), [this](absl::StatusOr<JobService::Submitted> submitted) {
      const MutexLock lock(answers_mutex_);
      answers_.push_back(std::move(submitted));
      answered_.NotifyAll();
    });
  }
  // All answers once there are so many. Those of repeats come from another thread.
  std::vector<absl::StatusOr<JobService::Submitted>> Answers(size_t count) {
    const MutexLock lock(answers_mutex_);
    while (answers_.size() < count) answered_.Wait(answers_mutex_);
    return answers_;
  }

  // Behind the service are the members that its thread uses.
  ~SubmitTest() override { service_.reset(); }

  LaterStore later_store_;
  Mutex answers_mutex_;
  CondVar answered_;
  std::vector<absl::StatusOr<JobService::Submitted>> answers_;
};

TEST_F(SubmitTest, NobodySeesTheJobBeforeItIsStored) {
  Begin(Request("r1"));
  EXPECT_TRUE(Answers(0).empty());
  EXPECT_EQ(service_->GetCounts().queued, 0);
  EXPECT_FALSE((*service_->TryLease()).has_value());
  std::thread writer([this] { later_store_.Write(); });  // another thread than the submitter's
  writer.join();
  const auto answers = Answers(1);
  ASSERT_EQ(answers.size(), 1u);
  ASSERT_TRUE(answers[0].ok()) << answers[0].status();
  EXPECT_FALSE(answers[0]->already_existed);
  const std::string id = answers[0]->job->id;
  EXPECT_EQ((*service_->Get(id))->state, JobState::kQueued);
  EXPECT_EQ((*service_->TryLease())->job->id, id);
}

TEST_F(SubmitTest, ARepeatMeanwhileGetsTheSameJob) {
  Begin(Request("r1"));
  Begin(Request("r1"));
  NewJob other = Request("r1");
  other.request_sha256 = "another request";
  Begin(std::move(other));
  later_store_.Write();
  const auto answers = Answers(3);
  ASSERT_TRUE(answers[1].ok()) << answers[1].status();
  EXPECT_TRUE(answers[1]->already_existed);
  EXPECT_EQ(answers[1]->job->id, answers[0]->job->id);
  EXPECT_EQ(answers[2].status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(service_->GetCounts().queued, 1);
}

TEST_F(SubmitTest, AFailedWriteGivesThePlaceBack) {
  Begin(Request("r1"));
  later_store_.FailNextApplies(1);
  later_store_.Write();
  EXPECT_EQ(Answers(1)[0].status().code(), absl::StatusCode::kInternal);
  for (int i = 0; i < 100; ++i) Begin(Request(absl::StrCat("again-", i)));
  later_store_.Write();
  EXPECT_TRUE(Answers(101).back().ok()) << Answers(101).back().status();
  // The queue's bound holds, and a repeat is answered though there is no room.
  Begin(Request("too-many"));
  Begin(Request("again-7"));
  const auto answers = Answers(103);
  EXPECT_EQ(answers[101].status().code(), absl::StatusCode::kResourceExhausted);
  ASSERT_TRUE(answers[102].ok());
  EXPECT_TRUE(answers[102]->already_existed);
}

// A look at a shared store for each new request took more processor time than the request's write.
TEST_F(SubmitTest, ANewRequestIsNotLookedFor) {
  Begin(Request("r1"));
  later_store_.Write();
  EXPECT_TRUE(Answers(1)[0].ok());
  EXPECT_TRUE(later_store_.finders().empty());
}

TEST_F(SubmitTest, TheStoresThreadLooksForNoRepeat) {
  Begin(Request("r1"));
  Begin(Request("r1"));
  later_store_.Write();  // this thread is the store's
  EXPECT_TRUE(Answers(2)[1].ok());
  ASSERT_EQ(later_store_.finders().size(), 1u);
  EXPECT_NE(later_store_.finders()[0], std::this_thread::get_id());
}

TEST_F(SubmitTest, OneRepeatMoreThanMayWaitIsSentAway) {
  constexpr size_t kRepeats = kMaxRepeats + 2;  // one has left the queue, perhaps
  Begin(Request("r1"));
  later_store_.Write();
  {
    std::lock_guard<std::mutex> lock(later_store_.may_find);
    for (size_t i = 0; i < kRepeats; ++i) {
      Begin(Request("r1"));
      later_store_.Write();
    }
  }
  size_t refused = 0;
  for (const auto& answer : Answers(1 + kRepeats)) {
    if (answer.ok()) continue;
    ++refused;
    EXPECT_EQ(answer.status().code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(ErrorDetailsOf(answer.status())->reason, "STORE_FAILED");
  }
  EXPECT_GE(refused, 1u);
  EXPECT_LE(refused, 2u);
}

TEST_F(SubmitTest, WhoKnowsTheIdWaitsForTheWrite) {
  Begin(Request("r1"));
  // The first random numbers are known, and so is the id.
  const std::string id = MakeJobId(absl::FromUnixSeconds(now_seconds_), random_ - 1, random_);
  std::thread canceller([&] {
    const auto cancelled = service_->Cancel(id, "soon");
    EXPECT_TRUE(cancelled.ok()) << cancelled.status();
  });
  later_store_.Write();
  canceller.join();
  EXPECT_EQ((*service_->Get(id))->state, JobState::kCancelled);
}

TEST_F(JobServiceTest, AJobFromSubmitToSuccess) {
  const std::string id = Submit();
  EXPECT_EQ(*service_->Position(id), 0);
  const auto leased = *service_->TryLease();
  ASSERT_TRUE(leased.has_value());
  EXPECT_EQ(leased->job->id, id);
  EXPECT_EQ(service_->GetCounts().running, 1);
  EXPECT_FALSE(service_->Position(id).has_value());
  EXPECT_TRUE(service_->IsCurrent(leased->lease));
  ASSERT_TRUE(service_->Append(leased->lease, {LogEvent{"hello"}}).ok());
  ASSERT_TRUE(service_->Finish(leased->lease, {LogEvent{"bye"}}, {.succeeded = true}).ok());
  EXPECT_FALSE(service_->IsCurrent(leased->lease));
  EXPECT_EQ((*service_->Get(id))->state, JobState::kSucceeded);
  EXPECT_EQ(Story(id), "QUEUED RUNNING hello bye SUCCEEDED ");
  EXPECT_EQ(service_->GetCounts().running, 0);
  EXPECT_TRUE(ended_.contains(id));
}

TEST_F(JobServiceTest, RequestIdsAreIdempotent) {
  const auto first = *service_->SubmitAndWait(Request("r1"));
  EXPECT_FALSE(first.already_existed);
  const auto second = *service_->SubmitAndWait(Request("r1"));
  EXPECT_TRUE(second.already_existed);
  EXPECT_EQ(second.job->id, first.job->id);
  Restart(100);
  EXPECT_EQ((*service_->SubmitAndWait(Request("r1"))).job->id, first.job->id);
  NewJob other = Request("r1");
  other.request_sha256 = "different";
  const auto reused = service_->SubmitAndWait(std::move(other));
  EXPECT_EQ(reused.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ErrorDetailsOf(reused.status())->metadata.at("job_id"), first.job->id);
  EXPECT_EQ(service_->GetCounts().queued, 1);
}

TEST_F(JobServiceTest, ConcurrentSendsOfOneRequestIdMakeOneJob) {
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::set<std::string> ids;
  std::atomic<int> created = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 50; ++j) {
        const auto submitted = service_->SubmitAndWait(Request("same"));
        ASSERT_TRUE(submitted.ok()) << submitted.status();
        if (!submitted->already_existed) ++created;
        std::lock_guard<std::mutex> lock(mutex);
        ids.insert(submitted->job->id);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ids.size(), 1u);
  EXPECT_EQ(created, 1);
  EXPECT_EQ(service_->GetCounts().queued, 1);
}

TEST_F(JobServiceTest, QueueFullLeavesNothingBehind) {
  Restart(/*max_jobs=*/1);
  const std::string id = Submit();
  const auto refused = service_->SubmitAndWait(Request("r2"));
  EXPECT_EQ(ErrorDetailsOf(refused.status())->reason, "QUEUE_FULL");
  EXPECT_EQ(*store_.FindRequest("", "r2"), std::nullopt);
  ASSERT_TRUE(service_->Cancel(id, "").ok());
  EXPECT_TRUE(service_->SubmitAndWait(Request("r2")).ok());
}

TEST_F(JobServiceTest, AFailedWriteAcceptsNothing) {
  Restart(/*max_jobs=*/1);
  store_.FailNextApplies(1);
  EXPECT_FALSE(service_->SubmitAndWait(Request("r1")).ok());
  EXPECT_FALSE((*service_->TryLease()).has_value());
  EXPECT_TRUE(service_->SubmitAndWait(Request("r1")).ok());  // its place was given back
  store_.FailNextApplies(1);
  EXPECT_FALSE(service_->TryLease().ok());
  const auto leased = *service_->TryLease();
  ASSERT_TRUE(leased.has_value());
  store_.FailNextApplies(1);
  EXPECT_FALSE(service_->Finish(leased->lease, {}, {.succeeded = true}).ok());
  EXPECT_TRUE(service_->IsCurrent(leased->lease));
  EXPECT_TRUE(service_->Finish(leased->lease, {}, {.succeeded = true}).ok());
}

TEST_F(JobServiceTest, AClaimedJobWaitsForAllToSeeUntilItsLeaseIsStored) {
  const std::string id = Submit();
  auto claim = *service_->TryClaim();
  ASSERT_TRUE(claim.has_value());
  EXPECT_EQ(claim->job()->id, id);
  EXPECT_EQ((*service_->Get(id))->state, JobState::kQueued);
  EXPECT_EQ(service_->Wait(id)->reason, JobWait::Reason::kNextInLine);
  EXPECT_FALSE((*service_->TryLease()).has_value());
  EXPECT_TRUE(absl::IsAborted(service_->Append(claim->expected(), {LogEvent{"early"}})));
  const auto leased = *claim->Lease();
  ASSERT_TRUE(leased.has_value());
  EXPECT_EQ(leased->lease, claim->expected());
  EXPECT_EQ((*service_->Get(id))->state, JobState::kRunning);
  EXPECT_TRUE(service_->Finish(leased->lease, {}, {.succeeded = true}).ok());
}

TEST_F(JobServiceTest, AClaimThatIsDroppedPutsTheJobBackInItsPlace) {
  const std::string first = Submit();
  const std::string second = Submit();
  { const auto claim = *service_->TryClaim(); }
  EXPECT_EQ((*service_->Get(first))->attempts, 0);
  EXPECT_EQ((*service_->TryLease())->job->id, first);
  EXPECT_EQ((*service_->TryLease())->job->id, second);
}

TEST_F(JobServiceTest, AClaimedJobMayBeCancelledAndThenHasNoLease) {
  const std::string id = Submit();
  auto claim = *service_->TryClaim();
  EXPECT_EQ((*service_->Cancel(id, "why"))->state, JobState::kCancelled);
  const auto leased = claim->Lease();
  ASSERT_TRUE(leased.ok());
  EXPECT_FALSE(leased->has_value());
  EXPECT_EQ((*service_->Get(id))->attempts, 0);
  EXPECT_EQ(service_->GetCounts().running, 0);
}

TEST_F(JobServiceTest, ALeaseThatCannotBeStoredPutsTheClaimedJobBack) {
  const std::string id = Submit();
  auto claim = *service_->TryClaim();
  store_.FailNextApplies(1);
  EXPECT_FALSE(claim->Lease().ok());
  EXPECT_EQ((*service_->TryLease())->job->id, id);
}

TEST_F(JobServiceTest, RestartPutsRunningJobsBackInTheirOldPlace) {
  const std::string first = Submit();
  const std::string second = Submit();
  const std::string urgent = Submit(/*priority=*/5);
  ASSERT_EQ((*service_->TryLease())->job->id, urgent);
  const auto stale = (*service_->TryLease())->lease;
  ASSERT_EQ(stale.job_id, first);
  ASSERT_TRUE(service_->Append(stale, {LogEvent{"half"}}).ok());
  Restart(100);
  EXPECT_TRUE(absl::IsAborted(service_->Finish(stale, {}, {.succeeded = true})));
  EXPECT_EQ(*service_->Position(urgent), 0);
  EXPECT_EQ(*service_->Position(first), 1);
  EXPECT_EQ(*service_->Position(second), 2);
  const std::string newest = Submit();
  EXPECT_EQ(*service_->Position(newest), 3);
  EXPECT_GT(newest, second);
  (void)service_->TryLease();
  const auto again = *service_->TryLease();
  ASSERT_EQ(again->job->id, first);
  ASSERT_TRUE(service_->Finish(again->lease, {}, {.succeeded = true}).ok());
  EXPECT_EQ(Story(first), "QUEUED RUNNING half QUEUED RUNNING SUCCEEDED ");
  EXPECT_EQ((*service_->Get(first))->attempts, 2);
}

TEST_F(JobServiceTest, CancelOfWaitingRunningAndEndedJobs) {
  const std::string waiting = Submit();
  EXPECT_EQ((*service_->Cancel(waiting, "why"))->state, JobState::kCancelled);
  EXPECT_FALSE((*service_->TryLease()).has_value());
  const std::string running = Submit();
  const auto leased = *service_->TryLease();
  EXPECT_EQ((*service_->Cancel(running, ""))->state, JobState::kCancelled);
  EXPECT_TRUE(ended_.contains(running));
  EXPECT_TRUE(absl::IsAborted(service_->Finish(leased->lease, {}, {.succeeded = true})));
  EXPECT_EQ((*service_->Cancel(running, "again"))->state, JobState::kCancelled);
  EXPECT_EQ(Story(running), "QUEUED RUNNING CANCELLED ");
  EXPECT_TRUE(absl::IsNotFound(service_->Cancel("j-unknown", "").status()));
}

// The wall clock is put right, by a day in either direction: what counts is the time that passed.
TEST_F(JobServiceTest, AJumpOfTheWallClockEndsNoJobAndKeepsNone) {
  absl::Time steady = absl::FromUnixSeconds(5);
  for (const int64_t jump : {86400, -86400}) {
    MemoryJobStore store;
    TestQueue queue(1);
    LocalBoard board(&queue, absl::Minutes(5));
    JobService service({.now = [this] { return absl::FromUnixSeconds(now_seconds_); },
                        .steady_now = [&] { return steady; },
                        .random = [this] { return ++random_; },
                        .retry = {}},
                       &store, &board);
    ASSERT_TRUE(service.Recover(nullptr).ok());
    const std::string id = service.SubmitAndWait(Request())->job->id;
    now_seconds_ += jump;
    steady += absl::Minutes(10) - absl::Seconds(1);
    ASSERT_TRUE(service.ExpireDue().ok());
    EXPECT_EQ((*service.Get(id))->state, JobState::kQueued);
    steady += absl::Seconds(1);
    ASSERT_TRUE(service.ExpireDue().ok());
    EXPECT_EQ((*service.Get(id))->state, JobState::kExpired);
  }
}

TEST_F(JobServiceTest, DeadlinesExpireJobs) {
  const std::string waiting = Submit();
  const std::string running = Submit(/*priority=*/1);
  const auto leased = *service_->TryLease();
  ASSERT_EQ(leased->job->id, running);
  now_seconds_ += 599;
  ASSERT_TRUE(service_->ExpireDue().ok());
  EXPECT_EQ((*service_->Get(waiting))->state, JobState::kQueued);
  now_seconds_ += 1;
  ASSERT_TRUE(service_->ExpireDue().ok());
  EXPECT_EQ((*service_->Get(waiting))->expired_in, JobState::kQueued);
  EXPECT_EQ((*service_->Get(running))->expired_in, JobState::kRunning);
  EXPECT_FALSE(service_->IsCurrent(leased->lease));
  EXPECT_FALSE((*service_->TryLease()).has_value());
}

TEST_F(JobServiceTest, ALostWorkerIsRetriedThenFails) {
  const std::string id = Submit();
  for (int i = 0; i < 3; ++i) {
    const auto leased = *service_->TryLease();
    ASSERT_TRUE(leased.has_value()) << i;
    ASSERT_TRUE(service_->Lose(leased->lease, LossKind::kWorker, "killed", {}).ok());
  }
  EXPECT_FALSE((*service_->TryLease()).has_value());
  const auto job = *service_->Get(id);
  EXPECT_EQ(job->failure_kind, FailureKind::kWorkerDied);
  EXPECT_THAT(job->reason, HasSubstr("killed"));
}

TEST_F(JobServiceTest, WatchersAreToldUntilTheyUnsubscribe) {
  const std::string id = Submit();
  int told = 0;
  ChangeHub::Subscription subscription = service_->hub().Subscribe(id, [&] { ++told; });
  const auto leased = *service_->TryLease();
  EXPECT_EQ(told, 1);
  ASSERT_TRUE(service_->Append(leased->lease, {LogEvent{"x"}}).ok());
  EXPECT_EQ(told, 2);
  subscription.Reset();
  EXPECT_EQ(service_->hub().subscription_count(), 0u);
  ASSERT_TRUE(service_->Finish(leased->lease, {}, {.succeeded = true}).ok());
  EXPECT_EQ(told, 2);
}

TEST_F(JobServiceTest, CachedJobsNeverWait) {
  NewJob request = Request("r");
  request.cached = NewJob::Cached{.artifacts = {{"model.h", 3, "x"}}};
  const auto submitted = *service_->SubmitAndWait(std::move(request));
  EXPECT_EQ(submitted.job->state, JobState::kSucceeded);
  EXPECT_EQ(service_->GetCounts().queued, 0);
  EXPECT_EQ((*service_->Cancel(submitted.job->id, ""))->state, JobState::kSucceeded);
  EXPECT_EQ(Story(submitted.job->id), "QUEUED SUCCEEDED ");
}

// Many threads submit, lease, lose, finish, cancel and expire at once: each job ends exactly once.
TEST_F(JobServiceTest, EveryAcceptedJobEndsOnceUnderConcurrency) {
  Restart(/*max_jobs=*/100000);
  constexpr int kJobs = 200;
  std::mutex mutex;
  std::vector<std::string> ids;
  std::vector<std::thread> submitters;
  std::vector<std::thread> runners;
  for (int t = 0; t < 2; ++t) {
    submitters.emplace_back([&] {
      for (int i = 0; i < kJobs; ++i) {
        const std::string id = Submit(i % 3);
        std::lock_guard<std::mutex> lock(mutex);
        ids.push_back(id);
      }
    });
  }
  for (int t = 0; t < 3; ++t) {
    runners.emplace_back([&, t] {
      int turn = t;
      while (true) {
        auto claim = service_->WaitAndClaim();
        ASSERT_TRUE(claim.ok());
        if (!claim->has_value()) return;
        const auto leased = (*claim)->Lease();
        ASSERT_TRUE(leased.ok());
        if (!leased->has_value()) continue;
        const Lease& lease = (*leased)->lease;
        (void)service_->Append(lease, {LogEvent{"x"}});
        if (++turn % 5 == 0) {
          (void)service_->Lose(lease, LossKind::kWorker, "test", {});
        } else if (turn % 7 == 0) {
          (void)service_->Cancel(lease.job_id, "");
          EXPECT_TRUE(absl::IsAborted(service_->Finish(lease, {}, {.succeeded = true})));
        } else {
          (void)service_->Finish(lease, {}, {.succeeded = true});
        }
      }
    });
  }
  for (std::thread& thread : submitters) thread.join();
  while (true) {
    std::this_thread::yield();
    std::lock_guard<std::mutex> lock(ended_mutex_);
    if (ended_.size() == ids.size()) break;
  }
  service_->StopLeasing();
  for (std::thread& thread : runners) thread.join();
  for (const std::string& id : ids) {
    int ends = 0;
    const auto events = service_->ReadEvents(id, 1, 1000, 1 << 20);
    for (const JobEvent& event : *events) {
      const auto* state = std::get_if<StateChangedEvent>(&event.body);
      if (state != nullptr && IsTerminal(state->state)) ++ends;
    }
    EXPECT_EQ(ends, 1) << id;
  }
  EXPECT_EQ(service_->GetCounts().running, 0);
  EXPECT_EQ(service_->GetCounts().queued, 0);
}

}  // namespace
}  // namespace npuc::jobs
