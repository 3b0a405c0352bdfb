// worker_bench PROGRAM [RUNS [MAX_P95_MS]]: how long a run takes from Run to the worker's first
// message and to its end, with a compile that does nearly nothing, through a warm parent: with the
// walls of this host, by a worker that was ready before and, one run each in turn, without any, and
// beside a bare fork. Fails where the start with walls is slower than MAX_P95_MS. PROGRAM is
// npuc_hostile_worker.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/status.h"
#include "server/worker/worker_pool.h"

namespace npuc::worker {
namespace {

class Times {
 public:
  void Add(absl::Duration time) { us_.push_back(absl::ToDoubleMicroseconds(time)); }
  double At(double share) {
    std::sort(us_.begin(), us_.end());
    return us_[static_cast<size_t>(share * static_cast<double>(us_.size() - 1))];
  }
  void Print(const char* what) {
    std::printf("%-28s p50 %8.0f us   p95 %8.0f us   max %8.0f us\n", what, At(0.5), At(0.95),
                At(1));
  }

 private:
  std::vector<double> us_;
};

absl::StatusOr<std::unique_ptr<WorkerPool>> StartPool(const std::string& program, uint32_t without,
                                                      uint32_t spares) {
  WorkerPoolOptions options;
  options.spares = spares;
  options.program = program;
  options.sandbox = SandboxMode::kBestEffort;
  if (without != 0) options.arguments = {"without", absl::StrCat(without)};
  return WorkerPool::Start(options);
}

// From the fork to the child's first byte.
absl::Duration BareFork() {
  const auto begin = std::chrono::steady_clock::now();
  int ends[2];
  if (pipe(ends) != 0) return absl::ZeroDuration();
  const pid_t child = fork();
  if (child == 0) _exit(write(ends[1], "x", 1) == 1 ? 0 : 1);
  char byte;
  const bool told = child > 0 && read(ends[0], &byte, 1) == 1;
  const auto end = std::chrono::steady_clock::now();
  close(ends[0]);
  close(ends[1]);
  if (child > 0) waitpid(child, nullptr, 0);
  return told ? absl::FromChrono(end - begin) : absl::InfiniteDuration();
}

class Bench {
 public:
  absl::Status Run(const std::string& program, int runs) {
    folder_ = std::filesystem::temp_directory_path() / "npuc_benchXXXXXX";
    if (mkdtemp(folder_.data()) == nullptr) return absl::InternalError("no folder");
    model_.assign(100000, 'm');
    std::ofstream(folder_ + "/model") << model_;
    ASSIGN_OR_RETURN(const auto walled, StartPool(program, 0, 0));
    ASSIGN_OR_RETURN(const auto ready, StartPool(program, 0, 1));
    ASSIGN_OR_RETURN(const auto open, StartPool(program, kAllMechanisms, 0));
    std::printf("walls: %s\n", walled->sandbox().NamesInForce().c_str());
    absl::Status status;
    for (int i = 0; i < runs && status.ok(); ++i) {
      fork.Add(BareFork());
      status = RunOne(*open, open_start, open_whole);
      if (status.ok()) status = RunOne(*walled, start, whole);
      if (status.ok()) status = RunOne(*ready, ready_start, ready_whole);
    }
    std::filesystem::remove_all(folder_);
    return status;
  }

  Times fork, start, whole, ready_start, ready_whole, open_start, open_whole;

 private:
  absl::Status RunOne(WorkerPool& pool, Times& start_times, Times& whole_times) {
    WorkerJob job;
    job.run_id = absl::StrCat("run", ++count_);
    job.job_folder = absl::StrCat(folder_, "/", count_);
    job.config_text = "ok";
    job.config_name = "config.yaml";
    job.inputs = {{{"MODEL_FILE", "model.pb", Sha256Hex(model_)}, folder_ + "/model"}};
    WorkerEvents events;
    ASSIGN_OR_RETURN(const WorkerOutcome outcome, pool.Run(job, events));
    std::filesystem::remove_all(job.job_folder);
    if (outcome.kind != WorkerOutcome::Kind::kSucceeded) return absl::InternalError(outcome.text);
    start_times.Add(outcome.start_time);
    whole_times.Add(outcome.wall_time);
    return absl::OkStatus();
  }

  std::string folder_;
  std::string model_;
  int count_ = 0;
};

int Main(const std::string& program, int runs, int max_p95_ms) {
  Bench bench;
  if (const absl::Status status = bench.Run(program, runs); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  bench.fork.Print("bare fork");
  bench.open_start.Print("first message, no walls");
  bench.start.Print("first message, walls");
  bench.ready_start.Print("first message, spare");
  bench.open_whole.Print("whole run, no walls");
  bench.whole.Print("whole run, walls");
  bench.ready_whole.Print("whole run, spare");
  std::printf("first message, walls against none: %.1f at p50, %.1f at p95; against a fork: %.1f\n",
              bench.start.At(0.5) / bench.open_start.At(0.5),
              bench.start.At(0.95) / bench.open_start.At(0.95),
              bench.start.At(0.5) / bench.fork.At(0.5));
  if (max_p95_ms == 0 || bench.start.At(0.95) <= max_p95_ms * 1000.0) return 0;
  std::fprintf(stderr, "slower than %d ms at p95\n", max_p95_ms);
  return 1;
}

}  // namespace
}  // namespace npuc::worker

int main(int argc, char** argv) {
  int runs = 300, max_p95_ms = 0;
  if (argc < 2 || argc > 4 || (argc > 2 && (!absl::SimpleAtoi(argv[2], &runs) || runs < 1)) ||
      (argc > 3 && (!absl::SimpleAtoi(argv[3], &max_p95_ms) || max_p95_ms < 1))) {
    std::fprintf(stderr, "usage: worker_bench PROGRAM [RUNS [MAX_P95_MS]]\n");
    return 2;
  }
  return npuc::worker::Main(argv[1], runs, max_p95_ms);
}
