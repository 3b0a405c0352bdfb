// What a job costs over its bare compile, and what an idle watcher costs the daemon. README.md says
// how to read it.

#include <grpcpp/grpcpp.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/lib/client.h"
#include "client/lib/local_file.h"
#include "client/npuc_remote/job_input.h"
#include "compiler_core/base/status.h"
#include "compiler_core/config/config.h"
#include "compiler_core/pipeline/compile.h"
#include "npuc/v1/compile.grpc.pb.h"
#include "tests/bench/child.h"
#include "tests/bench/watchers.h"

namespace npuc::bench {
namespace {

namespace fs = std::filesystem;
using Stub = v1::CompileService::Stub;

constexpr size_t kMaxFileBytes = size_t{1} << 30;

struct Settings {
  std::string npucd;
  std::string config;
  int jobs = 300;
  int watchers = 10000;
  int watched_jobs = 100;
  double idle_seconds = 15;
};

struct Server {
  Child child;
  std::string address;
};

absl::StatusOr<Server> Start(const Settings& settings, const std::string& folder) {
  const std::string port_file = folder + "/port";
  fs::remove(port_file);
  ASSIGN_OR_RETURN(Child child, Child::Start({settings.npucd, "--data-dir", folder + "/data",
                                              "--listen", "127.0.0.1:0", "--insecure", "--workers",
                                              "1", "--port-file", port_file},
                                             folder + "/npucd.log"));
  ASSIGN_OR_RETURN(const std::string address, child.WaitForAddress(port_file));
  return Server{std::move(child), address};
}

absl::StatusOr<remote::JobInput> Upload(const Settings& settings, const std::string& address) {
  Diagnostics diagnostics;
  ASSIGN_OR_RETURN(remote::JobInput input, remote::ReadJobInput(settings.config, diagnostics));
  ASSIGN_OR_RETURN(const auto client, client::Client::Create({.server = address}));
  RETURN_IF_ERROR(client->Upload(input.files, nullptr));
  return input;
}

absl::Status ToStatus(const grpc::Status& status) {
  return status.ok() ? absl::OkStatus() : absl::InternalError(status.error_message());
}

absl::StatusOr<std::string> Submit(Stub& stub, const remote::JobInput& input, int number) {
  grpc::ClientContext context;
  v1::CreateCompileJobRequest request;
  request.set_request_id(absl::StrCat("bench-", number));
  *request.mutable_spec() = input.spec;
  request.mutable_spec()->set_no_cache(true);
  request.mutable_spec()->mutable_model_info_time()->set_seconds(1'000'000 + number);
  v1::CreateCompileJobResponse response;
  RETURN_IF_ERROR(ToStatus(stub.CreateCompileJob(&context, request, &response)));
  return response.job().job_id();
}

// --- A job beside its bare compile ---------------------------------------------------------------

// From the call that submits it to the event with which it ends.
absl::Status RunJob(Stub& stub, const remote::JobInput& input, int number) {
  ASSIGN_OR_RETURN(const std::string job_id, Submit(stub, input, number));
  grpc::ClientContext context;
  v1::WatchCompileJobRequest request;
  request.set_job_id(job_id);
  request.set_batch_events(true);  // as client::Client does
  const auto reader = stub.WatchCompileJob(&context, request);
  v1::WatchCompileJobResponse response;
  v1::JobState last = v1::JOB_STATE_UNSPECIFIED;
  const auto note = [&](const v1::JobEvent& event) {
    if (event.has_state_changed()) last = event.state_changed().state();
  };
  while (reader->Read(&response)) {
    note(response.event());
    for (const v1::JobEvent& event : response.more_events()) note(event);
  }
  RETURN_IF_ERROR(ToStatus(reader->Finish()));
  return last == v1::JOB_STATE_SUCCEEDED ? absl::OkStatus()
                                         : absl::InternalError("the job did not succeed");
}

double MillisecondsOf(const std::function<absl::Status()>& work, absl::Status& status) {
  const auto begin = std::chrono::steady_clock::now();
  status.Update(work());
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

void Print(const char* name, std::vector<double> times_ms) {
  std::sort(times_ms.begin(), times_ms.end());
  std::printf("%-32s p50 %8.2f ms  p99 %8.2f ms\n", name, times_ms[times_ms.size() / 2],
              times_ms[times_ms.size() * 99 / 100]);
}

// Both in turn, so that what else the machine does meets both.
absl::Status MeasureOverhead(const Settings& settings, const std::string& folder) {
  ASSIGN_OR_RETURN(const Server server, Start(settings, folder));
  ASSIGN_OR_RETURN(const remote::JobInput input, Upload(settings, server.address));
  ASSIGN_OR_RETURN(const std::string text, client::ReadWholeFile(settings.config, kMaxConfigBytes));
  Diagnostics diagnostics;
  ASSIGN_OR_RETURN(const ParsedConfig config, ParseConfig(text, settings.config, diagnostics));
  const fs::path model = fs::path(settings.config).parent_path() / config.files.front().path;
  ASSIGN_OR_RETURN(const std::string bytes, client::ReadWholeFile(model.string(), kMaxFileBytes));
  const auto compile = [&] {
    CompileObserver observer;
    Diagnostics found;
    CompileRequest request;
    request.options = config.options;
    request.model_bytes = bytes;
    return Compile(request, observer, found).status();
  };
  const auto stub = v1::CompileService::NewStub(
      grpc::CreateChannel(server.address, grpc::InsecureChannelCredentials()));
  std::vector<double> bare, jobs, overhead;
  absl::Status status;
  for (int i = -5; i < settings.jobs && status.ok(); ++i) {  // the first warm things up
    const double bare_ms = MillisecondsOf(compile, status);
    const double job_ms = MillisecondsOf([&] { return RunJob(*stub, input, i + 10); }, status);
    if (i < 0) continue;
    bare.push_back(bare_ms);
    jobs.push_back(job_ms);
    overhead.push_back(job_ms - bare_ms);
  }
  RETURN_IF_ERROR(status);
  Print("bare compile, in this process", bare);
  Print("job: submitted to its last event", jobs);
  Print("overhead of a job", overhead);
  return absl::OkStatus();
}

// --- Idle watchers -------------------------------------------------------------------------------

// Of a process, in KiB.
int64_t ResidentKib(int pid) {
  std::ifstream in(absl::StrCat("/proc/", pid, "/status"));
  for (std::string line; std::getline(in, line);) {
    int64_t kib = 0;
    if (absl::StartsWith(line, "VmRSS:") &&
        std::sscanf(line.c_str(), "VmRSS: %ld", &kib) == 1) {  // NOLINT(runtime/int)
      return kib;
    }
  }
  return -1;
}

absl::Status MeasureWatchers(const Settings& settings, const std::string& folder) {
  ASSIGN_OR_RETURN(const Server server, Start(settings, folder));
  ASSIGN_OR_RETURN(const remote::JobInput input, Upload(settings, server.address));
  constexpr int kChannels = 10;
  std::vector<std::unique_ptr<Stub>> stubs;
  for (int i = 0; i < kChannels; ++i) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
    stubs.push_back(v1::CompileService::NewStub(
        grpc::CreateCustomChannel(server.address, grpc::InsecureChannelCredentials(), arguments)));
  }
  // Nothing gets on: one job runs for ten minutes, the others wait.
  int number = 0;
  RETURN_IF_ERROR(
      server.child.HoldSlot([&] { return Submit(*stubs[0], input, ++number).status(); }));
  std::vector<std::string> jobs;
  for (int i = 0; i < settings.watched_jobs; ++i) {
    ASSIGN_OR_RETURN(std::string job_id, Submit(*stubs[0], input, ++number));
    jobs.push_back(std::move(job_id));
  }
  const int64_t before_kib = ResidentKib(server.child.pid());
  Watchers watchers;
  for (int i = 0; i < settings.watchers; ++i) {
    const auto n = static_cast<size_t>(i);
    watchers.Add(*stubs[n % kChannels], jobs[n % jobs.size()]);
  }
  absl::Status status = watchers.AwaitFirstEvents();
  const double cpu_before = server.child.CpuSeconds();
  const absl::Time begin = absl::Now();
  const int64_t beats_before = watchers.heartbeats();
  poll(nullptr, 0, static_cast<int>(settings.idle_seconds * 1000));
  const double cpu = server.child.CpuSeconds() - cpu_before;
  const double took = absl::ToDoubleSeconds(absl::Now() - begin);
  const int64_t after_kib = ResidentKib(server.child.pid());
  const int64_t beats = watchers.heartbeats() - beats_before;
  status.Update(watchers.End());
  RETURN_IF_ERROR(status);
  std::printf(
      "%d idle watchers of %d jobs: %.1f KiB each (npucd %.1f MiB before, %.1f MiB after); %.1f %% "
      "of a CPU, %.0f heartbeats/s\n",
      settings.watchers, settings.watched_jobs,
      static_cast<double>(after_kib - before_kib) / settings.watchers,
      static_cast<double>(before_kib) / 1024, static_cast<double>(after_kib) / 1024,
      cpu / took * 100, static_cast<double>(beats) / took);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Settings settings;
  bool smoke = false;
  const fs::path self = fs::read_symlink("/proc/self/exe");
  settings.npucd = (self.parent_path() / "npucd").string();
  settings.config = (self.parent_path() / "../../deploy/samples/kws/config.yaml").string();
  CLI::App app("a job beside its bare compile; idle watchers", "bench_jobs");
  app.add_option("--npucd", settings.npucd, "the daemon (default: beside this program)");
  app.add_option("--config", settings.config, "what to compile (default: the sample)");
  app.add_option("--jobs", settings.jobs, "measured; 0: none")->check(CLI::Range(0, 1000000));
  app.add_option("--watchers", settings.watchers, "at once; 0: none")->check(CLI::Range(0, 40000));
  app.add_option("--idle-seconds", settings.idle_seconds, "how long they are idle")
      ->check(CLI::Range(0.1, 3600.0));
  app.add_flag("--smoke", smoke, "a few seconds in all: does it run?");
  CLI11_PARSE(app, argc, argv);
  if (smoke) {
    settings.jobs = 5;
    settings.watchers = 200;
    settings.idle_seconds = 0.5;
  }
  std::string folder = (fs::temp_directory_path() / "npuc-bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  absl::Status status;
  const std::string jobs_folder = folder + "/jobs", watch_folder = folder + "/watch";
  fs::create_directory(jobs_folder);
  fs::create_directory(watch_folder);
  if (settings.jobs > 0) status = MeasureOverhead(settings, jobs_folder);
  if (status.ok() && settings.watchers > 0) status = MeasureWatchers(settings, watch_folder);
  if (!status.ok()) {
    std::fprintf(stderr, "bench_jobs: %s\nlogs are in %s\n", status.ToString().c_str(),
                 folder.c_str());
    return 1;
  }
  fs::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace npuc::bench

int main(int argc, char** argv) { return npuc::bench::Main(argc, argv); }
