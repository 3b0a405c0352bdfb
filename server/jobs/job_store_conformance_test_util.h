#ifndef NPUC_SERVER_JOBS_JOB_STORE_CONFORMANCE_TEST_UTIL_H_
#define NPUC_SERVER_JOBS_JOB_STORE_CONFORMANCE_TEST_UTIL_H_

// Promises of every JobStore. A test program includes this and instantiates JobStoreTest with its
// stores.

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/jobs/memory_job_store.h"

namespace npuc::jobs {
namespace conformance {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A store and the way to get at its content again after a restart.
class StoreHarness {
 public:
  virtual ~StoreHarness() = default;
  // Something that the store needs is missing on this machine.
  virtual bool is_missing() const { return false; }
  virtual JobStore& store() = 0;
  virtual void Restart() = 0;
};

class MemoryHarness : public StoreHarness {
 public:
  JobStore& store() override { return store_; }
  void Restart() override {}

 private:
  MemoryJobStore store_;
};

using MakeHarness = std::function<std::unique_ptr<StoreHarness>()>;
struct Implementation {
  const char* name;
  MakeHarness make;
};

class JobStoreTest : public ::testing::TestWithParam<Implementation> {
 protected:
  void SetUp() override {
    harness_ = GetParam().make();
    if (harness_->is_missing()) GTEST_SKIP() << GetParam().name << " is not installed";
  }
  JobStore& store() { return harness_->store(); }
  std::unique_ptr<StoreHarness> harness_;
};

inline JobEvent LogLine(int64_t seq, std::string text) {
  return {.seq = seq,
          .time = absl::FromUnixSeconds(seq),
          .attempt = 1,
          .body = LogEvent{std::move(text)}};
}

inline Job NewJob(std::string id, std::string request_id = "") {
  Job job;
  job.id = std::move(id);
  job.revision = 1;
  job.request_id = std::move(request_id);
  job.spec.inputs = {{.role = "MODEL_FILE",
                      .name = "m.pb",
                      .sha256 = std::string(64, 'a'),
                      .md5 = std::string(32, 'b'),
                      .size_bytes = 77}};
  job.create_time = absl::FromUnixSeconds(1000);
  return job;
}

// A job with every field set to something else than its default.
inline Job FullJob() {
  Job job = NewJob("j-full", "req-full");
  job.tenant = "acme";
  job.request_sha256 = "rs";
  job.spec.config_name = "config.yaml";
  job.spec.inputs.push_back(
      {.role = "OPT_CONFIG", .name = "t.json", .sha256 = "s", .md5 = "m", .size_bytes = 1});
  job.spec.priority = -7;
  job.spec.labels = {{"", "empty key"}, {"team", ""}};
  job.spec.timeout = absl::Seconds(90);
  job.spec.no_cache = true;
  job.spec.model_info_time_seconds = 0;
  job.spec.trace = {.trace_id = "0af7651916cd43dd8448eb211c80319c",
                    .span_id = "b7ad6b7169203331",
                    .sampled = true};
  job.output_file = "model.h";
  job.cache_key = "default/abc";
  job.state = JobState::kExpired;
  job.accept_order = uint64_t{1} << 63;
  job.fence = 3;
  job.attempts = 4;
  job.worker_losses = 5;
  job.daemon_losses = 6;
  job.cache_hit = true;
  job.stage = "lower";
  job.fraction = 0.25;
  job.failure_kind = FailureKind::kInputLost;
  job.reason = "why";
  job.expired_in = JobState::kRunning;
  job.artifacts = {{.name = "model.h", .size_bytes = 5, .sha256 = "x"}};
  job.diagnostics = {{.id = "NPUC1203",
                      .severity = base::JobDiagnostic::Severity::kNote,
                      .file = "f",
                      .line = 2,
                      .column = 3,
                      .node = "n",
                      .op = "Conv2D",
                      .message = "m",
                      .limit_source = "l",
                      .fix = "x"}};
  job.start_time = absl::FromUnixSeconds(1001);
  job.end_time = absl::FromUnixSeconds(1002);
  job.deadline = absl::FromUnixSeconds(1003);
  return job;
}

inline std::string Names(const JobPage& page) {
  std::string names;
  for (const Job& job : page.jobs) absl::StrAppend(&names, job.id, " ");
  return names;
}

TEST_P(JobStoreTest, KeepsEveryFieldOverARestart) {
  const Job job = FullJob();
  ASSERT_TRUE(
      store().ApplyAndWait({.job = job, .events = {}, .config_text = "CORENAME: GRUS"}).ok());
  harness_->Restart();
  const auto read = store().Read("j-full");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->tenant, job.tenant);
  EXPECT_EQ(read->request_id, job.request_id);
  EXPECT_EQ(read->request_sha256, job.request_sha256);
  EXPECT_EQ(read->spec, job.spec);
  EXPECT_EQ(read->output_file, job.output_file);
  EXPECT_EQ(read->cache_key, job.cache_key);
  EXPECT_EQ(read->state, job.state);
  EXPECT_EQ(read->accept_order, job.accept_order);
  EXPECT_EQ(read->fence, job.fence);
  EXPECT_EQ(read->attempts, job.attempts);
  EXPECT_EQ(read->worker_losses, job.worker_losses);
  EXPECT_EQ(read->daemon_losses, job.daemon_losses);
  EXPECT_EQ(read->cache_hit, job.cache_hit);
  EXPECT_EQ(read->stage, job.stage);
  EXPECT_EQ(read->fraction, job.fraction);
  EXPECT_EQ(read->failure_kind, job.failure_kind);
  EXPECT_EQ(read->reason, job.reason);
  EXPECT_EQ(read->expired_in, job.expired_in);
  EXPECT_EQ(read->artifacts, job.artifacts);
  EXPECT_EQ(read->diagnostics, job.diagnostics);
  EXPECT_EQ(read->create_time, job.create_time);
  EXPECT_EQ(read->start_time, job.start_time);
  EXPECT_EQ(read->end_time, job.end_time);
  EXPECT_EQ(read->deadline, job.deadline);
  EXPECT_EQ(*store().ReadConfig("j-full"), "CORENAME: GRUS");
  EXPECT_EQ(*store().FindRequest("acme", "req-full"), "j-full");
}

// A newer daemon on the same store writes fields that this one does not know, and this one writes
// the job anew.
TEST_P(JobStoreTest, KeepsUnknownFieldsWhenARecordIsWrittenAnew) {
  Job job = NewJob("j1");
  job.unknown_fields = "\xfa\x3e\x03new";       // field 1007, bytes
  job.spec.unknown_fields = "\x82\x3f\x03new";  // field 1008, bytes
  const std::string of_job = job.unknown_fields, of_spec = job.spec.unknown_fields;
  ASSERT_TRUE(store().ApplyAndWait({.job = job, .events = {}, .config_text = ""}).ok());
  for (int writes = 0; writes < 2; ++writes) {
    harness_->Restart();
    absl::StatusOr<Job> read = store().Read("j1");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->unknown_fields, of_job);
    EXPECT_EQ(read->spec.unknown_fields, of_spec);
    ++read->revision;
    read->stage = "lower";
    ASSERT_TRUE(store().ApplyAndWait({.job = *read}).ok());
  }
}

TEST_P(JobStoreTest, UnknownNames) {
  EXPECT_EQ(store().Read("j1").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store().ReadConfig("j1").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(*store().FindRequest("", "r"), std::nullopt);
  EXPECT_THAT(*store().ReadEvents("j1", 1, 10, 1000), IsEmpty());
  EXPECT_THAT(store().List({})->jobs, IsEmpty());
}

TEST_P(JobStoreTest, KeepsEveryKindOfEvent) {
  Job job = NewJob("j1");
  std::vector<JobEvent> events = {
      {.seq = 1,
       .time = absl::FromUnixMicros(1234567),
       .attempt = 2,
       .body = StateChangedEvent{JobState::kFailed, "why", FailureKind::kWorkerDied, true}},
      {.seq = 2, .time = absl::FromUnixSeconds(1), .body = ProgressEvent{"lower", 0.5}},
      {.seq = 3, .time = absl::FromUnixSeconds(1), .body = LogEvent{""}},
      {.seq = 4, .time = absl::FromUnixSeconds(1), .body = ArtifactEvent{{"a", 5, "s"}}},
      {.seq = 5,
       .time = absl::FromUnixSeconds(1),
       .body = DiagnosticEvent{{.id = "NPUC1", .message = "m"}}}};
  job.last_seq = 5;
  ASSERT_TRUE(store().ApplyAndWait({.job = job, .events = events}).ok());
  EXPECT_EQ(*store().ReadEvents("j1", 0, 10, 10000), events);
}

TEST_P(JobStoreTest, RefusesAChangeThatIsNotTheNext) {
  Job job = NewJob("j1");
  Job second = job;
  second.revision = 2;
  EXPECT_EQ(store().ApplyAndWait({.job = second}).code(), absl::StatusCode::kAborted);
  ASSERT_TRUE(store().ApplyAndWait({.job = job}).ok());
  EXPECT_EQ(store().ApplyAndWait({.job = job}).code(), absl::StatusCode::kAborted);
  second.state = JobState::kRunning;
  ASSERT_TRUE(store().ApplyAndWait({.job = second}).ok());
  Job rival = second;
  rival.state = JobState::kCancelled;
  EXPECT_EQ(store().ApplyAndWait({.job = rival}).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(store().Read("j1")->state, JobState::kRunning);
}

TEST_P(JobStoreTest, RefusesGapsAndRepeatsOfEvents) {
  Job job = NewJob("j1");
  job.last_seq = 2;
  EXPECT_EQ(store().ApplyAndWait({.job = job, .events = {LogLine(2, "b")}}).code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(store().ApplyAndWait({.job = job, .events = {LogLine(1, "a")}}).code(),
            absl::StatusCode::kAborted);
  ASSERT_TRUE(
      store().ApplyAndWait({.job = job, .events = {LogLine(1, "a"), LogLine(2, "b")}}).ok());
  job.revision = 2;
  job.last_seq = 3;
  EXPECT_EQ(store().ApplyAndWait({.job = job, .events = {LogLine(2, "again")}}).code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(store().ApplyAndWait({.job = job, .events = {LogLine(4, "gap")}}).code(),
            absl::StatusCode::kAborted);
  EXPECT_THAT(*store().ReadEvents("j1", 1, 10, 1000), SizeIs(2));
}

TEST_P(JobStoreTest, ReadEventsIsBounded) {
  Job job = NewJob("j1");
  Job other = NewJob("j2");
  std::vector<JobEvent> events;
  for (int64_t seq = 1; seq <= 300; ++seq) events.push_back(LogLine(seq, std::string(100, 'x')));
  job.last_seq = other.last_seq = 300;
  ASSERT_TRUE(store().ApplyAndWait({.job = job, .events = events}).ok());
  ASSERT_TRUE(store().ApplyAndWait({.job = other, .events = events}).ok());
  EXPECT_THAT(*store().ReadEvents("j1", 1, 7, 1 << 20), SizeIs(7));
  EXPECT_THAT(*store().ReadEvents("j1", 1, 1000, 1 << 20), SizeIs(300));
  EXPECT_THAT(*store().ReadEvents("j1", 1, 1000, 1), SizeIs(1));
  const auto some = *store().ReadEvents("j1", 1, 1000, 1000);
  EXPECT_GT(some.size(), 5u);
  EXPECT_LT(some.size(), 10u);
  const auto tail = *store().ReadEvents("j1", 299, 1000, 1 << 20);
  ASSERT_THAT(tail, SizeIs(2));
  EXPECT_EQ(tail[0].seq, 299);
  EXPECT_THAT(*store().ReadEvents("j1", 301, 10, 1000), IsEmpty());
}

// A store may keep the events of a change together, in pieces of its choice; no reader sees it.
TEST_P(JobStoreTest, ReadsEventsFromAnyNumber) {
  Job job = NewJob("j1");
  std::vector<JobEvent> all;
  for (const int64_t count : {1, 200, 1, 3, 70}) {
    JobChange change{.job = job};
    for (int64_t i = 0; i < count; ++i) {
      // Some are large, so that pieces by size come about, too.
      const size_t size = i % 50 == 49 ? 40000 : 20;
      change.events.push_back(LogLine(++job.last_seq, std::string(size, 'x')));
    }
    all.insert(all.end(), change.events.begin(), change.events.end());
    change.job.last_seq = job.last_seq;
    ASSERT_TRUE(store().ApplyAndWait(change).ok());
    ++job.revision;
  }
  for (int64_t from = 1; from <= job.last_seq; ++from) {
    for (const size_t count : {1u, 64u, 1000u}) {
      const auto first = all.begin() + (from - 1);
      const auto end = all.end() - first > static_cast<ptrdiff_t>(count)
                           ? first + static_cast<ptrdiff_t>(count)
                           : all.end();
      const auto events = store().ReadEvents("j1", from, count, 1 << 20);
      ASSERT_EQ(*events, std::vector<JobEvent>(first, end)) << "from " << from;
    }
  }
}

TEST_P(JobStoreTest, ListsNewestFirstByPages) {
  for (int i = 0; i < 5; ++i) {
    Job job = NewJob(absl::StrCat("j", i));
    job.state = i % 2 == 0 ? JobState::kQueued : JobState::kSucceeded;
    ASSERT_TRUE(store().ApplyAndWait({.job = job}).ok());
  }
  auto page = *store().List({.limit = 2});
  EXPECT_EQ(Names(page), "j4 j3 ");
  page = *store().List({.before_id = page.next_before, .limit = 2});
  EXPECT_EQ(Names(page), "j2 j1 ");
  page = *store().List({.before_id = page.next_before, .limit = 2});
  EXPECT_EQ(Names(page), "j0 ");
  EXPECT_EQ(page.next_before, "");
  EXPECT_EQ(Names(*store().List({.states = {JobState::kSucceeded}})), "j3 j1 ");
  EXPECT_EQ(Names(*store().List({.states = {JobState::kFailed}})), "");
}

TEST_P(JobStoreTest, LiveJobsAreThoseThatHaveNotEnded) {
  for (const char* id : {"j1", "j2", "j3"})
    ASSERT_TRUE(store().ApplyAndWait({.job = NewJob(id)}).ok());
  Job ended = NewJob("j2");
  ended.revision = 2;
  ended.state = JobState::kFailed;
  ASSERT_TRUE(store().ApplyAndWait({.job = ended}).ok());
  Job born_ended = NewJob("j4");
  born_ended.state = JobState::kSucceeded;
  ASSERT_TRUE(store().ApplyAndWait({.job = born_ended}).ok());
  harness_->Restart();
  std::vector<std::string> ids;
  ASSERT_TRUE(store()
                  .ForEachLive([&](const LiveJob& job) {
                    ids.push_back(job.id);
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_THAT(ids, ::testing::UnorderedElementsAre("j1", "j3"));
  EXPECT_EQ(store().ForEachLive([](const LiveJob&) { return absl::CancelledError("stop"); }).code(),
            absl::StatusCode::kCancelled);
}

TEST_P(JobStoreTest, OneJobPerRequestIdUnderConcurrentSends) {
  constexpr int kThreads = 8;
  std::vector<absl::Status> results(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      results[i] = store().ApplyAndWait({.job = NewJob(absl::StrCat("j", i), "same")});
    });
  }
  for (std::thread& thread : threads) thread.join();
  int accepted = 0;
  for (int i = 0; i < kThreads; ++i) {
    if (results[i].ok()) {
      ++accepted;
      EXPECT_EQ(*store().FindRequest("", "same"), absl::StrCat("j", i));
    } else {
      EXPECT_EQ(results[i].code(), absl::StatusCode::kAlreadyExists);
      EXPECT_EQ(store().Read(absl::StrCat("j", i)).status().code(), absl::StatusCode::kNotFound);
    }
  }
  EXPECT_EQ(accepted, 1);
}

// Changes that nobody waits for keep their order, and each learns its own end, once.
TEST_P(JobStoreTest, ChangesThatNobodyWaitsForKeepTheirOrder) {
  constexpr int kThreads = 4;
  constexpr int kJobs = 50;
  std::atomic<int> accepted = 0, taken = 0, changed = 0, other = 0;
  const auto count = [&](const absl::Status& status, std::atomic<int>& good) {
    ++(status.ok() ? good : absl::IsAlreadyExists(status) ? taken : other);
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kJobs; ++i) {
        // A request id of two threads each.
        JobChange made{.job = NewJob(absl::StrCat("j", t, "-", i), absl::StrCat(t / 2, "-", i))};
        store().Apply(std::make_shared<JobChange>(made),
                      [&](const absl::Status& status) { count(status, accepted); });
        // Another job's two changes, the second before the first is done.
        JobChange first{.job = NewJob(absl::StrCat("k", t, "-", i))};
        JobChange second{.job = first.job};
        second.job.revision = 2;
        for (const JobChange& change : {first, second}) {
          store().Apply(std::make_shared<JobChange>(change),
                        [&](const absl::Status& status) { count(status, changed); });
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  // What was put before this was told before it.
  EXPECT_TRUE(store().ApplyAndWait({.job = NewJob("last")}).ok());
  EXPECT_EQ(accepted, kThreads * kJobs / 2);
  EXPECT_EQ(taken, kThreads * kJobs / 2);
  EXPECT_EQ(changed, kThreads * kJobs * 2);
  EXPECT_EQ(other, 0);
  harness_->Restart();
  EXPECT_EQ(store().List({.limit = 1000})->jobs.size(), 100u + 200u + 1u);
  EXPECT_EQ(store().Read("k3-49")->revision, 2u);
}

TEST_P(JobStoreTest, EachTenantHasItsOwnRequestIds) {
  Job first = NewJob("j1", "same");
  first.tenant = "acme";
  Job second = NewJob("j2", "same");
  second.tenant = "acm";
  Job third = NewJob("j3", "esame");
  third.tenant = "acm";
  ASSERT_TRUE(store().ApplyAndWait({.job = first}).ok());
  ASSERT_TRUE(store().ApplyAndWait({.job = second}).ok());
  ASSERT_TRUE(store().ApplyAndWait({.job = third}).ok());
  Job again = NewJob("j4", "same");
  again.tenant = "acme";
  EXPECT_EQ(store().ApplyAndWait({.job = again}).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(*store().FindRequest("acme", "same"), "j1");
  EXPECT_EQ(*store().FindRequest("acm", "same"), "j2");
  EXPECT_EQ(*store().FindRequest("", "same"), std::nullopt);
  EXPECT_EQ(Names(*store().List({.tenant = "acm"})), "j3 j2 ");
  EXPECT_EQ(Names(*store().List({.tenant = "other"})), "");
}

TEST_P(JobStoreTest, LiveJobsKnowTheirPlaces) {
  Job job = FullJob();
  job.state = JobState::kQueued;
  job.spec.no_cache = false;
  ASSERT_TRUE(store().ApplyAndWait({.job = job}).ok());
  const auto only = [&] {
    std::vector<LiveJob> live;
    EXPECT_TRUE(store()
                    .ForEachLive([&](LiveJob one) {
                      live.push_back(std::move(one));
                      return absl::OkStatus();
                    })
                    .ok());
    return live;
  };
  harness_->Restart();
  EXPECT_THAT(only(), ElementsAre(ToLiveJob(job)));
  EXPECT_EQ(only()[0].flight_key, "default/abc");
  job.revision = 2;
  job.state = JobState::kRunning;
  ASSERT_TRUE(store().ApplyAndWait({.job = job}).ok());
  job.revision = 3;
  ASSERT_TRUE(store().ApplyAndWait({.job = job}).ok());
  harness_->Restart();
  EXPECT_THAT(only(), ElementsAre(ToLiveJob(job)));
}

TEST_P(JobStoreTest, PruneForgetsWhatEndedBefore) {
  for (int i = 0; i < 5; ++i) {
    Job job = NewJob(absl::StrCat("j", i), absl::StrCat("r", i));
    job.state = i == 0 ? JobState::kQueued : JobState::kFailed;
    job.end_time = absl::FromUnixSeconds(2000 - i);
    job.last_seq = 1;
    ASSERT_TRUE(
        store().ApplyAndWait({.job = job, .events = {LogLine(1, "a")}, .config_text = "c"}).ok());
  }
  // j4 ended first; j0 has not ended.
  EXPECT_EQ(*store().Prune(absl::FromUnixSeconds(1990), 10), 0u);
  EXPECT_EQ(*store().Prune(absl::FromUnixSeconds(3000), 1), 1u);
  EXPECT_EQ(Names(*store().List({})), "j3 j2 j1 j0 ");
  EXPECT_EQ(*store().Prune(absl::FromUnixSeconds(1999), 10), 2u);
  harness_->Restart();
  EXPECT_EQ(Names(*store().List({})), "j1 j0 ");
  EXPECT_EQ(store().Read("j3").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store().ReadConfig("j3").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(*store().ReadEvents("j3", 1, 10, 1000), IsEmpty());
  EXPECT_THAT(*store().ReadEvents("j1", 1, 10, 1000), SizeIs(1));
  EXPECT_EQ(*store().FindRequest("", "r3"), std::nullopt);
  EXPECT_EQ(*store().FindRequest("", "r1"), "j1");
  EXPECT_TRUE(store().ApplyAndWait({.job = NewJob("j9", "r3")}).ok());
  EXPECT_EQ(*store().Prune(absl::InfiniteFuture(), 10), 1u);
}

}  // namespace conformance
}  // namespace npuc::jobs

#endif  // NPUC_SERVER_JOBS_JOB_STORE_CONFORMANCE_TEST_UTIL_H_
