// A pool's warm parent when its program changes below it; worker_pool_test.cc has its deaths.
#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/digest.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/worker/worker_pool.h"

namespace npuc::worker {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kModel[] = "model bytes";

class WarmParentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "/parentXXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    program_ = folder_ + "/npuc-worker";
    std::ofstream(folder_ + "/model") << kModel;
    Install(NPUC_HOSTILE_WORKER);
    WorkerPoolOptions options;
    options.program = program_;
    options.answer_timeout = absl::Seconds(20);
    options.sandbox = SandboxMode::kBestEffort;
    auto pool = WorkerPool::Start(options);
    ASSERT_TRUE(pool.ok()) << pool.status();
    pool_ = *std::move(pool);
  }
  void TearDown() override {
    pool_.reset();
    fs::remove_all(folder_);
  }
  // As install(1) does: another file takes the path.
  void Install(const std::string& from) {
    fs::copy_file(from, folder_ + "/new", fs::copy_options::overwrite_existing);
    fs::permissions(folder_ + "/new", fs::perms::owner_all);
    fs::rename(folder_ + "/new", program_);
  }
  // Waits until the pool knows.
  void KillParent() {
    const int old = pool_->GetStats().parent_pid;
    kill(old, SIGKILL);
    while (pool_->GetStats().parent_pid == old) std::this_thread::yield();
  }
  absl::StatusOr<WorkerOutcome> Run() {
    WorkerJob job;
    job.run_id = absl::StrCat("run", ++count_);
    job.job_folder = absl::StrCat(folder_, "/", job.run_id);
    job.config_text = "ok";
    job.config_name = "config.yaml";
    job.inputs = {{{"MODEL_FILE", "model.pb", Sha256Hex(kModel)}, folder_ + "/model"}};
    WorkerEvents events;
    return pool_->Run(job, events);
  }
  // Until the pool has found out that no worker can be started.
  absl::Status AwaitTrouble() {
    while (pool_->Health().ok()) std::this_thread::yield();
    return pool_->Health();
  }
  // Until it has found out that workers can be started, which it tries by itself.
  void ExpectRecovery() {
    while (!pool_->AwaitReady(absl::Seconds(1)).ok()) std::this_thread::yield();
    const auto outcome = Run();
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    EXPECT_EQ(outcome->kind, WorkerOutcome::Kind::kSucceeded) << outcome->text;
  }

  std::string folder_;
  std::string program_;
  int count_ = 0;
  std::unique_ptr<WorkerPool> pool_;
};

TEST_F(WarmParentTest, AnUpgradeChangesNothingForThePool) {
  Install("/bin/true");
  KillParent();
  ExpectRecovery();
  fs::remove(program_);
  KillParent();
  ExpectRecovery();
  EXPECT_EQ(pool_->GetStats().parent_restarts, 2u);
}

TEST_F(WarmParentTest, RunsGoOnBetweenItsDeaths) {
  for (int death = 1; death <= 5; ++death) {
    KillParent();
    while (pool_->GetStats().parent_pid == 0) std::this_thread::yield();
    EXPECT_TRUE(pool_->AwaitReady(absl::ZeroDuration()).ok()) << death;
    const auto outcome = Run();
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    EXPECT_EQ(outcome->kind, WorkerOutcome::Kind::kSucceeded) << outcome->text;
  }
  // But they are told.
  EXPECT_THAT(std::string(pool_->Health().message()), HasSubstr("died 5 times in a row"));
}

TEST_F(WarmParentTest, NoWorkerCanBeStartedUntilTheProgramIsExecutable) {
  fs::permissions(program_, fs::perms::owner_read);
  KillParent();
  EXPECT_THAT(std::string(AwaitTrouble().message()),
              AllOf(HasSubstr(program_), HasSubstr("Permission denied; build or install")));
  EXPECT_FALSE(pool_->AwaitReady(absl::Minutes(1)).ok());  // without waiting
  const absl::Status refused = Run().status();
  EXPECT_TRUE(IsHostTrouble(refused)) << refused;
  EXPECT_EQ(pool_->GetStats().parent_pid, 0);
  fs::permissions(program_, fs::perms::owner_all);
  ExpectRecovery();
}

TEST_F(WarmParentTest, AGoodFileInThePlaceOfASpoiltOneIsTaken) {
  fs::permissions(program_, fs::perms::none);
  KillParent();
  AwaitTrouble().IgnoreError();
  Install("/bin/true");
  EXPECT_FALSE(pool_->AwaitReady(absl::ZeroDuration()).ok());
  Install(NPUC_HOSTILE_WORKER);
  ExpectRecovery();
}

}  // namespace
}  // namespace npuc::worker
