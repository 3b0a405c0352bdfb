#include "server/executor/job_runner.h"

#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <future>
#include <mutex>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/executor/dispatcher.h"
#include "server/executor/executor_test_util.h"
#include "server/jobs/local_board.h"
#include "server/jobs/memory_job_store.h"
#include "server/scheduler/fair_queue.h"

namespace npuc::executor {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class JobRunnerTest : public ::testing::Test {
 protected:
  JobRunnerTest()
      : log_(nullptr, [] { return absl::Now(); }), queue_(scheduler::MakeFairQueue(1000)) {
    std::string pattern = ::testing::TempDir() + "/job_runner_XXXXXX";
    work_dir_ = mkdtemp(pattern.data());
    const auto now = [this] { return absl::FromUnixSeconds(now_seconds_); };
    jobs_ = std::make_unique<jobs::JobService>(
        jobs::JobServiceOptions{.now = now, .random = [this] { return ++random_; }, .retry = {}},
        &store_, &board_);
    runner_ = std::make_unique<JobRunner>(
        JobRunnerOptions{.parse_config = FakeParseConfig,
                         .compiler_build_id = "build-1",
                         .work_dir = work_dir_,
                         .limits = {},
                         .now = now,
                         .event_linger = absl::ZeroDuration(),
                         .retry_delay = absl::ZeroDuration(),
                         .pause = [this](absl::string_view point) { Note(point); },
                         .check_artifact = CheckFake},
        jobs_.get(), &inputs_, &cache_, &workers_, &log_);
    submission_ = std::make_unique<Submission>(
        SubmissionOptions{.parse_config = FakeParseConfig, .compiler_build_id = "build-1"},
        jobs_.get(), &inputs_, &cache_, &holds_);
    jobs_->SetEndListener([this](const jobs::Job& job) { holds_.Remove(job.id); });
    jobs_->SetAbandonListener([this](const jobs::Lease& lease) { runner_->Abandon(lease); });
    EXPECT_TRUE(jobs_->Recover(nullptr).ok());
    workers_.Set([](const worker::WorkerJob& job, worker::WorkerEvents& events) {
      events.OnStage("lower", 0.5);
      events.OnLog("compiling");
      return SucceedWith({{"model.h", "header"}, {"report.json", "{}"}});
    });
  }
  ~JobRunnerTest() override { std::filesystem::remove_all(work_dir_); }

  std::string Submit(const std::string& config = "config", bool no_cache = false) {
    SubmitRequest request;
    request.tenant = "default";
    request.config_text = config;
    request.config_name = "config.yaml";
    request.model = inputs_.PutFile("model bytes");
    request.no_cache = no_cache;
    const auto submitted = submission_->SubmitAndWait(request);
    EXPECT_TRUE(submitted.ok()) << submitted.status();
    return submitted->job->id;
  }

  static absl::Status CheckFake(absl::string_view name, absl::string_view output_file,
                                absl::string_view bytes) {
    if (bytes != "spoilt") return absl::OkStatus();
    return absl::InternalError(absl::StrCat(name, " of ", output_file, " is spoilt"));
  }

  // Runs what waits, one after the other.
  void RunAll() {
    while (true) {
      auto claim = jobs_->TryClaim();
      ASSERT_TRUE(claim.ok());
      if (!claim->has_value()) return;
      runner_->Run(**std::move(claim));
    }
  }

  jobs::Job JobOf(const std::string& id) { return **jobs_->Get(id); }

  std::string Story(const std::string& id) {
    std::string story;
    const auto events = jobs_->ReadEvents(id, 1, 1000, 1 << 20);
    for (const jobs::JobEvent& event : *events) {
      if (const auto* state = std::get_if<jobs::StateChangedEvent>(&event.body)) {
        absl::StrAppend(&story, jobs::JobStateName(state->state), " ");
      } else if (const auto* log = std::get_if<jobs::LogEvent>(&event.body)) {
        absl::StrAppend(&story, "log:", log->text, " ");
      } else if (const auto* stage = std::get_if<jobs::ProgressEvent>(&event.body)) {
        absl::StrAppend(&story, "stage:", stage->stage, " ");
      } else if (const auto* artifact = std::get_if<jobs::ArtifactEvent>(&event.body)) {
        absl::StrAppend(&story, artifact->artifact.name, " ");
      } else {
        absl::StrAppend(&story, "diagnostic ");
      }
    }
    return story;
  }

  void Note(absl::string_view step) {
    {
      std::lock_guard<std::mutex> lock(steps_mutex_);
      steps_.emplace_back(step);
    }
    if (on_step_) on_step_(step);
  }

  std::mutex steps_mutex_;
  std::vector<std::string> steps_;  // where runners could pause; guarded by steps_mutex_
  std::function<void(absl::string_view step)> on_step_;  // set before anything runs
  std::atomic<int64_t> now_seconds_ = 1'700'000'000;
  uint64_t random_ = 0;
  std::string work_dir_;
  const log::Logger log_;
  jobs::MemoryJobStore store_;
  std::unique_ptr<jobs::JobQueue> queue_;
  jobs::LocalBoard board_{queue_.get(), absl::Minutes(5)};
  FakeInputs inputs_;
  FakeCache cache_;
  FakeWorkers workers_;
  InputHolds holds_;
  std::unique_ptr<jobs::JobService> jobs_;
  std::unique_ptr<JobRunner> runner_;
  std::unique_ptr<Submission> submission_;
};

TEST_F(JobRunnerTest, ALostRunAndTheNextOneAreSpans) {
  FakeTracer tracer;
  JobRunner runner({.parse_config = FakeParseConfig,
                    .compiler_build_id = "build-1",
                    .work_dir = work_dir_,
                    .limits = {},
                    .now = [this] { return absl::FromUnixSeconds(now_seconds_); },
                    .event_linger = absl::ZeroDuration(),
                    .retry_delay = absl::ZeroDuration(),
                    .tracer = &tracer},
                   jobs_.get(), &inputs_, &cache_, &workers_, &log_);
  SubmitRequest request;
  request.tenant = "default";
  request.config_text = "config";
  request.config_name = "config.yaml";
  request.model = inputs_.PutFile("model bytes");
  request.trace = {
      .trace_id = std::string(32, 'a'), .span_id = std::string(16, 'b'), .sampled = true};
  ASSERT_TRUE(submission_->SubmitAndWait(request).ok());
  workers_.Set([](const worker::WorkerJob& job, worker::WorkerEvents& events) {
    events.OnStage("import", 0.1);
    worker::WorkerOutcome outcome;
    outcome.kind = worker::WorkerOutcome::Kind::kLost;
    outcome.text = "killed from outside";
    return outcome;
  });
  now_seconds_ += 10;
  const auto run = [&] {
    auto claim = jobs_->TryClaim();
    ASSERT_TRUE(claim.ok() && claim->has_value());
    runner.Run(**std::move(claim));
  };
  run();
  workers_.Set([](const worker::WorkerJob& job, worker::WorkerEvents& events) {
    events.OnStage("lower", 0.5);
    return SucceedWith({{"model.h", "header"}, {"report.json", "{}"}});
  });
  now_seconds_ += 10;
  run();
  const std::vector<std::string> tree = tracer.Tree();
  const auto count = [&](absl::string_view pair) {
    return std::count(tree.begin(), tree.end(), pair);
  };
  EXPECT_EQ(count("? > run"), 2);
  EXPECT_EQ(count("? > queue"), 2);
  EXPECT_EQ(count("run > worker"), 2);
  EXPECT_EQ(count("worker > stage import"), 1);
  EXPECT_EQ(count("worker > stage lower"), 1);
  EXPECT_EQ(count("run > store"), 1);
  std::vector<observe::Span> queues;
  for (const observe::Span& span : tracer.spans()) {
    if (span.name == "queue") queues.push_back(span);
  }
  // The second wait began as the job was put back, by the clock of jobs.
  EXPECT_EQ(queues[1].start - queues[0].start, absl::Seconds(10));
  EXPECT_TRUE(tracer.Named("run").is_error);
  EXPECT_EQ(tracer.Named("run").error, "killed from outside");
}

TEST_F(JobRunnerTest, AMissRunsAWorkerAndStoresWhatItMade) {
  std::string run_id;
  workers_.Set([&](const worker::WorkerJob& job, worker::WorkerEvents& events) {
    run_id = job.run_id;
    EXPECT_EQ(job.config_text, "config");
    EXPECT_EQ(job.inputs.at(0).file.name, "model.pb");
    EXPECT_EQ(job.timestamp_seconds, 1'700'000'000);
    std::filesystem::create_directory(job.job_folder);  // as on a host without memory folders
    EXPECT_LE(job.limits.wall, absl::Hours(1));
    events.OnStage("lower", 0.5);
    events.OnLog("compiling");
    return SucceedWith({{"model.h", "header"}});
  });
  const std::string id = Submit();
  RunAll();
  const jobs::Job job = JobOf(id);
  EXPECT_EQ(job.state, jobs::JobState::kSucceeded) << job.reason;
  EXPECT_FALSE(job.cache_hit);
  EXPECT_EQ(run_id, id + ".1");
  EXPECT_EQ(Story(id), "QUEUED RUNNING stage:lower log:compiling model.h compile.log SUCCEEDED ");
  EXPECT_EQ(job.artifacts[1].sha256, Sha256Hex("compiling\n"));
  EXPECT_TRUE(std::filesystem::is_empty(work_dir_));
}

TEST_F(JobRunnerTest, EqualJobsThatWaitRunOneWorker) {
  const std::string first = Submit();
  const std::string second = Submit();
  RunAll();
  EXPECT_EQ(workers_.runs(), 1);
  EXPECT_FALSE(JobOf(first).cache_hit);
  EXPECT_TRUE(JobOf(second).cache_hit);
  EXPECT_EQ(JobOf(second).artifacts, JobOf(first).artifacts);
  Submit("config", /*no_cache=*/true);
  RunAll();
  EXPECT_EQ(workers_.runs(), 2);
}

TEST_F(JobRunnerTest, HowRunsEndAndWhoseFaultItIs) {
  using Kind = worker::WorkerOutcome::Kind;
  struct Case {
    Kind kind;
    absl::StatusCode code;
    jobs::FailureKind expected;
  };
  const Case cases[] = {
      {Kind::kFailed, absl::StatusCode::kInvalidArgument, jobs::FailureKind::kInvalidInput},
      {Kind::kFailed, absl::StatusCode::kInternal, jobs::FailureKind::kInternal},
      {Kind::kLimit, absl::StatusCode::kResourceExhausted, jobs::FailureKind::kLimitExceeded},
      {Kind::kCrashed, absl::StatusCode::kInternal, jobs::FailureKind::kInternal},
      {Kind::kLost, absl::StatusCode::kOk, jobs::FailureKind::kWorkerDied},
  };
  for (const Case& c : cases) {
    workers_.Set([&](const worker::WorkerJob&, worker::WorkerEvents& events) {
      worker::WorkerOutcome outcome;
      outcome.kind = c.kind;
      outcome.code = c.code;
      outcome.text = "the reason";
      outcome.diagnostics.push_back({.kind = DiagnosticKind::kInternalError, .message = "m"});
      return outcome;
    });
    const std::string id = Submit();
    RunAll();
    const jobs::Job job = JobOf(id);
    EXPECT_EQ(job.state, jobs::JobState::kFailed);
    EXPECT_EQ(job.failure_kind, c.expected) << static_cast<int>(c.kind);
    EXPECT_THAT(job.reason, HasSubstr("the reason"));
    EXPECT_EQ(job.attempts, c.kind == Kind::kLost ? 3 : 1);
  }
}

TEST_F(JobRunnerTest, ALostWorkerIsTriedAgain) {
  workers_.Set([](const worker::WorkerJob& job, worker::WorkerEvents& events) {
    if (absl::EndsWith(job.run_id, ".1")) {
      worker::WorkerOutcome lost;
      lost.kind = worker::WorkerOutcome::Kind::kLost;
      lost.text = "killed by signal 9";
      return lost;
    }
    return SucceedWith({{"model.h", "header"}});
  });
  const std::string id = Submit();
  RunAll();
  EXPECT_EQ(JobOf(id).state, jobs::JobState::kSucceeded);
  EXPECT_EQ(Story(id), "QUEUED RUNNING QUEUED RUNNING model.h compile.log SUCCEEDED ");
}

TEST_F(JobRunnerTest, WhatAWorkerMadeIsChecked) {
  workers_.Set([](const worker::WorkerJob& job, worker::WorkerEvents&) {
    return SucceedWith({{"other.h", "header"}});
  });
  std::string id = Submit("config 1");
  RunAll();
  EXPECT_THAT(JobOf(id).reason, HasSubstr("made no model.h"));
  workers_.Set([](const worker::WorkerJob& job, worker::WorkerEvents&) {
    return SucceedWith({{"model.h", "header"}, {"report.json", "spoilt"}});
  });
  id = Submit("config 5");
  RunAll();
  EXPECT_EQ(JobOf(id).failure_kind, jobs::FailureKind::kInternal);
  EXPECT_THAT(JobOf(id).reason, HasSubstr("report.json of model.h is spoilt"));
  // None of these became a result that an equal job would get.
  EXPECT_EQ(cache_.size(), 0u);
  cache_.SetTooSmall();
  id = Submit("config 4");
  RunAll();
  EXPECT_EQ(JobOf(id).state, jobs::JobState::kFailed);
}

// Artifacts that are told of before the run has ended are checked, packed and stored then, unless
// they are not whole; what becomes of the job depends on the end.
TEST_F(JobRunnerTest, ArtifactsAreToldOfBeforeTheEnd) {
  worker::WorkerOutcome outcome;
  std::string last_line;
  workers_.Set([&](const worker::WorkerJob& job, worker::WorkerEvents& events) {
    events.OnLog("compiled");
    const worker::WorkerOutcome told =
        SucceedWith({{"model.h", "header"}, {"a.txt", job.config_text}});
    for (const worker::WorkerArtifact& artifact : told.artifacts) events.OnArtifact(artifact);
    events.OnCompiled({});
    if (!last_line.empty()) events.OnLog(last_line);
    return outcome;
  });
  outcome = SucceedWith({{"model.h", "header"}, {"a.txt", "config 1"}});
  std::string id = Submit("config 1");
  RunAll();
  ASSERT_EQ(JobOf(id).state, jobs::JobState::kSucceeded) << JobOf(id).reason;
  EXPECT_EQ(JobOf(id).artifacts[1].sha256, Sha256Hex("config 1"));
  EXPECT_EQ(JobOf(id).artifacts[2].sha256, Sha256Hex("compiled\n"));
  EXPECT_EQ(cache_.stores(), 1);
  last_line = "a line without an end";
  outcome = SucceedWith({{"model.h", "header"}, {"a.txt", "config 3"}});
  id = Submit("config 3");
  RunAll();
  EXPECT_EQ(JobOf(id).artifacts[2].sha256, Sha256Hex("compiled\na line without an end\n"));
  EXPECT_EQ(cache_.stores(), 3);
  EXPECT_EQ(cache_.size(), 2u);
  outcome = SucceedWith({{"model.h", "header"}, {"a.txt", "spoilt"}});
  id = Submit("spoilt");
  RunAll();
  EXPECT_THAT(JobOf(id).reason, HasSubstr("a.txt of model.h is spoilt"));
  EXPECT_EQ(cache_.size(), 2u);
  outcome = worker::WorkerOutcome();
  outcome.kind = worker::WorkerOutcome::Kind::kCrashed;
  id = Submit("config 2");
  RunAll();
  EXPECT_EQ(JobOf(id).failure_kind, jobs::FailureKind::kInternal);
  EXPECT_EQ(cache_.size(), 3u);
}

TEST_F(JobRunnerTest, ALostResultIsMadeAgainWithTheSameTime) {
  std::vector<int64_t> times;
  workers_.Set([&](const worker::WorkerJob& job, worker::WorkerEvents& events) {
    times.push_back(job.timestamp_seconds);
    EXPECT_FALSE(events.IsCancelled());
    events.OnLog("compiling");
    return SucceedWith({{"model.h", "header"}});
  });
  const std::string id = Submit();
  RunAll();
  const std::string story = Story(id);
  now_seconds_ += 100;
  cache_.Clear();
  ASSERT_TRUE(runner_->Remake(JobOf(id)).ok());
  EXPECT_EQ(times, (std::vector<int64_t>{1'700'000'000, 1'700'000'000}));
  const cache::CacheKey key = *cache::CacheKey::Parse(JobOf(id).cache_key);
  EXPECT_TRUE(cache_.OpenArtifact(key, "model.h").ok());
  EXPECT_EQ(Story(id), story);
  // Not by another build, and not without its model.
  jobs::Job other = JobOf(id);
  other.cache_key = "default/" + std::string(64, 'a');
  EXPECT_EQ(runner_->Remake(other).code(), absl::StatusCode::kFailedPrecondition);
  inputs_.Forget(Sha256Hex("model bytes"));
  EXPECT_EQ(runner_->Remake(JobOf(id)).code(), absl::StatusCode::kNotFound);
}

// However the worker said so, and whether it was started at all.
TEST_F(JobRunnerTest, ADamagedInputIsLostAtOnceAndNamesNoPathOfTheServer) {
  const auto died = [](worker::WorkerOutcome::Kind kind, const std::string& text) {
    worker::WorkerOutcome outcome;
    outcome.kind = kind;
    outcome.text = text;
    return outcome;
  };
  const std::vector<absl::StatusOr<worker::WorkerOutcome>> ends = {
      died(worker::WorkerOutcome::Kind::kLost, "/data/blobs/x"),
      died(worker::WorkerOutcome::Kind::kCrashed, "signal 7"),
      absl::NotFoundError("cannot open '/data/blobs/x'")};
  for (const auto& end : ends) {
    const std::string id = Submit("config", /*no_cache=*/true);
    inputs_.Damage(Sha256Hex("model bytes"));
    workers_.Set([&](const worker::WorkerJob&, worker::WorkerEvents&) { return end; });
    RunAll();
    const jobs::Job job = JobOf(id);
    EXPECT_EQ(job.state, jobs::JobState::kFailed);
    EXPECT_EQ(job.failure_kind, jobs::FailureKind::kInputLost);
    EXPECT_EQ(job.attempts, 1);
    EXPECT_THAT(job.reason, HasSubstr("'model.pb' was damaged on the server's disk"));
    EXPECT_THAT(job.reason, HasSubstr("upload it and submit the job again"));
    EXPECT_THAT(job.reason, Not(HasSubstr("/data")));
  }
}

TEST_F(JobRunnerTest, WhileTheInputsCannotBeReachedTheJobStaysInItsPlace) {
  const std::string id = Submit();
  inputs_.SetAway(3);
  RunAll();
  EXPECT_EQ(JobOf(id).state, jobs::JobState::kSucceeded);
  EXPECT_EQ(JobOf(id).attempts, 1);
  EXPECT_EQ(workers_.runs(), 1);
}

TEST_F(JobRunnerTest, AnInputThatIsGoneIsToldAsSuch) {
  const std::string id = Submit();
  inputs_.Forget(JobOf(id).model().sha256);
  RunAll();
  EXPECT_EQ(JobOf(id).failure_kind, jobs::FailureKind::kInputLost);
  EXPECT_EQ(workers_.runs(), 0);
}

TEST_F(JobRunnerTest, ACancelReachesTheWorkerAndItsResultIsDropped) {
  std::string id;
  workers_.Set([&](const worker::WorkerJob& job, worker::WorkerEvents& events) {
    EXPECT_FALSE(events.IsCancelled());
    EXPECT_TRUE(jobs_->Cancel(id, "enough").ok());
    EXPECT_TRUE(events.IsCancelled());
    EXPECT_TRUE(workers_.WasCancelled(job.run_id));
    return SucceedWith({{"model.h", "header"}});
  });
  id = Submit();
  RunAll();
  EXPECT_EQ(JobOf(id).state, jobs::JobState::kCancelled);
  EXPECT_EQ(Story(id), "QUEUED RUNNING CANCELLED ");
}

TEST_F(JobRunnerTest, AnExpiredJobStopsItsWorker) {
  std::string id;
  workers_.Set([&](const worker::WorkerJob& job, worker::WorkerEvents& events) {
    now_seconds_ += 3600;
    EXPECT_TRUE(jobs_->ExpireDue().ok());
    EXPECT_TRUE(events.IsCancelled());
    worker::WorkerOutcome outcome;
    outcome.kind = worker::WorkerOutcome::Kind::kCancelled;
    return outcome;
  });
  id = Submit();
  RunAll();
  EXPECT_EQ(JobOf(id).state, jobs::JobState::kExpired);
}

TEST_F(JobRunnerTest, TheLeaseIsStoredWhenTheWorkerIsOnItsWay) {
  std::string id;
  workers_.Set([&](const worker::WorkerJob&, worker::WorkerEvents& events) {
    EXPECT_EQ(JobOf(id).state, jobs::JobState::kQueued);
    EXPECT_FALSE(events.IsCancelled());
    EXPECT_EQ(JobOf(id).state, jobs::JobState::kRunning);
    return SucceedWith({{"model.h", "header"}});
  });
  id = Submit();
  RunAll();
  EXPECT_EQ(JobOf(id).state, jobs::JobState::kSucceeded);
}

TEST_F(JobRunnerTest, NothingIsToldOfARunWithoutALease) {
  std::string id;
  workers_.Set([&](const worker::WorkerJob&, worker::WorkerEvents& events) {
    EXPECT_TRUE(jobs_->Cancel(id, "why").ok());
    events.OnLog("compiling");
    EXPECT_TRUE(events.IsCancelled());
    return SucceedWith({{"model.h", "header"}});
  });
  id = Submit();
  RunAll();
  EXPECT_EQ(Story(id), "QUEUED CANCELLED ");
}

TEST_F(JobRunnerTest, ALeaseThatCannotBeStoredRunsTheJobAgain) {
  workers_.Set([&](const worker::WorkerJob&, worker::WorkerEvents& events) {
    if (workers_.runs() > 1) return SucceedWith({{"model.h", "header"}});
    store_.FailNextApplies(1);
    EXPECT_TRUE(events.IsCancelled());
    Note("worker ended");
    worker::WorkerOutcome outcome;
    outcome.kind = worker::WorkerOutcome::Kind::kCancelled;
    return outcome;
  });
  const std::string id = Submit();
  RunAll();
  // The worker is not kept waiting for what the store needs.
  EXPECT_EQ(steps_, (std::vector<std::string>{"worker ended", "lease failed", "finish"}));
  EXPECT_EQ(workers_.runs(), 2);
  EXPECT_EQ(JobOf(id).attempts, 1);
  EXPECT_EQ(JobOf(id).state, jobs::JobState::kSucceeded);
}

TEST_F(JobRunnerTest, DrainingHandsTheJobBackUncounted) {
  workers_.Set([&](const worker::WorkerJob& job, worker::WorkerEvents& events) {
    runner_->SetDraining();
    EXPECT_TRUE(events.IsCancelled());
    worker::WorkerOutcome outcome;
    outcome.kind = worker::WorkerOutcome::Kind::kCancelled;
    return outcome;
  });
  const std::string id = Submit();
  runner_->Run(**jobs_->TryClaim());
  EXPECT_EQ(JobOf(id).state, jobs::JobState::kQueued);
  EXPECT_EQ(JobOf(id).worker_losses, 0);
  EXPECT_THAT(JobOf(id).reason, HasSubstr("stopping"));
}

TEST_F(JobRunnerTest, AHostWithoutWorkersCostsNoJob) {
  int refusals = 0;
  workers_.Set([&](const worker::WorkerJob& job,
                   worker::WorkerEvents&) -> absl::StatusOr<worker::WorkerOutcome> {
    if (++refusals < 10) return absl::UnavailableError("no processes left");
    return SucceedWith({{"model.h", "header"}});
  });
  const std::string id = Submit();
  RunAll();
  // The job was in its place all the time.
  EXPECT_EQ(Story(id), "QUEUED RUNNING model.h compile.log SUCCEEDED ");
  EXPECT_EQ(JobOf(id).attempts, 1);
  EXPECT_EQ(JobOf(id).worker_losses, 0);
}

TEST_F(JobRunnerTest, TheDeathsOfTheWarmParentDoNotCount) {
  workers_.Set([&](const worker::WorkerJob&, worker::WorkerEvents& events) {
    worker::WorkerOutcome outcome = SucceedWith({{"model.h", "header"}});
    if (workers_.runs() >= 10) return outcome;
    // What this try made is no part of the next one's result.
    events.OnArtifact(outcome.artifacts[0]);
    events.OnCompiled({});
    outcome.kind = worker::WorkerOutcome::Kind::kInterrupted;
    outcome.text = "the warm parent died";
    return outcome;
  });
  const std::string id = Submit("config", /*no_cache=*/true);
  RunAll();
  const jobs::Job job = JobOf(id);
  EXPECT_EQ(job.state, jobs::JobState::kSucceeded) << job.reason;
  EXPECT_EQ(job.artifacts.size(), 2u);
  EXPECT_EQ(job.attempts, 10);
  EXPECT_EQ(job.worker_losses, 0);
}

TEST_F(JobRunnerTest, NothingIsClaimedWhileNoWorkerCanBeStarted) {
  workers_.Set([](const worker::WorkerJob&, worker::WorkerEvents&) {
    return SucceedWith({{"model.h", "header"}});
  });
  const std::string id = Submit();
  std::mutex mutex;
  std::condition_variable changed;
  int asked = 0;
  bool ready = false;
  Dispatcher dispatcher(
      2, jobs_.get(), [&](jobs::JobService::Claim claim) { runner_->Run(std::move(claim)); }, &log_,
      [&] {
        const std::lock_guard<std::mutex> lock(mutex);
        ++asked;
        changed.notify_all();
        return ready ? absl::OkStatus() : absl::UnavailableError("no worker can be started");
      });
  {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return asked >= 4; });  // each slot has asked again
    EXPECT_EQ(jobs_->GetCounts().queued, 1);
    EXPECT_EQ(workers_.runs(), 0);
    ready = true;
  }
  while (JobOf(id).state != jobs::JobState::kSucceeded) std::this_thread::yield();
  EXPECT_TRUE(dispatcher.Stop(absl::Seconds(20)));
}

TEST_F(JobRunnerTest, AResultThatCannotBeStoredIsStoredLater) {
  workers_.Set([&](const worker::WorkerJob& job, worker::WorkerEvents&) {
    store_.FailNextApplies(3);
    return SucceedWith({{"model.h", "header"}});
  });
  const std::string id = Submit();
  RunAll();
  EXPECT_EQ(JobOf(id).state, jobs::JobState::kSucceeded);
}

TEST_F(JobRunnerTest, AResultWaitsForRoomOnTheDisk) {
  cache_.FillDisk(5);
  const std::string id = Submit();
  RunAll();
  const jobs::Job job = JobOf(id);
  EXPECT_EQ(job.state, jobs::JobState::kSucceeded) << job.reason;
  EXPECT_EQ(job.attempts, 1);
  EXPECT_EQ(workers_.runs(), 1);
  EXPECT_EQ(steps_, (std::vector<std::string>{"no room", "no room", "no room", "no room", "no room",
                                              "finish"}));
  EXPECT_EQ(Story(id),
            "QUEUED RUNNING stage:lower log:compiling "
            "log:npuc: compiled; the result waits for room on the server's disk "
            "model.h report.json compile.log SUCCEEDED ");
}

TEST_F(JobRunnerTest, AResultThatWaitsForRoomAndTheJobStoreHasNoneEither) {
  workers_.Set([&](const worker::WorkerJob&, worker::WorkerEvents& events) {
    events.OnLog("compiling");
    cache_.FillDisk(1);
    store_.FailNextApplies(2);
    return SucceedWith({{"model.h", "header"}});
  });
  const std::string id = Submit();
  RunAll();
  // What the store did not take then is told with the end.
  EXPECT_EQ(Story(id), "QUEUED RUNNING log:compiling model.h compile.log SUCCEEDED ");
}

TEST_F(JobRunnerTest, ARunWithoutALeaseWaitsForNoRoom) {
  workers_.Set([&](const worker::WorkerJob&, worker::WorkerEvents& events) {
    if (workers_.runs() == 1) {
      cache_.FillDisk(1);
      store_.FailNextApplies(1);
      EXPECT_TRUE(events.IsCancelled());
    }
    return SucceedWith({{"model.h", "header"}});
  });
  const std::string id = Submit();
  RunAll();
  EXPECT_EQ(steps_, (std::vector<std::string>{"lease failed", "finish"}));
  EXPECT_EQ(Story(id), "QUEUED RUNNING model.h compile.log SUCCEEDED ");
}

TEST_F(JobRunnerTest, ACancelEndsTheWaitForRoom) {
  cache_.FillDisk(1000);
  const std::string id = Submit();
  on_step_ = [&](absl::string_view step) {
    if (step == "no room") jobs_->Cancel(id, "too long").IgnoreError();
  };
  RunAll();
  EXPECT_EQ(JobOf(id).state, jobs::JobState::kCancelled);
  EXPECT_EQ(steps_, (std::vector<std::string>{"no room"}));
}

TEST_F(JobRunnerTest, DrainingEndsTheWaitForRoom) {
  cache_.FillDisk(1000);
  const std::string id = Submit();
  on_step_ = [&](absl::string_view step) {
    if (step == "no room") runner_->SetDraining();
  };
  runner_->Run(**jobs_->TryClaim());
  EXPECT_EQ(JobOf(id).state, jobs::JobState::kQueued);
  EXPECT_EQ(JobOf(id).worker_losses, 0);
  EXPECT_THAT(JobOf(id).reason, HasSubstr("stopping"));
}

TEST_F(JobRunnerTest, LeftoversOfEarlierRunsAreCleared) {
  std::filesystem::create_directories(work_dir_ + "/old/out");
  ASSERT_TRUE(runner_->CleanWorkDir().ok());
  EXPECT_TRUE(std::filesystem::is_empty(work_dir_));
}

TEST_F(JobRunnerTest, TheDispatcherRunsJobsAndStops) {
  std::atomic<int> ended = 0;
  std::promise<void> all_ended;
  jobs_->SetEndListener([&](const jobs::Job& job) {
    if (++ended == 20) all_ended.set_value();
  });
  Dispatcher dispatcher(
      3, jobs_.get(), [&](jobs::JobService::Claim claim) { runner_->Run(std::move(claim)); },
      &log_);
  std::vector<std::string> ids;
  for (int i = 0; i < 20; ++i) ids.push_back(Submit(absl::StrCat("config ", i)));
  all_ended.get_future().wait();
  EXPECT_TRUE(dispatcher.Stop(absl::InfiniteDuration()));
  for (const std::string& id : ids) EXPECT_EQ(JobOf(id).state, jobs::JobState::kSucceeded);
  const std::string late = Submit("late");
  EXPECT_EQ(JobOf(late).state, jobs::JobState::kQueued);
}

TEST_F(JobRunnerTest, StopDoesNotWaitForEver) {
  std::promise<void> started;
  std::promise<void> release;
  workers_.Set([&](const worker::WorkerJob& job, worker::WorkerEvents&) {
    started.set_value();
    release.get_future().wait();
    return SucceedWith({{"model.h", "header"}});
  });
  Dispatcher dispatcher(
      1, jobs_.get(), [&](jobs::JobService::Claim claim) { runner_->Run(std::move(claim)); },
      &log_);
  const std::string id = Submit();
  started.get_future().wait();
  EXPECT_FALSE(dispatcher.Stop(absl::Milliseconds(1)));
  release.set_value();
  EXPECT_TRUE(dispatcher.Stop(absl::InfiniteDuration()));
  EXPECT_EQ(JobOf(id).state, jobs::JobState::kSucceeded);
}

}  // namespace
}  // namespace npuc::executor
