// job_store_bench: how long a daemon with very many jobs takes from opening its store until it can
// lease, and how fast it leases then.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <random>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/jobs/job_service.h"
#include "server/jobs/local_board.h"
#include "server/jobs/rocksdb_job_store.h"
#include "server/scheduler/fair_queue.h"

namespace npuc {
namespace {

constexpr char kHelp[] = R"(job_store_bench [--dir DIR] [--jobs N] [--open N] [--leases N]

  --dir DIR    an empty or missing folder, or one of an earlier run with the same numbers
               (a temporary one)
  --jobs N     jobs in the store (1000000)
  --open N     how many of them have not ended (as --jobs)
  --leases N   jobs leased after the start, to see how long each takes (2000)
)";

constexpr int kWriters = 4;

struct Arguments {
  std::string dir;
  int64_t jobs = 1000000;
  int64_t open = -1;
  int64_t leases = 2000;
};

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Of this process, which is what counts where others use the machine, too.
double CpuSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double ResidentMib() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

jobs::NewJob Request(int64_t i) {
  jobs::NewJob request;
  request.tenant = absl::StrCat("tenant-", i % 100);
  request.request_id = absl::StrCat("request-", i);
  request.request_sha256 = std::string(64, 'a');
  request.config_text = std::string(400, 'c');
  request.output_file = "model.h";
  request.cache_key = absl::StrCat("default/", std::string(64, 'b'), i);
  request.spec.config_name = "config.yaml";
  request.spec.inputs = {{.role = "MODEL_FILE",
                          .name = "model.pb",
                          .sha256 = std::string(64, 'd'),
                          .md5 = std::string(32, 'e'),
                          .size_bytes = 100000}};
  request.spec.timeout = absl::Hours(24 * 7);
  return request;
}

absl::Status Fill(const Arguments& arguments) {
  // Nobody waits for these to be durable: what is measured comes after.
  auto store = jobs::RocksDbJobStore::Open(arguments.dir, /*sync_changes=*/false);
  if (!store.ok()) return store.status();
  const auto begin = std::chrono::steady_clock::now();
  const absl::Time now = absl::Now();
  std::vector<absl::Status> results(kWriters);
  std::vector<std::thread> threads;
  for (int t = 0; t < kWriters; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t i = t; i < arguments.jobs && results[static_cast<size_t>(t)].ok();
           i += kWriters) {
        jobs::NewJob request = Request(i);
        if (i >= arguments.open) request.cached = jobs::NewJob::Cached{};
        results[static_cast<size_t>(t)] = (*store)->ApplyAndWait(
            jobs::CreateJob(std::move(request), jobs::MakeJobId(now, 0, static_cast<uint64_t>(i)),
                            static_cast<uint64_t>(i) + 1, now));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : results) {
    if (!status.ok()) return status;
  }
  const double seconds = SecondsSince(begin);
  std::printf("filled, without syncs: %.1f s, %.0f jobs/s\n", seconds,
              static_cast<double>(arguments.jobs) / seconds);
  return absl::OkStatus();
}

absl::Status Start(const Arguments& arguments) {
  const auto begin = std::chrono::steady_clock::now();
  const double cpu_before = CpuSeconds();
  auto store = jobs::RocksDbJobStore::Open(arguments.dir);
  if (!store.ok()) return store.status();
  const double opened = SecondsSince(begin);
  std::mt19937_64 random(1);
  scheduler::FairQueue queue({.max_queued = arguments.jobs + 1, .slots = 4});
  jobs::LocalBoard board(&queue, absl::Minutes(5));
  jobs::JobService service({.now = [] { return absl::Now(); }, .random = random, .retry = {}},
                           store->get(), &board);
  int64_t waiting = 0;
  absl::Status status = service.Recover([&](const jobs::LiveJob&) { ++waiting; });
  if (!status.ok()) return status;
  std::printf(
      "start: %.2f s (opening %.2f s; CPU time %.2f s) with %lld jobs, %lld of them waiting, "
      "%.0f MiB\n",
      SecondsSince(begin), opened, CpuSeconds() - cpu_before,
      static_cast<long long>(arguments.jobs), static_cast<long long>(waiting), ResidentMib());
  std::vector<double> times;
  for (int64_t i = 0; i < std::min(arguments.leases, waiting); ++i) {
    const auto before = std::chrono::steady_clock::now();
    const auto leased = service.TryLease();
    if (!leased.ok()) return leased.status();
    times.push_back(SecondsSince(before) * 1e3);
    status = service.Lose((*leased)->lease, jobs::LossKind::kHandBack, "bench", {});
    if (!status.ok()) return status;
  }
  std::sort(times.begin(), times.end());
  if (!times.empty()) {
    std::printf("dispatch: p50 %.2f ms, p99 %.2f ms\n", times[times.size() / 2],
                times[times.size() * 99 / 100]);
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Arguments arguments;
  bool usage = argc % 2 == 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--dir") {
      arguments.dir = argv[i + 1];
      continue;
    }
    int64_t number = 0;
    usage = usage || !absl::SimpleAtoi(argv[i + 1], &number) || number < 0;
    if (name == "--jobs") {
      arguments.jobs = number;
    } else if (name == "--open") {
      arguments.open = number;
    } else if (name == "--leases") {
      arguments.leases = number;
    } else {
      usage = true;
    }
  }
  if (usage) {
    std::cerr << kHelp;
    return 2;
  }
  if (arguments.open < 0) arguments.open = arguments.jobs;
  const bool is_own = arguments.dir.empty();
  if (is_own) {
    arguments.dir = (std::filesystem::temp_directory_path() / "npuc-bench-XXXXXX").string();
    if (mkdtemp(arguments.dir.data()) == nullptr) return 1;
  }
  absl::Status status = absl::OkStatus();
  std::error_code error;  // Open tells what is wrong with the folder
  std::filesystem::create_directories(arguments.dir, error);
  if (!std::filesystem::exists(arguments.dir + "/CURRENT")) status = Fill(arguments);
  if (status.ok()) status = Start(arguments);
  if (is_own) std::filesystem::remove_all(arguments.dir, error);
  if (!status.ok()) std::cerr << "job_store_bench: " << status.message() << "\n";
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace npuc

int main(int argc, char** argv) { return npuc::Main(argc, argv); }
