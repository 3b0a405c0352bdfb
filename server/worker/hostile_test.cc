// The hostile corpus, through the real pool: each attack ends as it must, nothing outside has
// changed, and the next job is right. And the test of the test: with the walls left out, the same
// attacks succeed.
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/sanitized.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/worker/hostile_attacks.h"
#include "server/worker/process_tree_test_util.h"
#include "server/worker/worker_pool.h"

namespace npuc::worker {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::Not;
using Kind = WorkerOutcome::Kind;
using Limit = WorkerOutcome::Limit;

constexpr char kModel[] = "the model's bytes";
constexpr char kCanary[] = "alive and unchanged";

// What must happen to an attack.
enum class Expect {
  kKilled,    // SIGSYS at the first call
  kRefused,   // the call fails, the job goes on and is right
  kCrashed,   // the run ends as a crash
  kMemory,    // by this limit
  kCpu,       //
  kWall,      //
  kOutput,    //
  kHarmless,  // it may do that: the job is right
};

// When it succeeds without walls; else it is stopped by what every Linux has, or would do harm.
enum class Proof { kNone, kAnybody, kRoot };

struct HostileCase {
  const char* name;
  Expect expect;
  // The walls that stop it, bits; where the host lacks them all, the case is skipped.
  uint32_t walls = 0;
  Proof proof = Proof::kNone;
};

void PrintTo(const HostileCase& c, std::ostream* out) { *out << c.name; }

constexpr uint32_t kCalls = Bit(Mechanism::kSystemCalls);
constexpr uint32_t kFiles = Bit(Mechanism::kFileView) | Bit(Mechanism::kLandlock);
constexpr uint32_t kNone = 0;

constexpr HostileCase kCases[] = {
    // processes
    {"fork_bomb", Expect::kKilled, kCalls, Proof::kRoot},
    {"daemonise", Expect::kKilled, kCalls, Proof::kRoot},
    {"vfork", Expect::kKilled, kCalls, Proof::kNone},
    {"clone_namespace", Expect::kKilled, kCalls, Proof::kNone},
    {"clone3", Expect::kKilled, kCalls},
    {"execute", Expect::kKilled, kCalls},
    {"ptrace_parent", Expect::kKilled, kCalls},
    {"read_parent_memory", Expect::kKilled, kCalls},
    {"set_session", Expect::kRefused, kCalls, Proof::kAnybody},
    {"reboot", Expect::kKilled, kCalls},
    {"realtime", Expect::kRefused},
    // signals
    {"signal_parent", Expect::kKilled, kCalls, Proof::kAnybody},
    {"signal_zygote", Expect::kKilled, kCalls, Proof::kAnybody},
    {"signal_daemon", Expect::kKilled, kCalls, Proof::kAnybody},
    {"signal_init", Expect::kKilled, kCalls, Proof::kRoot},
    {"signal_all", Expect::kKilled, kCalls},
    {"signal_group", Expect::kKilled, kCalls, Proof::kAnybody},
    {"tgkill_parent", Expect::kRefused, kCalls, Proof::kAnybody},
    {"tkill_parent", Expect::kKilled, kCalls, Proof::kAnybody},
    {"queue_signal", Expect::kKilled, kCalls, Proof::kAnybody},
    {"pidfd", Expect::kKilled, kCalls, Proof::kAnybody},
    {"signal_by_owner", Expect::kRefused, kCalls, Proof::kAnybody},
    // files
    {"write_canary", Expect::kRefused, kFiles, Proof::kAnybody},
    {"read_canary", Expect::kRefused, kFiles, Proof::kAnybody},
    {"read_passwd", Expect::kRefused, kFiles, Proof::kAnybody},
    {"read_root_folder", Expect::kRefused, kFiles, Proof::kAnybody},
    {"dotdot", Expect::kRefused, kFiles, Proof::kAnybody},
    {"dotdot_far", Expect::kRefused, kFiles, Proof::kAnybody},
    {"make_in_root", Expect::kRefused, kFiles},
    {"make_in_tmp", Expect::kRefused, kFiles},
    {"device_memory", Expect::kRefused, kFiles},
    {"device_null", Expect::kRefused, kFiles, Proof::kAnybody},
    {"proc_self_memory", Expect::kRefused, kFiles},
    {"proc_self_status", Expect::kRefused, kFiles, Proof::kAnybody},
    {"proc_zygote_environment", Expect::kRefused, kFiles},
    {"proc_daemon_root", Expect::kRefused, kFiles},
    {"proc_write", Expect::kRefused, kFiles},
    {"proc_sysrq", Expect::kRefused, kFiles},
    {"reopen_input_for_writing", Expect::kRefused, kFiles},
    {"write_input", Expect::kRefused},
    {"truncate_input", Expect::kRefused},
    {"write_job", Expect::kRefused},
    {"inherited_descriptors", Expect::kRefused},
    {"symlink", Expect::kKilled, kCalls, Proof::kAnybody},
    {"hard_link", Expect::kKilled, kCalls},
    {"fifo", Expect::kKilled, kCalls, Proof::kAnybody},
    {"device", Expect::kKilled, kCalls},
    {"make_folder", Expect::kRefused, kCalls, Proof::kAnybody},
    {"rename_folder", Expect::kRefused, kCalls},
    {"set_mode", Expect::kRefused, kCalls, Proof::kAnybody},
    {"set_owner", Expect::kRefused, kCalls},
    {"set_attribute", Expect::kRefused, kCalls},
    // talking
    {"socket_unix", Expect::kKilled, kCalls, Proof::kAnybody},
    {"socket_inet", Expect::kKilled, kCalls, Proof::kAnybody},
    {"socket_inet_udp", Expect::kKilled, kCalls, Proof::kAnybody},
    {"socket_inet6", Expect::kKilled, kCalls},
    {"socket_raw", Expect::kKilled, kCalls},
    {"socket_netlink", Expect::kKilled, kCalls, Proof::kAnybody},
    {"socket_packet", Expect::kKilled, kCalls},
    {"socket_vsock", Expect::kKilled, kCalls},
    {"socket_crypto", Expect::kKilled, kCalls},
    {"socket_bluetooth", Expect::kKilled, kCalls},
    {"socket_pair", Expect::kKilled, kCalls, Proof::kAnybody},
    {"send_descriptor", Expect::kKilled, kCalls},
    // privileges
    {"set_user", Expect::kKilled, kCalls},
    {"set_users", Expect::kKilled, kCalls},
    {"set_group", Expect::kKilled, kCalls},
    {"set_groups", Expect::kKilled, kCalls},
    {"set_capabilities", Expect::kKilled, kCalls},
    {"mount", Expect::kKilled, kCalls},
    {"new_mount", Expect::kKilled, kCalls},
    {"clone_tree", Expect::kKilled, kCalls},
    {"unmount", Expect::kKilled, kCalls},
    {"chroot", Expect::kKilled, kCalls},
    {"pivot_root", Expect::kKilled, kCalls},
    {"unshare_user", Expect::kKilled, kCalls},
    {"join_namespace", Expect::kKilled, kCalls},
    {"host_name", Expect::kKilled, kCalls},
    {"handle", Expect::kKilled, kCalls},
    {"personality", Expect::kKilled, kCalls, Proof::kAnybody},
#ifndef NPUC_SANITIZED
    {"dumpable", Expect::kRefused, kCalls, Proof::kAnybody},
    {"code_at_run_time", Expect::kRefused, kCalls, Proof::kAnybody},
#endif
    {"raise_limit", Expect::kRefused},
    // the kernel's depths
    {"io_uring", Expect::kKilled, kCalls},
    {"bpf", Expect::kKilled, kCalls},
    {"perf_event", Expect::kKilled, kCalls},
    {"userfaultfd", Expect::kKilled, kCalls},
    {"keyctl", Expect::kKilled, kCalls, Proof::kNone},
    {"add_key", Expect::kKilled, kCalls},
    {"memory_file", Expect::kKilled, kCalls, Proof::kAnybody},
    {"shared_memory", Expect::kKilled, kCalls, Proof::kAnybody},
    {"message_queue", Expect::kKilled, kCalls, Proof::kAnybody},
    {"module", Expect::kKilled, kCalls},
    {"another_filter", Expect::kKilled, kCalls},
    {"x32_call", Expect::kKilled, kCalls},
    {"call_of_32_bits", Expect::kKilled, kCalls},
    // memory
    {"memory_map", Expect::kRefused},
    {"memory_map_small", Expect::kRefused},
    {"memory_shared_map", Expect::kRefused},
#ifndef NPUC_SANITIZED  // whose allocator ends the process in its own way, and which locks nothing
    {"memory_break", Expect::kRefused},
    {"memory_lock", Expect::kRefused},
    {"memory", Expect::kMemory},
#endif
    {"stack", Expect::kCrashed},
    // output
    {"write_big", Expect::kOutput},
    {"sparse", Expect::kOutput},
    {"many_files", Expect::kOutput},
    {"fill_folder", Expect::kOutput},
    {"big_artifact", Expect::kOutput},
    {"print_flood", Expect::kHarmless},
    {"log_flood", Expect::kHarmless},
    // time
    {"spin_deaf", Expect::kCpu},
    {"hang", Expect::kWall},
    {"hang_deaf", Expect::kWall},
    {"hang_closed", Expect::kWall},
    // ends
    {"segv", Expect::kCrashed},
    {"abort", Expect::kCrashed},
    {"exit", Expect::kCrashed},
    {"exit0", Expect::kCrashed},
    {"result_then_segv", Expect::kCrashed},
    // words
    {"half_frame", Expect::kCrashed},
    {"nonsense", Expect::kCrashed},
    {"huge_frame", Expect::kCrashed},
    {"event_after_result", Expect::kCrashed},
    {"outside_artifact", Expect::kCrashed},
    {"missing_artifact", Expect::kCrashed},
    {"twice_artifact", Expect::kCrashed},
    {"grown_artifact", Expect::kCrashed},
};
static_assert(std::size(kCases) >= 50);

class Recorder : public WorkerEvents {
 public:
  void OnLog(absl::string_view line) override { log.emplace_back(line); }
  std::vector<std::string> log;
};

// What an attack could have changed.
struct World {
  std::string canary;
  std::set<std::string> beside_canary;
  size_t daemon_descriptors = 0;
  size_t zygote_descriptors = 0;
  int zygote = 0;
  uint64_t restarts = 0;
  std::set<std::string> shared_memory, message_queues;
  std::string mounts;
  size_t below_zygote = 0;

  bool operator==(const World&) const = default;
};

std::ostream& operator<<(std::ostream& out, const World& world) {
  return out << world.beside_canary.size() << " files, " << world.daemon_descriptors << " and "
             << world.zygote_descriptors << " descriptors, warm parent " << world.zygote << ", "
             << world.restarts << " restarts, " << world.below_zygote << " processes, shm "
             << absl::StrJoin(world.shared_memory, ",") << " queues "
             << absl::StrJoin(world.message_queues, ",") << " mounts " << world.mounts;
}

// Empty where it can't be read, as of a process that is gone by then (an iterator would throw).
std::string ReadAll(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

size_t CountEntries(const std::string& folder) {
  std::error_code error;
  size_t count = 0;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    ++count;
  }
  return count;
}

// The ids of System V segments or queues that were made without a key, as attacks make them. Those
// with a key are other programs': a PostgreSQL of another test makes one.
std::set<std::string> IdsWithoutKey(const fs::path& list) {
  std::set<std::string> ids;
  std::istringstream lines(ReadAll(list));
  std::string line, key, id;
  while (std::getline(lines, line)) {
    std::istringstream columns(line);
    if (columns >> key >> id && key == "0") ids.insert(id);
  }
  return ids;
}

// A pool with the walls that this host has, or without any; one for all cases.
class Arena {
 public:
  explicit Arena(uint32_t without, uint32_t spares = 0) : deadly_(without == 0) {
    folder_ = ::testing::TempDir() + "/hostileXXXXXX";
    if (mkdtemp(folder_.data()) == nullptr) abort();
    // Whoever gets at a file's name may do with it what he likes: walls alone protect it.
    fs::permissions(folder_, fs::perms::all);
    fs::create_directory(folder_ + "/canary");
    fs::permissions(folder_ + "/canary", fs::perms::all);
    std::ofstream(canary()) << kCanary;
    fs::permissions(canary(), fs::perms::all);
    std::ofstream(folder_ + "/blob") << kModel;
    WorkerPoolOptions options;
    options.program = NPUC_HOSTILE_WORKER;
    options.answer_timeout = absl::Seconds(60);
    options.spares = spares;
    options.sandbox = SandboxMode::kBestEffort;
    if (without != 0) options.arguments = {"without", absl::StrCat(without)};
    auto pool = WorkerPool::Start(options);
    if (pool.ok()) pool_ = *std::move(pool);
    const bool keeps_spares = pool_ != nullptr && pool_->sandbox().Has(Mechanism::kPidNamespace) &&
                              pool_->sandbox().Has(Mechanism::kOutputFolder);
    waiting_ = keeps_spares ? spares * size_t{2} : 0;  // keeper and worker
  }
  ~Arena() {
    pool_.reset();
    fs::remove_all(folder_);
  }

  WorkerPool* pool() { return pool_.get(); }
  std::string canary() const { return folder_ + "/canary/bird"; }

  WorkerOutcome Run(const HostileCase& c, Recorder& events) {
    WorkerJob job;
    job.run_id = absl::StrCat("run", ++count_);
    job.job_folder = absl::StrCat(folder_, "/", job.run_id);
    job.config_text = c.name;
    job.config_name = absl::StrCat(canary(), " ", getpid(), " ", pool_->GetStats().parent_pid, " ",
                                   deadly_ ? "deadly" : "safe");
    job.inputs = {{{"MODEL_FILE", "model.pb", Sha256Hex(kModel)}, folder_ + "/blob"}};
    job.timestamp_seconds = 42;
    job.limits.memory_bytes = 256 << 20;
    job.limits.cpu_seconds = c.expect == Expect::kCpu ? 1 : 60;
    job.limits.wall = c.expect == Expect::kWall ? absl::Seconds(1) : absl::Minutes(2);
    const bool small = c.expect == Expect::kOutput;
    job.limits.output_bytes = small ? 1 << 20 : 64 << 20;
    job.limits.log_bytes = 100000;
    auto outcome = pool_->Run(job, events);
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    // Without walls one attack takes our own rights away.
    std::error_code error;
    fs::permissions(job.job_folder, fs::perms::owner_all, error);
    fs::remove_all(job.job_folder, error);
    EXPECT_FALSE(error) << error.message();
    return outcome.ok() ? *std::move(outcome) : WorkerOutcome{};
  }

  World Look() {
    World world;
    world.canary = ReadAll(canary());
    for (const auto& entry : fs::directory_iterator(folder_ + "/canary")) {
      world.beside_canary.insert(entry.path().filename());
    }
    Settle();
    const WorkerPool::Stats stats = pool_->GetStats();
    world.zygote = stats.parent_pid;
    world.restarts = stats.parent_restarts;
    world.daemon_descriptors = CountEntries("/proc/self/fd");
    world.zygote_descriptors = CountEntries(absl::StrCat("/proc/", stats.parent_pid, "/fd"));
    world.shared_memory = IdsWithoutKey("/proc/sysvipc/shm");
    world.message_queues = IdsWithoutKey("/proc/sysvipc/msg");
    world.mounts = ReadAll("/proc/self/mountinfo");
    world.below_zygote = ProcessesBelow(stats.parent_pid).size();
    return world;
  }

  // Not for ever, so that what stays is seen.
  template <typename Is>
  World LookUntil(Is is) {
    const absl::Time limit = absl::Now() + absl::Seconds(20);
    World world = Look();
    while (!is(world) && absl::Now() < limit) world = Look();
    return world;
  }

  // What is below the warm parent where no run is under way.
  size_t waiting() const { return waiting_; }

 private:
  // Until the last run's keeper has ended, the spares are there, and the warm parent waits: it has
  // a spare's descriptors until then. Not for ever, so that one process too many is seen.
  void Settle() const {
    const absl::Time limit = absl::Now() + absl::Seconds(20);
    while (absl::Now() < limit && !IsSettled()) std::this_thread::yield();
  }

  bool IsSettled() const {
    const WorkerPool::Stats stats = pool_->GetStats();
    return stats.leaving == 0 && ProcessesBelow(stats.parent_pid).size() == waiting_ &&
           IsAsleep(stats.parent_pid);
  }

  std::string folder_;
  size_t waiting_ = 0;
  const bool deadly_;
  int count_ = 0;
  std::unique_ptr<WorkerPool> pool_;
};

class HostileTest : public ::testing::TestWithParam<HostileCase> {
 protected:
  static void SetUpTestSuite() {
    arena_ = new Arena(0);
    ready_arena_ = new Arena(0, 1);
  }
  static void TearDownTestSuite() {
    delete arena_;
    delete ready_arena_;
    arena_ = ready_arena_ = nullptr;
  }
  void SetUp() override {
    ASSERT_NE(arena_->pool(), nullptr) << "no pool";
    ASSERT_NE(ready_arena_->pool(), nullptr) << "no pool";
  }
  static void Attack(const HostileCase& c, Arena& arena);

  static Arena* arena_;
  static Arena* ready_arena_;  // whose workers are made before their runs
};
Arena* HostileTest::arena_ = nullptr;
Arena* HostileTest::ready_arena_ = nullptr;

void ExpectKilled(const WorkerOutcome& outcome) {
  EXPECT_EQ(outcome.kind, Kind::kCrashed) << outcome.text;
  EXPECT_EQ(outcome.signal, SIGSYS) << outcome.text;
}

void ExpectLimit(const WorkerOutcome& outcome, Limit limit) {
  EXPECT_EQ(outcome.kind, Kind::kLimit) << outcome.text;
  EXPECT_EQ(outcome.limit, limit) << outcome.text;
}

void ExpectRight(const WorkerOutcome& outcome) {
  const std::string model = kModel;
  ASSERT_EQ(outcome.kind, Kind::kSucceeded) << outcome.text;
  ASSERT_EQ(outcome.artifacts.size(), 1u);
  EXPECT_EQ(*outcome.artifacts[0].bytes, std::string(model.rbegin(), model.rend()));
}

void ExpectEnd(Expect expect, const WorkerOutcome& outcome, const Recorder& events) {
  const bool refused = std::any_of(events.log.begin(), events.log.end(), [](const auto& line) {
    return absl::StartsWith(line, "refused ");
  });
  switch (expect) {
    case Expect::kKilled:
#ifdef NPUC_SANITIZED
      // What a sanitizer's runtime needs to report is refused, not deadly.
      if (refused) return ExpectRight(outcome);
#endif
      return ExpectKilled(outcome);
    case Expect::kRefused:
      EXPECT_TRUE(refused);
      return ExpectRight(outcome);
    case Expect::kHarmless:
      EXPECT_EQ(outcome.kind, Kind::kSucceeded) << outcome.text;
      return;
    case Expect::kCrashed:
      EXPECT_EQ(outcome.kind, Kind::kCrashed) << outcome.text;
      return;
    case Expect::kMemory:
      return ExpectLimit(outcome, Limit::kMemory);
    case Expect::kCpu:
      return ExpectLimit(outcome, Limit::kCpu);
    case Expect::kWall:
      return ExpectLimit(outcome, Limit::kWall);
    case Expect::kOutput:
      return ExpectLimit(outcome, Limit::kOutput);
  }
}

void HostileTest::Attack(const HostileCase& c, Arena& arena) {
  // With the attack's limit of output, so that a worker that is ready fits it. With more time than
  // the attack: a busy host needs a second for a run that does nothing wrong.
  Recorder first;
  const Expect output = c.expect == Expect::kOutput ? Expect::kOutput : Expect::kHarmless;
  ExpectRight(arena.Run({"ok", output}, first));
  const World before = arena.Look();
  ASSERT_EQ(before.canary, kCanary);
  Recorder events;
  const WorkerOutcome outcome = arena.Run(c, events);
  ExpectEnd(c.expect, outcome, events);
  EXPECT_THAT(events.log, Not(Contains("escaped")));
  EXPECT_TRUE(outcome.artifacts.empty() || outcome.kind == Kind::kSucceeded);
  const World after = arena.LookUntil([&](const World& world) { return world == before; });
  EXPECT_EQ(after, before) << "something outside has changed";
  EXPECT_EQ(after.canary, kCanary);
  EXPECT_EQ(after.below_zygote, arena.waiting());
  Recorder quiet;
  ExpectRight(arena.Run({"ok", Expect::kHarmless}, quiet));
  // The other arena's descriptors are this process's, too: it must not see those of a run that
  // ends.
  arena.Look();
}

TEST_P(HostileTest, IsContained) {
  const HostileCase& c = GetParam();
  const SandboxReport& report = arena_->pool()->sandbox();
  if (c.walls != kNone && (report.in_force & c.walls) == 0) {
    GTEST_SKIP() << "this host lacks what stops it; has: " << report.NamesInForce();
  }
  {
    SCOPED_TRACE("a worker made for its run");
    Attack(c, *arena_);
  }
  SCOPED_TRACE("a worker made before its run");
  Attack(c, *ready_arena_);
}

std::string NameOf(const ::testing::TestParamInfo<HostileCase>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Corpus, HostileTest, ::testing::ValuesIn(kCases), NameOf);

// Each attack that can be shown without harm gets what it wants where the walls are left out: so it
// is the walls that the test above sees.
TEST(HostileProofTest, TheAttacksSucceedWithoutWalls) {
  Arena arena(kAllMechanisms);
  ASSERT_NE(arena.pool(), nullptr);
  EXPECT_EQ(arena.pool()->sandbox().in_force, 0u);
  int shown = 0;
  for (const HostileCase& c : kCases) {
    if (c.proof == Proof::kNone || (c.proof == Proof::kRoot && geteuid() != 0)) continue;
    Recorder events;
    const WorkerOutcome outcome = arena.Run(c, events);
    EXPECT_THAT(events.log, Contains("escaped")) << c.name << ": " << outcome.text;
    if (absl::string_view(c.name) == "write_canary") {
      EXPECT_NE(ReadAll(arena.canary()), kCanary);
    }
    ++shown;
  }
  EXPECT_GE(shown, 25);
}

TEST(HostileProofTest, EveryAttackIsInTheCorpus) {
  std::set<std::string> listed;
  for (const HostileCase& c : kCases) EXPECT_TRUE(listed.insert(c.name).second) << c.name;
#ifndef NPUC_SANITIZED
  for (const auto& [name, attack] : AllAttacks()) EXPECT_EQ(listed.count(name), 1u) << name;
#endif
}

// One a mechanism, so that a host's lack is told by name.
class MechanismTest : public ::testing::TestWithParam<MechanismInfo> {};

TEST_P(MechanismTest, HoldsHere) {
  const MechanismInfo& info = GetParam();
  Arena arena(0);
  ASSERT_NE(arena.pool(), nullptr);
  const SandboxReport& report = arena.pool()->sandbox();
  for (const SandboxReport::Missing& missing : report.missing) {
    if (missing.mechanism == info.mechanism) {
      GTEST_SKIP() << info.name << " is missing here: " << missing.why << "; " << info.lost;
    }
  }
  if (!report.Has(info.mechanism)) GTEST_SKIP() << info.name << " means nothing here";
  // Left out, it is told, and a pool that requires it does not start.
  WorkerPoolOptions options;
  options.program = NPUC_HOSTILE_WORKER;
  options.arguments = {"without", absl::StrCat(Bit(info.mechanism))};
  const auto pool = WorkerPool::Start(options);
  if (info.required) {
    EXPECT_EQ(pool.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(pool.status().message()), ::testing::HasSubstr(info.name.data()));
  } else if (pool.ok()) {
    EXPECT_FALSE((*pool)->sandbox().Has(info.mechanism));
  }
}

std::string MechanismName(const ::testing::TestParamInfo<MechanismInfo>& info) {
  std::string name(info.param.name);
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Sandbox, MechanismTest,
                         ::testing::ValuesIn(AllMechanisms().begin(), AllMechanisms().end()),
                         MechanismName);

}  // namespace
}  // namespace npuc::worker
