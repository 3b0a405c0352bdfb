// worker_bench PROGRAM [RUNS]: how long a run takes from Run to the worker's first message and to
// its end, with a compile that does nearly nothing, through a warm parent.
#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/digest.h"
#include "server/worker/worker_pool.h"

namespace npuc {
namespace {

void PrintTimes(const char* what, std::vector<double> times_us) {
  std::sort(times_us.begin(), times_us.end());
  const auto at = [&](double share) {
    return times_us[static_cast<size_t>(share * static_cast<double>(times_us.size() - 1))];
  };
  std::printf("%-24s p50 %8.0f us   p95 %8.0f us   max %8.0f us\n", what, at(0.5), at(0.95),
              times_us.back());
}

int Bench(const std::string& program, int runs) {
  std::string folder = std::filesystem::temp_directory_path() / "npuc_benchXXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return 1;
  const std::string model(100000, 'm');
  std::ofstream(folder + "/model") << model;
  WorkerPoolOptions options;
  options.program = program;
  auto pool = WorkerPool::Start(options);
  if (!pool.ok()) {
    std::fprintf(stderr, "%s\n", pool.status().ToString().c_str());
    return 1;
  }
  std::vector<double> start, whole;
  for (int i = 0; i < runs; ++i) {
    WorkerJob job;
    job.run_id = absl::StrCat("run", i);
    job.job_folder = absl::StrCat(folder, "/", i);
    std::filesystem::create_directory(job.job_folder);
    job.config_text = "ok";
    job.config_name = "config.yaml";
    job.inputs["MODEL_FILE"] = {"model.pb", folder + "/model", Sha256Hex(model)};
    WorkerEvents events;
    const auto outcome = (*pool)->Run(job, events);
    std::filesystem::remove_all(job.job_folder);
    if (!outcome.ok() || outcome->kind != WorkerOutcome::Kind::kSucceeded) {
      std::fprintf(stderr, "run failed: %s\n",
                   outcome.ok() ? outcome->text.c_str() : outcome.status().ToString().c_str());
      return 1;
    }
    start.push_back(absl::ToDoubleMicroseconds(outcome->start_time));
    whole.push_back(absl::ToDoubleMicroseconds(outcome->wall_time));
  }
  std::filesystem::remove_all(folder);
  PrintTimes("fork to first message", std::move(start));
  PrintTimes("whole run", std::move(whole));
  return 0;
}

}  // namespace
}  // namespace npuc

int main(int argc, char** argv) {
  int runs = 300;
  if (argc < 2 || (argc > 2 && (!absl::SimpleAtoi(argv[2], &runs) || runs < 1))) {
    std::fprintf(stderr, "usage: worker_bench PROGRAM [RUNS]\n");
    return 2;
  }
  return npuc::Bench(argv[1], runs);
}
