// The real compiler, made to crash, hang or take too much in each of its stages: the run tells the
// stage, and the next job has the bytes of a quiet one.
#include <signal.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/sanitized.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/worker/worker_pool.h"

namespace npuc::worker {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Kind = WorkerOutcome::Kind;
using Limit = WorkerOutcome::Limit;

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Keeps the stages, and lets an hour pass at one of them.
class Stages : public WorkerEvents {
 public:
  Stages(std::atomic<int>* hours, std::string at) : hours_(hours), at_(std::move(at)) {}
  void OnStage(absl::string_view stage, double) override {
    seen.emplace_back(stage);
    if (stage == at_) ++*hours_;
  }
  std::vector<std::string> seen;

 private:
  std::atomic<int>* const hours_;
  const std::string at_;
};

class StageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "/stagesXXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    const char* source = getenv("NPUC_SOURCE_DIR");
    sample_ = absl::StrCat(source == nullptr ? "." : source, "/deploy/samples/kws/");
    config_ = ReadAll(sample_ + "config.yaml");
    model_sha256_ = Sha256Hex(ReadAll(sample_ + "kws_cnn.pb"));
    ASSERT_FALSE(config_.empty());
    WorkerPoolOptions options;
    options.program = NPUC_SABOTAGED_WORKER;
    options.answer_timeout = absl::Seconds(60);
    options.sandbox = SandboxMode::kBestEffort;
    options.now = [this] { return absl::UnixEpoch() + absl::Hours(hours_.load()); };
    auto pool = WorkerPool::Start(options);
    ASSERT_TRUE(pool.ok()) << pool.status();
    pool_ = *std::move(pool);
  }
  void TearDown() override {
    pool_.reset();
    fs::remove_all(folder_);
  }

  WorkerOutcome Run(const std::string& output_file, Stages& stages) {
    WorkerJob job;
    job.run_id = absl::StrCat("run", ++count_);
    job.job_folder = absl::StrCat(folder_, "/", job.run_id);
    job.config_text = absl::StrReplaceAll(config_, {{"kws_cnn.h", output_file}});
    job.config_name = "config.yaml";
    job.inputs = {{{"MODEL_FILE", "kws_cnn.pb", model_sha256_}, sample_ + "kws_cnn.pb"}};
    job.timestamp_seconds = 1700000000;
    job.limits.memory_bytes = 256 << 20;
    job.limits.wall = absl::Hours(1);
    auto outcome = pool_->Run(job, stages);
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    fs::remove_all(job.job_folder);
    return outcome.ok() ? *std::move(outcome) : WorkerOutcome{};
  }

  // Digests by name.
  std::map<std::string, std::string> RunQuietly(std::vector<std::string>* stages = nullptr) {
    Stages seen(&hours_, "");
    const WorkerOutcome outcome = Run("kws_cnn.h", seen);
    EXPECT_EQ(outcome.kind, Kind::kSucceeded) << outcome.text;
    std::map<std::string, std::string> digests;
    for (const WorkerArtifact& artifact : outcome.artifacts) {
      digests[artifact.name] = Sha256Hex(*artifact.bytes);
    }
    if (stages != nullptr) *stages = seen.seen;
    return digests;
  }

  std::string folder_, sample_, config_, model_sha256_;
  std::atomic<int> hours_{0};
  int count_ = 0;
  std::unique_ptr<WorkerPool> pool_;
};

TEST_F(StageTest, EveryStageMayFailInEveryWay) {
  std::vector<std::string> stages;
  const auto right = RunQuietly(&stages);
  ASSERT_TRUE(right.count("kws_cnn.h"));
  ASSERT_GE(stages.size(), 10u);
  for (const std::string& stage : stages) {
    SCOPED_TRACE(stage);
    const auto run = [&](absl::string_view act) {
      Stages seen(&hours_, act == "hang" ? stage : "");
      return Run(absl::StrCat(act, "_at_", absl::StrReplaceAll(stage, {{" ", "-"}}), ".h"), seen);
    };
    for (const auto& [act, signal] : {std::pair("segv", SIGSEGV), std::pair("abort", SIGABRT)}) {
      const WorkerOutcome outcome = run(act);
      EXPECT_EQ(outcome.kind, Kind::kCrashed) << outcome.text;
#ifndef NPUC_SANITIZED  // whose runtime reports SIGSEGV and exits
      EXPECT_EQ(outcome.signal, signal) << outcome.text;
#endif
      EXPECT_THAT(outcome.text, HasSubstr(absl::StrCat("in stage '", stage, "'")));
    }
    const WorkerOutcome exited = run("exit");
    EXPECT_EQ(exited.kind, Kind::kCrashed) << exited.text;
    EXPECT_EQ(exited.exit_code, 9);
    const WorkerOutcome thrown = run("throw");
    EXPECT_EQ(thrown.kind, Kind::kFailed) << thrown.text;
    EXPECT_EQ(thrown.code, absl::StatusCode::kInternal);
    const WorkerOutcome hung = run("hang");
    EXPECT_EQ(hung.limit, Limit::kWall) << hung.text;
    EXPECT_EQ(hung.last_stage, stage);
#ifndef NPUC_SANITIZED  // whose allocator ends the process in its own way
    EXPECT_EQ(run("memory").limit, Limit::kMemory);
    if (pool_->sandbox().Has(Mechanism::kSystemCalls)) {
      EXPECT_EQ(run("fork").signal, SIGSYS);
    }
#endif
    EXPECT_EQ(RunQuietly(), right);
  }
  EXPECT_EQ(pool_->GetStats().parent_restarts, 0u);
}

}  // namespace
}  // namespace npuc::worker
