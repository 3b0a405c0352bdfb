// list_bench: the first page of ListCompileJobs by many filters and orders over very many jobs, as
// npucd answers it, but for the wire; among them what the dashboard's overview and trends ask.
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/api/job_list.h"
#include "server/jobs/indexed_job_store.h"
#include "server/jobs/local_board.h"
#include "server/jobs/rocksdb_job_store.h"
#include "server/scheduler/fair_queue.h"

namespace npuc {
namespace {

constexpr char kHelp[] = R"(list_bench [--dir DIR] [--jobs N] [--limit-ms N]

  --dir DIR      an empty or missing folder, or one of an earlier run with the same numbers
                 (a temporary one)
  --jobs N       jobs in the store (1000000)
  --limit-ms N   fails where the median of a page takes longer (100)
)";

constexpr int kRounds = 9;
constexpr int kPageSize = 100;

struct Arguments {
  std::string dir;
  int64_t jobs = 1000000;
  int64_t limit_ms = 100;
};

double MillisecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

double ResidentMib() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

// Ten tenants, each with a hundred models; each job has a label of its own.
jobs::JobChange MakeJob(int64_t i, absl::Time now) {
  constexpr std::array<const char*, 4> kCores = {"GRUS", "SCORPIO", "V150", "CYGNUS"};
  constexpr std::array<const char*, 3> kFrameworks = {"TF", "ONNX", "TFLITE"};
  const auto at = static_cast<size_t>(i);
  jobs::NewJob request;
  request.tenant = absl::StrCat("tenant-", i % 10);
  request.request_id = absl::StrCat("request-", i);
  request.request_sha256 = std::string(64, 'a');
  request.config_text = std::string(400, 'c');
  request.output_file = absl::StrCat("model", i * 7919 % 1000, ".h");
  request.cache_key = absl::StrCat("default/", std::string(64, 'b'), i);
  request.spec.config_name = "config.yaml";
  request.spec.core = kCores[at % kCores.size()];
  request.spec.framework = kFrameworks[at / 7 % kFrameworks.size()];
  request.spec.submitter = absl::StrCat("ci", i % 3);
  request.spec.labels = {{"branch", i % 5 == 0 ? "main" : "work"}, {"run", absl::StrCat(i)}};
  request.spec.inputs = {{.role = "MODEL_FILE",
                          .name = "model.pb",
                          .sha256 = std::string(64, 'd'),
                          .md5 = std::string(32, 'e'),
                          .size_bytes = 100000}};
  request.spec.timeout = absl::Hours(1);
  request.cached = jobs::NewJob::Cached{};
  jobs::JobChange change = jobs::CreateJob(
      std::move(request), jobs::MakeJobId(now, static_cast<uint64_t>(i), static_cast<uint64_t>(i)),
      static_cast<uint64_t>(i) + 1, now);
  if (i % 50 == 0) {
    change.job.state = jobs::JobState::kFailed;
    change.job.failure_kind = jobs::FailureKind::kInvalidInput;
  }
  change.job.end_time = change.job.create_time + absl::Milliseconds(i * 104729 % 100000);
  return change;
}

absl::Status Fill(const Arguments& arguments) {
  // Nobody waits for these to be durable: what is measured comes after.
  auto store = jobs::RocksDbJobStore::Open(arguments.dir, /*sync_changes=*/false);
  if (!store.ok()) return store.status();
  const absl::Time begin = absl::Now() - absl::Hours(24);
  for (int64_t i = 0; i < arguments.jobs; ++i) {
    const absl::Status status =
        (*store)->ApplyAndWait(MakeJob(i, begin + absl::Milliseconds(i / 20)));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

struct Case {
  const char* name;
  std::function<void(v1::ListCompileJobsRequest& request)> fill;
};

std::vector<Case> Cases() {
  using Request = v1::ListCompileJobsRequest;
  return {
      {"newest", [](Request&) {}},
      {"newest, with totals", [](Request& r) { r.set_with_totals(true); }},
      {"failed", [](Request& r) { r.add_states(v1::JOB_STATE_FAILED); }},
      {"queued: none", [](Request& r) { r.add_states(v1::JOB_STATE_QUEUED); }},
      {"core, framework, tenant",
       [](Request& r) {
         r.add_cores("V150");
         r.add_frameworks("ONNX");
         r.add_tenants("tenant-2");
         r.set_with_totals(true);
       }},
      {"label branch=main", [](Request& r) { r.add_labels("branch=main"); }},
      {"label of one job", [](Request& r) { r.add_labels("run=12345"); }},
      {"text in a name", [](Request& r) { r.set_text("model77"); }},
      {"text nowhere",
       [](Request& r) {
         r.set_text("nowhere");
         r.set_with_totals(true);
       }},
      {"mine", [](Request& r) { r.set_mine(true); }},
      {"by name, with totals",
       [](Request& r) {
         r.set_order(v1::JOB_ORDER_NAME);
         r.set_with_totals(true);
       }},
      {"longest", [](Request& r) { r.set_order(v1::JOB_ORDER_TOOK); }},
      // As the dashboard asks.
      {"overview", [](Request& r) { r.set_page_size(1000); }},
      {"trends of a name",
       [](Request& r) {
         r.set_page_size(200);
         r.add_states(v1::JOB_STATE_SUCCEEDED);
         r.add_states(v1::JOB_STATE_FAILED);
         r.set_text("model77.h");
       }},
      {"trends of a label",
       [](Request& r) {
         r.set_page_size(200);
         r.add_states(v1::JOB_STATE_SUCCEEDED);
         r.add_states(v1::JOB_STATE_FAILED);
         r.add_labels("branch=main");
       }},
      {"until now, with totals",
       [](Request& r) {
         r.mutable_created_from()->set_seconds(1);
         r.mutable_created_before()->set_seconds(absl::ToUnixSeconds(absl::Now()));
         r.set_with_totals(true);
       }},
      {"how many failed",
       [](Request& r) {
         r.set_page_size(1);
         r.add_states(v1::JOB_STATE_FAILED);
         r.set_with_totals(true);
       }},
      {"by tenant, reverse",
       [](Request& r) {
         r.set_order(v1::JOB_ORDER_TENANT);
         r.set_reverse(true);
       }},
  };
}

// False: a page takes too long.
absl::StatusOr<bool> Measure(const api::ApiDependencies& deps, int64_t limit_ms) {
  const auth::Caller caller{"ci1", "tenant-1", auth::Rights::All()};
  bool is_quick = true;
  for (const Case& one : Cases()) {
    std::vector<double> times;
    v1::ListCompileJobsResponse response;
    for (int round = 0; round < kRounds; ++round) {
      v1::ListCompileJobsRequest request;
      request.set_page_size(kPageSize);
      one.fill(request);
      response.Clear();
      const auto begin = std::chrono::steady_clock::now();
      const absl::Status status = api::ListJobs(deps, caller, request, &response);
      if (!status.ok()) return status;
      times.push_back(MillisecondsSince(begin));
    }
    std::sort(times.begin(), times.end());
    const double median = times[times.size() / 2];
    is_quick = is_quick && median <= static_cast<double>(limit_ms);
    std::printf("%-26s %6.1f ms (worst %6.1f), %d jobs, %lld in all\n", one.name, median,
                times.back(), response.jobs_size(),
                static_cast<long long>(response.totals().jobs()));
  }
  return is_quick;
}

absl::StatusOr<bool> Run(const Arguments& arguments) {
  auto store = jobs::RocksDbJobStore::Open(arguments.dir);
  if (!store.ok()) return store.status();
  jobs::JobIndex index;
  jobs::IndexedJobStore indexed(store->get(), &index);
  std::mt19937_64 random(1);
  scheduler::FairQueue queue({.max_queued = 10, .slots = 4});
  jobs::LocalBoard board(&queue, absl::Minutes(5));
  jobs::JobService service({.now = [] { return absl::Now(); }, .random = random, .retry = {}},
                           &indexed, &board);
  if (absl::Status status = service.Recover(nullptr); !status.ok()) return status;
  const double resident = ResidentMib();
  const auto begin = std::chrono::steady_clock::now();
  if (absl::Status status = indexed.Load(nullptr); !status.ok()) return status;
  std::printf("read for lists: %zu jobs, %.1f s, %.0f MiB more\n", index.size(),
              MillisecondsSince(begin) / 1000, ResidentMib() - resident);
  executor::Lifecycle lifecycle;
  lifecycle.Enter(executor::Lifecycle::Phase::kServing);
  return Measure({.jobs = &service, .index = &index, .lifecycle = &lifecycle, .facts = {}},
                 arguments.limit_ms);
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
    int64_t* const number = name == "--jobs"       ? &arguments.jobs
                            : name == "--limit-ms" ? &arguments.limit_ms
                                                   : nullptr;
    usage = usage || number == nullptr || !absl::SimpleAtoi(argv[i + 1], number) || *number < 1;
  }
  if (usage) {
    std::cerr << kHelp;
    return 2;
  }
  const bool is_own = arguments.dir.empty();
  if (is_own) {
    arguments.dir = (std::filesystem::temp_directory_path() / "npuc-bench-XXXXXX").string();
    if (mkdtemp(arguments.dir.data()) == nullptr) return 1;
  }
  absl::Status status = absl::OkStatus();
  std::error_code error;  // Open tells what is wrong with the folder
  std::filesystem::create_directories(arguments.dir, error);
  if (!std::filesystem::exists(arguments.dir + "/CURRENT")) status = Fill(arguments);
  const absl::StatusOr<bool> is_quick = status.ok() ? Run(arguments) : absl::StatusOr<bool>(status);
  if (is_own) std::filesystem::remove_all(arguments.dir, error);
  if (!is_quick.ok()) std::cerr << "list_bench: " << is_quick.status().message() << "\n";
  return is_quick.ok() && *is_quick ? 0 : 1;
}

}  // namespace
}  // namespace npuc

int main(int argc, char** argv) { return npuc::Main(argc, argv); }
