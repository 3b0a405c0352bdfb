#include "server/worker/worker_pool.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <mutex>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/sanitized.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/worker/process_tree_test_util.h"

namespace npuc::worker {
namespace {

namespace fs = std::filesystem;
using absl::StatusCode;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = WorkerOutcome::Kind;
using Limit = WorkerOutcome::Limit;

constexpr char kModel[] = "the model's bytes";

// Keeps what it is told, and calls back.
class Recorder : public WorkerEvents {
 public:
  void OnLog(absl::string_view line) override { log.emplace_back(line); }
  void OnStage(absl::string_view stage, double fraction) override {
    stages.push_back(absl::StrCat(stage, " ", fraction));
    if (on_stage) on_stage(stage);
  }
  void OnDiagnostic(const Diagnostic& diagnostic) override {
    diagnostics.push_back(diagnostic.ToString());
  }
  void OnArtifact(const WorkerArtifact& artifact) override {
    told.push_back(artifact);
    if (on_artifact) on_artifact();
  }
  void OnCompiled(const std::vector<Diagnostic>& diagnostics) override { ++compiled; }
  bool IsCancelled() override { return cancelled; }

  // The number after the word, in the log.
  int NumberAfter(absl::string_view word) const {
    for (const std::string& line : log) {
      int number = 0;
      if (absl::StartsWith(line, word) && absl::SimpleAtoi(line.substr(word.size()), &number)) {
        return number;
      }
    }
    return 0;
  }

  std::vector<std::string> log, stages, diagnostics;
  std::vector<WorkerArtifact> told;
  int compiled = 0;
  std::function<void()> on_artifact;
  std::function<void(absl::string_view)> on_stage;
  std::atomic<bool> cancelled{false};
};

// Everything but these, for acts that they would stop before what is tested can.
constexpr uint32_t kWithoutSystemCalls = Bit(Mechanism::kSystemCalls) | Bit(Mechanism::kLandlock);
// As on a host that has rlimits and process groups alone.
constexpr uint32_t kWithoutAll = kAllMechanisms;

// Dead; perhaps not yet reaped by init, who inherits the workers of a killed warm parent.
bool IsGone(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::string number, name, state;
  return !(file >> number >> name >> state) || state == "Z" || state == "X";
}

// For one whose warm parent was killed: all it had is closed when Run returns, its last step may be
// still ahead. Ends by the test's time limit where it stays.
void AwaitGone(pid_t pid) {
  while (!IsGone(pid)) std::this_thread::yield();
}

class WorkerPoolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "/workerXXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    std::ofstream(folder_ + "/blob") << kModel;
    std::ofstream(folder_ + "/side") << "side bytes";
    setenv("NPUC_TEST_SECRET", "x", 1);
    StartPool();
  }
  void TearDown() override {
    pool_.reset();
    fs::remove_all(folder_);
  }
  void StartPool(absl::Duration answer_timeout = absl::Seconds(20)) {
    pool_.reset();
    WorkerPoolOptions options;
    options.program = NPUC_HOSTILE_WORKER;
    options.answer_timeout = answer_timeout;
    options.sandbox = SandboxMode::kBestEffort;  // what is missing here is told by sandbox_test
    options.now = now;
    options.spares = spares_;
    options.on_parent_lost = [this](absl::string_view how) {
      const std::lock_guard<std::mutex> lock(lost_mutex_);
      lost_.emplace_back(how);
    };
    if (without_ != 0) options.arguments = {"without", absl::StrCat(without_)};
    auto pool = WorkerPool::Start(options);
    ASSERT_TRUE(pool.ok()) << pool.status();
    pool_ = *std::move(pool);
  }
  WorkerJob Job(const std::string& config) {
    WorkerJob job;
    job.run_id = absl::StrCat("run", ++count_);
    job.job_folder = absl::StrCat(folder_, "/", job.run_id);
    job.config_text = config;
    job.config_name = "config.yaml";
    job.inputs = {{{"MODEL_FILE", "model.pb", Sha256Hex(kModel)}, folder_ + "/blob"}};
    job.timestamp_seconds = 42;
    return job;
  }
  WorkerOutcome Run(const WorkerJob& job, Recorder& events) {
    auto outcome = pool_->Run(job, events);
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    return outcome.ok() ? *std::move(outcome) : WorkerOutcome{};
  }
  WorkerOutcome Run(const std::string& config) {
    Recorder events;
    return Run(Job(config), events);
  }
  // The keepers of runs that are over, which may be taking their last steps. Ends by the test's
  // time limit where one stays.
  void AwaitLeft() {
    while (pool_->GetStats().leaving != 0) std::this_thread::yield();
  }
  // Until another warm parent than `old` is ready; ends by the test's time limit.
  void AwaitReplaced(int old) {
    int now = old;
    while (now == old || now == 0) {
      std::this_thread::yield();
      now = pool_->GetStats().parent_pid;
    }
  }
  // Kills the warm parent and waits until the pool knows.
  void KillParent() {
    const int old = pool_->GetStats().parent_pid;
    kill(old, SIGKILL);
    while (pool_->GetStats().parent_pid == old) std::this_thread::yield();
  }
  void ExpectHealthy() {
    const WorkerOutcome outcome = Run("ok");
    EXPECT_EQ(outcome.kind, Kind::kSucceeded) << outcome.text;
    EXPECT_EQ(pool_->GetStats().running, 0u);
  }
  int AwaitPid(const std::string& run_id) {
    while (true) {
      const int pid = pool_->PidOf(run_id);
      if (pid != 0) return pid;
      std::this_thread::yield();
    }
  }

  void StartPoolWithout(uint32_t mechanisms) {
    without_ = mechanisms;
    StartPool();
  }
  std::function<absl::Time()> now;
  uint32_t without_ = 0;
  uint32_t spares_ = 0;
  std::mutex lost_mutex_;
  std::vector<std::string> lost_;  // guarded by lost_mutex_
  std::string folder_;
  std::atomic<int> count_{0};
  std::unique_ptr<WorkerPool> pool_;
};

TEST_F(WorkerPoolTest, Compiles) {
  Recorder events;
  WorkerJob job = Job("ok OPT_CONFIG");
  job.inputs.push_back({{"OPT_CONFIG", "opt.json", Sha256Hex("side bytes")}, folder_ + "/side"});
  const WorkerOutcome outcome = Run(job, events);
  ASSERT_EQ(outcome.kind, Kind::kSucceeded) << outcome.text;
  EXPECT_EQ(outcome.code, StatusCode::kOk);
  EXPECT_FALSE(outcome.retryable());
  const std::string model = kModel;
  const std::string reversed(model.rbegin(), model.rend());
  const std::string side = "opt.json=side bytes";
  ASSERT_EQ(outcome.artifacts.size(), 2u);
  EXPECT_EQ(outcome.artifacts[0].name, "model.h");
  EXPECT_EQ(*outcome.artifacts[0].bytes, reversed);
  EXPECT_EQ(outcome.artifacts[1].name, "OPT_CONFIG.txt");
  EXPECT_EQ(*outcome.artifacts[1].bytes, side);
  // Told before, too, and the very same: they are not read twice.
  ASSERT_EQ(events.told.size(), 2u);
  EXPECT_EQ(events.told[0].bytes, outcome.artifacts[0].bytes);
  EXPECT_EQ(events.told[1].bytes, outcome.artifacts[1].bytes);
  EXPECT_THAT(events.log, ElementsAre("model of 17 bytes, time 42", "escape \\x1b[31m and \\xff"));
  EXPECT_THAT(events.stages, ElementsAre("import 0", "emit 0.5", "back 0.5"));
  ASSERT_EQ(outcome.diagnostics.size(), 1u);
  EXPECT_THAT(events.diagnostics, ElementsAre(outcome.diagnostics[0].ToString()));
  EXPECT_EQ(outcome.diagnostics[0].ToString(),
            (Diagnostic{DiagnosticKind::kInternalError, "told only", "model.pb", 3, 4, "n", "Op",
                        "l", "do it"})
                .ToString());
  EXPECT_GT(outcome.start_time, absl::ZeroDuration());
  EXPECT_GT(outcome.peak_memory_bytes, 0u);
  EXPECT_EQ(pool_->GetStats().started, 1u);
}

// The header is taken while the compile goes on; what becomes of it, the end decides.
TEST_F(WorkerPoolTest, TheFirstArtifactComesEarly) {
  Recorder events;
  WorkerOutcome outcome = Run(Job("ok"), events);
  ASSERT_EQ(outcome.kind, Kind::kSucceeded) << outcome.text;
  ASSERT_EQ(outcome.artifacts.size(), 1u);
  ASSERT_EQ(events.told.size(), 1u);
  EXPECT_EQ(events.told[0].bytes, outcome.artifacts[0].bytes);
  EXPECT_EQ(events.compiled, 1);

  // It is told though the worker says no more: that ends the run.
  Recorder hang;
  hang.on_artifact = [&] { hang.cancelled = true; };
  EXPECT_EQ(Run(Job("early_hang"), hang).kind, Kind::kCancelled);
  ASSERT_EQ(hang.told.size(), 1u);
  EXPECT_EQ(*hang.told[0].bytes, "early bytes");
  EXPECT_EQ(hang.compiled, 0);

  Recorder fail;
  outcome = Run(Job("early_fail"), fail);
  EXPECT_EQ(outcome.kind, Kind::kFailed);
  EXPECT_THAT(outcome.text, HasSubstr("after all"));
  EXPECT_TRUE(outcome.artifacts.empty());
  EXPECT_EQ(fail.compiled, 0);
  ExpectHealthy();
}

// A bell that never stops is not listened to for long: then nobody is at its other end.
TEST_F(WorkerPoolTest, ABellThatNeverStops) {
  const WorkerOutcome outcome = Run("ring");
  EXPECT_EQ(outcome.kind, Kind::kCrashed) << outcome.text;
  EXPECT_EQ(outcome.signal, SIGPIPE);
  ExpectHealthy();
}

TEST_F(WorkerPoolTest, TheModelAtFault) {
  Recorder events;
  WorkerOutcome outcome = Run(Job("fail"), events);
  EXPECT_EQ(outcome.kind, Kind::kFailed);
  EXPECT_EQ(outcome.code, StatusCode::kCancelled);
  EXPECT_THAT(outcome.text, HasSubstr("a.pb: one"));
  EXPECT_EQ(outcome.diagnostics.size(), 2u);
  EXPECT_EQ(events.diagnostics.size(), 2u);
  outcome = Run("bad config");
  EXPECT_EQ(outcome.kind, Kind::kFailed);
  EXPECT_EQ(outcome.diagnostics.size(), 1u);
  EXPECT_THAT(outcome.text, HasSubstr("config.yaml:1:2: cannot read"));
  outcome = Run("unknown");
  EXPECT_EQ(outcome.code, StatusCode::kUnimplemented);
  outcome = Run("ok OPT_CONFIG");  // named, not brought
  EXPECT_EQ(outcome.code, StatusCode::kInvalidArgument);
  EXPECT_THAT(outcome.text, HasSubstr("{MODEL_FILE, OPT_CONFIG}"));
}

TEST_F(WorkerPoolTest, CrashesAreTold) {
  struct Case {
    const char* act;
    int signal;
    int exit_code;
    const char* text;
  };
  for (const Case& c :
       std::vector<Case>{{"segv", SIGSEGV, 0, "worker crashed: signal 11 (SIGSEGV) in stage 'act'"},
                         {"abort", SIGABRT, 0, "signal 6 (SIGABRT)"},
                         {"exit", 0, 7, "exit code 7 without a result"},
                         {"exit0", 0, 0, "exit code 0 without a result"},
                         {"half_frame", 0, 0, "exit code 0 without a result"},
                         {"result_then_segv", SIGSEGV, 0, "SIGSEGV"},
                         {"nonsense", 0, 0, "worker protocol: malformed frame"},
                         {"huge_frame", 0, 0, "worker protocol: malformed frame"},
                         {"event_after_result", 0, 0, "event after the result"},
                         {"outside_artifact", 0, 0, "bad artifact"},
                         {"missing_artifact", 0, 0, "cannot open artifact 'model.h'"},
                         {"symlink_artifact", SIGSYS, 0, "a system call that no compile makes"},
                         {"fifo_artifact", SIGSYS, 0, "a system call that no compile makes"},
                         {"twice_artifact", 0, 0, "told of twice"},
                         {"early_lie", 0, 0, "told of twice"},
                         {"grown_artifact", 0, 0, "is not the file that the worker told of"}}) {
    const WorkerOutcome outcome = Run(c.act);
    EXPECT_EQ(outcome.kind, Kind::kCrashed) << c.act << ": " << outcome.text;
    EXPECT_EQ(outcome.code, StatusCode::kInternal) << c.act;
    EXPECT_EQ(outcome.signal, c.signal) << c.act;
    EXPECT_EQ(outcome.exit_code, c.exit_code) << c.act;
    EXPECT_THAT(outcome.text, HasSubstr(c.text)) << c.act;
    EXPECT_TRUE(outcome.artifacts.empty()) << c.act;
    EXPECT_FALSE(outcome.retryable());
  }
  EXPECT_THAT(Run("abort").printed_tail, HasSubstr("internal invariant broken: x > 0"));
  EXPECT_EQ(pool_->GetStats().parent_restarts, 0u);
  ExpectHealthy();
}

TEST_F(WorkerPoolTest, ArtifactsThatAreNoFilesAreRefusedByThePoolToo) {
  StartPoolWithout(kWithoutSystemCalls);
  for (const auto& [act, text] :
       {std::pair("symlink_artifact", "cannot open artifact 'model.h'"),
        std::pair("fifo_artifact", "is not the file that the worker told of")}) {
    const WorkerOutcome outcome = Run(act);
    // A look at the folder may have come first.
    if (outcome.kind == Kind::kLimit) {
      EXPECT_EQ(outcome.limit, Limit::kOutput);
      continue;
    }
    EXPECT_EQ(outcome.kind, Kind::kCrashed);
    EXPECT_THAT(outcome.text, HasSubstr(text));
  }
  ExpectHealthy();
}

TEST_F(WorkerPoolTest, AnExceptionIsAnInternalFailure) {
  for (const char* act : {"throw", "bad_artifact_name"}) {
    const WorkerOutcome outcome = Run(act);
    EXPECT_EQ(outcome.kind, Kind::kFailed) << outcome.text;
    EXPECT_EQ(outcome.code, StatusCode::kInternal) << act;
  }
  EXPECT_THAT(Run("throw").text, HasSubstr("thrown"));
}

TEST_F(WorkerPoolTest, WallLimit) {
  for (const char* act : {"hang", "hang_deaf", "hang_closed", "thread_hang", "stray_hang"}) {
    const bool forks = absl::StrContains(act, "thread") || absl::StrContains(act, "stray");
    if (forks && without_ == 0) StartPoolWithout(kWithoutSystemCalls);
    WorkerJob job = Job(act);
    job.limits.wall = absl::Seconds(3);  // long enough to reach a stage on a busy machine
    Recorder events;
    const WorkerOutcome outcome = Run(job, events);
    // Where processes are limited, the thread cannot start, and the run fails by that.
    if (absl::string_view(act) == "thread_hang" && outcome.kind == Kind::kFailed) continue;
    EXPECT_EQ(outcome.kind, Kind::kLimit) << act << ": " << outcome.text;
    EXPECT_EQ(outcome.limit, Limit::kWall) << act;
    EXPECT_EQ(outcome.code, StatusCode::kDeadlineExceeded);
    EXPECT_THAT(outcome.text, HasSubstr("time limit of 3s reached in stage '"));
  }
  ExpectHealthy();
}

TEST_F(WorkerPoolTest, WallLimitByTheInjectedClock) {
  std::atomic<int64_t> seconds{0};
  now = [&] { return absl::FromUnixSeconds(seconds); };
  StartPool();
  WorkerJob job = Job("hang");
  job.limits.wall = absl::Hours(5);
  Recorder events;
  events.on_stage = [&](absl::string_view) { seconds = 5 * 3600; };
  const WorkerOutcome outcome = Run(job, events);
  EXPECT_EQ(outcome.limit, Limit::kWall);
  EXPECT_EQ(outcome.wall_time, absl::Hours(5));
}

TEST_F(WorkerPoolTest, AHostWithoutMemoryEndsWorkersFirst) {
  const auto score = [](pid_t pid) {
    int value = 0;
    std::ifstream(absl::StrCat("/proc/", pid, "/oom_score_adj")) >> value;
    return value;
  };
  EXPECT_EQ(score(pool_->GetStats().parent_pid), 500);
  WorkerJob job = Job("hang");
  Recorder events;
  int of_run = 0;
  events.on_stage = [&](absl::string_view) {
    const pid_t worker = AwaitPid(job.run_id);
    of_run = score(worker);
    kill(worker, SIGKILL);
  };
  Run(job, events);
  EXPECT_EQ(of_run, 1000);
}

TEST_F(WorkerPoolTest, CpuLimit) {
  for (const char* act : {"spin", "spin_deaf"}) {
    WorkerJob job = Job(act);
    job.limits.cpu_seconds = 1;
    Recorder events;
    const WorkerOutcome outcome = Run(job, events);
    EXPECT_EQ(outcome.kind, Kind::kLimit) << act << ": " << outcome.text;
    EXPECT_EQ(outcome.limit, Limit::kCpu) << act;
    EXPECT_EQ(outcome.text, "CPU time limit of 1 s reached");
    // The limit counts clock ticks, the figure is exact: on a busy machine the two drift apart.
    EXPECT_GE(outcome.cpu_time, absl::Milliseconds(500));
  }
  ExpectHealthy();
}

TEST_F(WorkerPoolTest, MemoryLimit) {
  WorkerJob job = Job("memory");
  job.limits.memory_bytes = 256 << 20;
#ifdef NPUC_SANITIZED
  job.limits.wall = absl::Seconds(3);
#endif
  Recorder events;
  const WorkerOutcome outcome = Run(job, events);
#ifdef NPUC_SANITIZED
  // The sanitizer's allocator ends the process in its own way, or waits for its own lock for ever.
  EXPECT_NE(outcome.kind, Kind::kSucceeded) << outcome.text;
#else
  EXPECT_EQ(outcome.kind, Kind::kLimit) << outcome.text;
  EXPECT_EQ(outcome.limit, Limit::kMemory);
  EXPECT_EQ(outcome.text, "memory limit of 268435456 bytes reached");
  EXPECT_LT(outcome.peak_memory_bytes, uint64_t{300} << 20);
#endif
  ExpectHealthy();
}

TEST_F(WorkerPoolTest, OutputLimits) {
  for (const char* act : {"big_artifact", "big_artifacts", "write_big", "many_files", "folder"}) {
    if (absl::string_view(act) == "folder") StartPoolWithout(kWithoutSystemCalls);
    WorkerJob job = Job(act);
    job.limits.output_bytes = 1 << 20;
    Recorder events;
    const WorkerOutcome outcome = Run(job, events);
    EXPECT_EQ(outcome.kind, Kind::kLimit) << act << ": " << outcome.text;
    EXPECT_EQ(outcome.limit, Limit::kOutput) << act;
    EXPECT_EQ(outcome.code, StatusCode::kResourceExhausted);
  }
  ExpectHealthy();
}

TEST_F(WorkerPoolTest, WhatItPrintsIsCaught) {
  Recorder events;
  const WorkerOutcome outcome = Run(Job("print"), events);
  EXPECT_EQ(outcome.kind, Kind::kSucceeded);
  EXPECT_THAT(events.log, Contains("printed: hello"));
  EXPECT_THAT(events.log, Contains("printed: to stderr"));
  EXPECT_THAT(events.log, Contains("printed: no newline \\x1b[2J"));
  EXPECT_THAT(outcome.printed_tail, HasSubstr("hello\n"));
}

TEST_F(WorkerPoolTest, FloodsAreBounded) {
  for (const char* act : {"print_flood", "log_flood"}) {
    WorkerJob job = Job(act);
    job.limits.log_bytes = 10000;
    Recorder events;
    const WorkerOutcome outcome = Run(job, events);
    EXPECT_EQ(outcome.kind, Kind::kSucceeded) << outcome.text;
    size_t total = 0;
    for (const std::string& line : events.log) total += line.size() + 1;
    EXPECT_LE(total, 10000u);
    EXPECT_GT(total, 9000u);
    EXPECT_GT(outcome.dropped_log_bytes, 100000u);
    EXPECT_LE(outcome.printed_tail.size(), 8192u);
  }
}

TEST_F(WorkerPoolTest, NoProcessIsLeftBehind) {
  // By the PID namespace, and without it by hunting.
  for (const uint32_t without : {kWithoutSystemCalls, kWithoutAll}) {
    StartPoolWithout(without);
    for (const char* act : {"stray", "stray_session", "stray_segv", "stray_hang"}) {
      WorkerJob job = Job(act);
      Recorder events;
      events.on_stage = [&](absl::string_view stage) {
        if (stage == "left") {
          EXPECT_TRUE(pool_->Cancel(job.run_id));
        }
      };
      const WorkerOutcome outcome = Run(job, events);
      // RLIMIT_NPROC binds all but root.
      const bool refused = ::testing::Matches(Contains("fork refused"))(events.log);
      EXPECT_TRUE(refused || events.NumberAfter("stray ") > 0) << act;
      AwaitLeft();
      EXPECT_THAT(ProcessesBelow(pool_->GetStats().parent_pid), ElementsAre()) << act;
      EXPECT_NE(outcome.kind, Kind::kLost) << outcome.text;
    }
    ExpectHealthy();
  }
}

TEST_F(WorkerPoolTest, TheWorkerIsShutIn) {
  StartPoolWithout(kWithoutSystemCalls);  // which it needs to look around
  Recorder events;
  EXPECT_EQ(Run(Job("surroundings"), events).kind, Kind::kSucceeded);
  EXPECT_THAT(events.log,
              ElementsAre("open 0 1 2 3 4 5 6 7", "umask 63", "stdin 0", "leader 0",
                          "no_new_privs 1", "core 0", "nofile 64", "secret 0", "blocked 0"));
}

TEST_F(WorkerPoolTest, Cancel) {
  for (const char* act : {"hang", "hang_deaf"}) {
    WorkerJob job = Job(act);
    Recorder events;
    int pid = 0;
    events.on_stage = [&](absl::string_view) {
      pid = AwaitPid(job.run_id);
      EXPECT_TRUE(pool_->Cancel(job.run_id));
    };
    const WorkerOutcome outcome = Run(job, events);
    EXPECT_EQ(outcome.kind, Kind::kCancelled) << outcome.text;
    EXPECT_EQ(outcome.code, StatusCode::kCancelled);
    EXPECT_TRUE(IsGone(pid));
    EXPECT_FALSE(pool_->Cancel(job.run_id));
  }
  Recorder events;
  events.cancelled = true;  // before the start, through the callback
  EXPECT_EQ(Run(Job("hang"), events).kind, Kind::kCancelled);
  ExpectHealthy();
}

TEST_F(WorkerPoolTest, KilledWorkerIsLostAndTheNextIsNot) {
  for (const int number : {SIGKILL, SIGTERM}) {
    WorkerJob job = Job("hang");
    Recorder events;
    events.on_stage = [&](absl::string_view) { kill(AwaitPid(job.run_id), number); };
    const WorkerOutcome outcome = Run(job, events);
    EXPECT_EQ(outcome.kind, Kind::kLost);
    EXPECT_TRUE(outcome.retryable());
    EXPECT_EQ(outcome.signal, number);
    EXPECT_THAT(outcome.text, HasSubstr("killed from outside by signal"));
    ExpectHealthy();
  }
  EXPECT_EQ(pool_->GetStats().parent_restarts, 0u);
}

TEST_F(WorkerPoolTest, KilledParentIsReplaced) {
  WorkerJob job = Job("hang_deaf");
  Recorder events;
  int pid = 0;
  events.on_stage = [&](absl::string_view) {
    pid = AwaitPid(job.run_id);
    kill(pool_->GetStats().parent_pid, SIGKILL);
  };
  const WorkerOutcome outcome = Run(job, events);
  EXPECT_EQ(outcome.kind, Kind::kInterrupted) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("warm parent died"));
  EXPECT_TRUE(outcome.retryable());
  AwaitGone(pid);
  ExpectHealthy();
  EXPECT_EQ(pool_->GetStats().parent_restarts, 1u);
  // Killed while idle: no run is needed to find out.
  const int old = pool_->GetStats().parent_pid;
  KillParent();
  AwaitReplaced(old);
  ExpectHealthy();
  pool_.reset();  // which is no loss
  EXPECT_THAT(lost_, ElementsAre("signal 9 (SIGKILL)", "signal 9 (SIGKILL)"));
}

TEST_F(WorkerPoolTest, StoppedParentIsReplaced) {
  StartPool(absl::Milliseconds(500));
  const int stopped = pool_->GetStats().parent_pid;
  kill(stopped, SIGSTOP);
  // A run is tried once: what its first try told may not be mixed with that of a second.
  EXPECT_EQ(Run("ok").kind, Kind::kInterrupted);
  ExpectHealthy();
  EXPECT_EQ(pool_->GetStats().parent_restarts, 1u);
  EXPECT_TRUE(IsGone(stopped));

  // Stopped during a run: nobody answers the kill, so the parent is killed, and the run with it.
  WorkerJob job = Job("hang_deaf");
  Recorder events;
  int pid = 0;
  events.on_stage = [&](absl::string_view stage) {
    if (stage != "deaf") return;
    pid = AwaitPid(job.run_id);
    kill(pool_->GetStats().parent_pid, SIGSTOP);
    pool_->Cancel(job.run_id);
  };
  EXPECT_EQ(Run(job, events).kind, Kind::kCancelled);
  AwaitGone(pid);
  ExpectHealthy();
  EXPECT_EQ(pool_->GetStats().parent_restarts, 2u);
}

// Waits until as many processes are below the warm parent; ends by the test's time limit.
std::vector<pid_t> AwaitBelow(pid_t parent, size_t count) {
  std::vector<pid_t> below;
  do {
    std::this_thread::yield();
    below = ProcessesBelow(parent);
  } while (below.size() != count);
  std::sort(below.begin(), below.end());
  return below;
}

TEST_F(WorkerPoolTest, ARunTakesASpareAndAnotherIsMade) {
  spares_ = 2;
  StartPool();
  if (!pool_->sandbox().Has(Mechanism::kPidNamespace) ||
      !pool_->sandbox().Has(Mechanism::kOutputFolder)) {
    GTEST_SKIP() << "this host has no spares";
  }
  ExpectHealthy();
  AwaitLeft();
  const int parent = pool_->GetStats().parent_pid;
  std::vector<pid_t> waiting = AwaitBelow(parent, 4);  // keeper and worker each
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Run("ok").kind, Kind::kSucceeded);
    AwaitLeft();
    const std::vector<pid_t> now_waiting = AwaitBelow(parent, 4);
    std::vector<pid_t> stayed;
    std::set_intersection(waiting.begin(), waiting.end(), now_waiting.begin(), now_waiting.end(),
                          std::back_inserter(stayed));
    EXPECT_EQ(stayed.size(), 2u);  // one keeper and its worker were used, once
    waiting = now_waiting;
  }
  // Those that fit no more are dropped, those that were killed are not used.
  WorkerJob other = Job("ok");
  other.limits.output_bytes = 1 << 20;
  Recorder events;
  EXPECT_EQ(Run(other, events).kind, Kind::kSucceeded);
  AwaitLeft();
  waiting = AwaitBelow(parent, 4);
  for (const pid_t pid : waiting) kill(pid, SIGKILL);
  for (const pid_t pid : waiting) AwaitGone(pid);
  other = Job("ok");
  other.limits.output_bytes = 1 << 20;
  EXPECT_EQ(Run(other, events).kind, Kind::kSucceeded);
  AwaitLeft();
  waiting = AwaitBelow(parent, 4);
  // They end with the warm parent.
  kill(parent, SIGKILL);
  for (const pid_t pid : waiting) AwaitGone(pid);
  AwaitReplaced(parent);
  ExpectHealthy();
}

TEST_F(WorkerPoolTest, AWorkerThatEndsBeforeItHasBegunIsNoFaultOfTheJob) {
  spares_ = 1;
  StartPool();
  if (!pool_->sandbox().Has(Mechanism::kPidNamespace) ||
      !pool_->sandbox().Has(Mechanism::kOutputFolder)) {
    GTEST_SKIP() << "this host has no spares";
  }
  ExpectHealthy();
  AwaitLeft();
  const int parent = pool_->GetStats().parent_pid;
  std::vector<pid_t> waiting = AwaitBelow(parent, 2);
  const pid_t worker = ProcessesBelow(waiting[0]).empty() ? waiting[0] : waiting[1];
  kill(worker, SIGSTOP);
  const WorkerJob job = Job("ok");
  std::thread killer([&] {
    AwaitPid(job.run_id);
    kill(worker, SIGKILL);
  });
  Recorder events;
  const auto outcome = pool_->Run(job, events);
  killer.join();
  EXPECT_TRUE(IsHostTrouble(outcome.status())) << outcome.status();
  ExpectHealthy();
}

TEST_F(WorkerPoolTest, ParallelRunsDoNotDisturbEachOther) {
  const std::vector<std::string> acts = {"ok", "segv", "hang", "ok"};
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (size_t t = 0; t < acts.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        WorkerJob job = Job(acts[t]);
        Recorder events;
        events.on_stage = [&](absl::string_view) {
          if (acts[t] == "hang") pool_->Cancel(job.run_id);
        };
        const auto outcome = pool_->Run(job, events);
        const Kind wanted = acts[t] == "ok"     ? Kind::kSucceeded
                            : acts[t] == "segv" ? Kind::kCrashed
                                                : Kind::kCancelled;
        right += outcome.ok() && outcome->kind == wanted ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 40);
}

TEST_F(WorkerPoolTest, AFolderOnDiskIsMadeWhereNoneInMemoryIs) {
  Recorder events;
  WorkerJob job = Job("ok");
  ASSERT_EQ(Run(job, events).kind, Kind::kSucceeded);
  const bool in_memory = pool_->sandbox().Has(Mechanism::kOutputFolder);
  EXPECT_EQ(fs::exists(job.job_folder), !in_memory);
  StartPoolWithout(Bit(Mechanism::kOutputFolder));
  job = Job("ok");
  ASSERT_EQ(Run(job, events).kind, Kind::kSucceeded);
  EXPECT_TRUE(fs::exists(job.job_folder + "/model.h"));
  job.run_id += "again";
  EXPECT_EQ(pool_->Run(job, events).status().code(), StatusCode::kAlreadyExists);
  job.job_folder += "/none/none";
  EXPECT_TRUE(IsHostTrouble(pool_->Run(job, events).status()));
}

TEST_F(WorkerPoolTest, RefusesWhatCannotRun) {
  Recorder events;
  const auto code = [&](const std::function<void(WorkerJob&)>& change) {
    WorkerJob job = Job("ok");
    change(job);
    return pool_->Run(job, events).status().code();
  };
  EXPECT_EQ(code([](WorkerJob& j) { j.run_id.clear(); }), StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](WorkerJob& j) { j.job_folder.assign(1, 'x'); }), StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](WorkerJob& j) { j.limits.cpu_seconds = 0; }), StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](WorkerJob& j) { j.config_text.resize((1 << 20) + 1); }),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](WorkerJob& j) { j.inputs[0].file.sha256.assign(1, 'x'); }),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](WorkerJob& j) { j.inputs[0].path += "x"; }), StatusCode::kNotFound);
  EXPECT_EQ(code([&](WorkerJob& j) { j.inputs[0].path = folder_; }), StatusCode::kInvalidArgument);
  EXPECT_EQ(code([&](WorkerJob& j) {
              mkfifo((folder_ + "/fifo").c_str(), 0600);
              j.inputs[0].path = folder_ + "/fifo";
            }),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(code([](WorkerJob& j) {
              for (int i = 0; i < 16; ++i) j.inputs.push_back(WorkerInput(j.inputs[0]));
            }),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(pool_->GetStats().started, 0u);

  WorkerJob job = Job("ok");
  job.inputs[0].file.sha256 = Sha256Hex("other");
  const WorkerOutcome outcome = Run(job, events);
  EXPECT_EQ(outcome.kind, Kind::kLost);
  EXPECT_EQ(outcome.code, StatusCode::kDataLoss);
  EXPECT_THAT(outcome.text, HasSubstr("is not the file that was uploaded"));
  pool_->Shutdown();
  EXPECT_EQ(code([](WorkerJob&) {}), StatusCode::kUnavailable);
}

TEST_F(WorkerPoolTest, StartFailsClearly) {
  WorkerPoolOptions options;
  options.program = folder_ + "/none";
  const absl::Status none = WorkerPool::Start(options).status();
  EXPECT_EQ(none.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(none.message()),
              HasSubstr("directory; build or install the npuc-worker of npucd's own build"));
  options.program = folder_ + "/text";
  std::ofstream(options.program) << "no program";
  fs::permissions(options.program, fs::perms::owner_all);
  EXPECT_FALSE(WorkerPool::Start(options).ok());
  options.program = "/bin/true";
  const absl::Status silent = WorkerPool::Start(options).status();
  EXPECT_EQ(silent.code(), StatusCode::kUnavailable);
  EXPECT_THAT(std::string(silent.message()),
              HasSubstr("get ready; build or install the npuc-worker of npucd's own build"));
  options.program = NPUC_HOSTILE_WORKER;
  options.build_id = "build of the daemon";
  const absl::Status other = WorkerPool::Start(options).status();
  EXPECT_EQ(other.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(other.message()), HasSubstr("build of the daemon"));
  EXPECT_THAT(std::string(other.message()),
              HasSubstr("install npucd and npuc-worker of one build"));
  options.build_id.clear();
  options.arguments = {"never_ready"};
  options.answer_timeout = absl::Milliseconds(100);
  EXPECT_EQ(WorkerPool::Start(options).status().code(), StatusCode::kUnavailable);
}

TEST_F(WorkerPoolTest, TheEndOfThePoolEndsItsProcesses) {
  WorkerJob job = Job("hang_deaf");
  Recorder events;
  int pid = 0;
  const int parent = pool_->GetStats().parent_pid;
  events.on_stage = [&](absl::string_view) {
    pid = AwaitPid(job.run_id);
    pool_->Shutdown();
  };
  EXPECT_EQ(Run(job, events).kind, Kind::kCancelled);
  pool_.reset();
  EXPECT_TRUE(IsGone(pid));
  EXPECT_TRUE(IsGone(parent));
}

}  // namespace
}  // namespace npuc::worker
