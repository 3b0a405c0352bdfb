// Cache hits, durable submits and refusals of npucd beside a bare gRPC + RocksDB server,
// interleaved in one run, so that the ratios hold whatever else the machine does. README.md says
// how to read it.

#include <grpcpp/grpcpp.h>
#include <poll.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "client/lib/client.h"
#include "client/npuc_remote/job_input.h"
#include "compiler_core/base/status.h"
#include "npuc/v1/compile.grpc.pb.h"
#include "tests/bench/bare_server.h"
#include "tests/bench/child.h"

namespace npuc::bench {
namespace {

namespace fs = std::filesystem;
using Stub = v1::CompileService::Stub;

struct Settings {
  std::string npucd;
  std::string config;
  double seconds = 1.0;  // of one measurement
  int rounds = 7;
  std::vector<int> in_flight = {1, 32};
  std::string only;  // "hits", "submits", "refusals"; empty: all
  std::string json_file;
};

// One way to make a call; its status.
struct Subject {
  std::string name;
  const Child* server;
  Stub* stub;
  std::function<grpc::Status(Stub& stub, int64_t number)> call;
};

struct Sample {
  double per_second = 0;
  double p50_us = 0;
  double p99_us = 0;
  double server_cpu_us = 0;  // processor time of the server, for a call
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Calls for `seconds` with so many in flight. A failed call ends the benchmark: its figures would
// mean nothing.
absl::StatusOr<Sample> Measure(const Subject& subject, int in_flight, double seconds,
                               std::atomic<int64_t>& numbers) {
  std::vector<std::vector<double>> latencies(static_cast<size_t>(in_flight));
  std::vector<std::thread> threads;
  std::atomic<bool> failed = false;
  std::vector<std::string> errors(static_cast<size_t>(in_flight));
  const double cpu_before = subject.server->CpuSeconds();
  const absl::Time begin = absl::Now();
  const absl::Time end = begin + absl::Seconds(seconds);
  for (size_t i = 0; i < latencies.size(); ++i) {
    threads.emplace_back([&, i] {
      while (!failed) {
        const absl::Time start = absl::Now();
        if (start >= end) return;
        const grpc::Status status = subject.call(*subject.stub, ++numbers);
        if (!status.ok()) {
          errors[i] = absl::StrCat(subject.name, ": ", status.error_message());
          failed = true;
          return;
        }
        latencies[i].push_back(absl::ToDoubleMicroseconds(absl::Now() - start));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double took = absl::ToDoubleSeconds(absl::Now() - begin);
  const double cpu = subject.server->CpuSeconds() - cpu_before;
  for (const std::string& error : errors) {
    if (!error.empty()) return absl::InternalError(error);
  }
  std::vector<double> all;
  for (const auto& some : latencies) all.insert(all.end(), some.begin(), some.end());
  std::sort(all.begin(), all.end());
  if (all.empty()) return absl::InternalError(absl::StrCat(subject.name, ": no call ended"));
  const auto calls = static_cast<double>(all.size());
  return Sample{calls / took, all[all.size() / 2], all[all.size() * 99 / 100], cpu / calls * 1e6};
}

class Report {
 public:
  void Add(int in_flight, const std::string& name, std::vector<Sample> samples) {
    std::vector<double> rates, p50, p99, cpu;
    for (const Sample& sample : samples) {
      rates.push_back(sample.per_second);
      p50.push_back(sample.p50_us);
      p99.push_back(sample.p99_us);
      cpu.push_back(sample.server_cpu_us);
    }
    std::printf("%4d  %-28s %10.0f/s  p50 %8.0f us  p99 %8.0f us  server's cpu %6.0f us\n",
                in_flight, name.c_str(), Median(rates), Median(p50), Median(p99), Median(cpu));
    absl::StrAppend(&json_, json_.empty() ? "" : ",\n", "  {\"in_flight\": ", in_flight,
                    ", \"subject\": \"", name, "\", \"per_second\": ", Median(rates),
                    ", \"p50_us\": ", Median(p50), ", \"p99_us\": ", Median(p99),
                    ", \"server_cpu_us\": ", Median(cpu), "}");
  }
  // The median over the rounds of the ratio within a round.
  void Ratio(int in_flight, const std::string& name, const std::vector<Sample>& ours,
             const std::vector<Sample>& bare) {
    std::vector<double> ratios;
    for (size_t i = 0; i < ours.size(); ++i) {
      ratios.push_back(ours[i].per_second / bare[i].per_second);
    }
    std::printf("%4d  %-28s %10.2f of the rate\n", in_flight, name.c_str(), Median(ratios));
    absl::StrAppend(&json_, json_.empty() ? "" : ",\n", "  {\"in_flight\": ", in_flight,
                    ", \"ratio\": \"", name, "\", \"value\": ", Median(ratios), "}");
  }
  std::string Json() const { return absl::StrCat("[\n", json_, "\n]\n"); }

 private:
  std::string json_;
};

// Measures all subjects in turn, round after round; samples by subject.
absl::StatusOr<std::vector<std::vector<Sample>>> Interleave(const Settings& settings,
                                                            const std::vector<Subject>& subjects,
                                                            int in_flight,
                                                            std::atomic<int64_t>& numbers) {
  std::vector<std::vector<Sample>> samples(subjects.size());
  for (const Subject& subject : subjects) {  // warms connections and caches
    RETURN_IF_ERROR(Measure(subject, in_flight, settings.seconds / 4, numbers).status());
  }
  for (int round = 0; round < settings.rounds; ++round) {
    for (size_t i = 0; i < subjects.size(); ++i) {
      ASSIGN_OR_RETURN(const Sample sample,
                       Measure(subjects[i], in_flight, settings.seconds, numbers));
      samples[i].push_back(sample);
    }
  }
  return samples;
}

grpc::Status Create(Stub& stub, const v1::CompileJobSpec& spec, int64_t number, bool want_hit) {
  grpc::ClientContext context;
  v1::CreateCompileJobRequest request;
  request.set_request_id(absl::StrCat("bench-", number));
  *request.mutable_spec() = spec;
  v1::CreateCompileJobResponse response;
  const grpc::Status status = stub.CreateCompileJob(&context, request, &response);
  if (!status.ok() || !want_hit) return status;
  if (!response.job().has_succeeded()) {
    return grpc::Status(grpc::StatusCode::INTERNAL, "no cache hit in the answer");
  }
  return status;
}

// OK where it is refused for want of room in the queue.
grpc::Status CreateRefused(Stub& stub, const v1::CompileJobSpec& spec, int64_t number) {
  const grpc::Status status = Create(stub, spec, number, false);
  if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) return grpc::Status::OK;
  return status.ok() ? grpc::Status(grpc::StatusCode::INTERNAL, "the queue has room") : status;
}

grpc::Status Get(Stub& stub) {
  grpc::ClientContext context;
  v1::GetCompileJobRequest request;
  request.set_job_id("result");
  v1::GetCompileJobResponse response;
  return stub.GetCompileJob(&context, request, &response);
}

// The servers and what is sent to them.
struct Setup {
  std::vector<Child> children;  // npucd, full, bare
  std::unique_ptr<Stub> npucd;
  std::unique_ptr<Stub> full;  // an npucd with room for one waiting job
  std::unique_ptr<Stub> bare;
  v1::CompileJobSpec hit;
  v1::CompileJobSpec submit;  // never a hit
};

// Uploads what the config names and compiles it once.
absl::StatusOr<v1::CompileJob> CompileOnce(const std::string& address,
                                           const remote::JobInput& input) {
  ASSIGN_OR_RETURN(auto client, client::Client::Create({.server = address}));
  ASSIGN_OR_RETURN(const v1::CompileJob first,
                   client->Submit(input.spec, input.files, "first", nullptr));
  RETURN_IF_ERROR(client->Watch(first.job_id(), 1, [](const v1::JobEvent&) {}));
  ASSIGN_OR_RETURN(v1::CompileJob done, client->GetJob(first.job_id()));
  if (!done.has_succeeded()) return absl::InternalError("the sample does not compile");
  return done;
}

absl::StatusOr<Setup> Prepare(const Settings& settings, const std::string& folder) {
  Setup setup;
  const auto start = [&](std::vector<std::string> command,
                         const std::string& name) -> absl::StatusOr<std::string> {
    const std::string port_file = absl::StrCat(folder, "/", name, ".port");
    command.insert(command.end(), {"--port-file", port_file});
    ASSIGN_OR_RETURN(Child child, Child::Start(command, absl::StrCat(folder, "/", name, ".log")));
    setup.children.push_back(std::move(child));
    return setup.children.back().WaitForAddress(port_file);
  };
  const auto start_npucd = [&](const std::string& name, const std::vector<std::string>& flags) {
    std::vector<std::string> command = {settings.npucd,
                                        "--data-dir",
                                        absl::StrCat(folder, "/", name),
                                        "--listen",
                                        "127.0.0.1:0",
                                        "--insecure",
                                        "--workers",
                                        "1"};
    command.insert(command.end(), flags.begin(), flags.end());
    return start(std::move(command), name);
  };
  // More than one measurement submits while one worker compiles.
  ASSIGN_OR_RETURN(const std::string address, start_npucd("npucd", {"--max-queued", "10000000"}));
  ASSIGN_OR_RETURN(const std::string full, start_npucd("full", {"--max-queued", "1"}));
  ASSIGN_OR_RETURN(const std::string bare,
                   start({"/proc/self/exe", "--bare", folder + "/bare"}, "bare"));
  Diagnostics diagnostics;
  ASSIGN_OR_RETURN(const remote::JobInput input,
                   remote::ReadJobInput(settings.config, diagnostics));
  ASSIGN_OR_RETURN(v1::CompileJob done, CompileOnce(address, input));
  RETURN_IF_ERROR(CompileOnce(full, input).status());
  setup.hit = setup.submit = input.spec;
  setup.submit.set_no_cache(true);
  const auto channel = [](const std::string& server) {
    return grpc::CreateChannel(server, grpc::InsecureChannelCredentials());
  };
  setup.npucd = v1::CompileService::NewStub(channel(address));
  setup.full = v1::CompileService::NewStub(channel(full));
  setup.bare = v1::CompileService::NewStub(channel(bare));
  // The bare server answers hits with the very job that npucd answers with.
  done.mutable_spec()->clear_config_text();
  v1::CompileJobSpec result;
  result.set_config_text(absl::Base64Escape(done.SerializeAsString()));  // a text field
  const grpc::Status put = Create(*setup.bare, result, 0, false);
  if (!put.ok()) return absl::InternalError(put.error_message());
  return setup;
}

// Submits until the queue is full and stays so.
absl::Status Fill(const std::function<grpc::Status()>& submit) {
  int refused = 0;
  for (int tries = 0; tries < 100; ++tries) {
    refused = submit().error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED ? refused + 1 : 0;
    if (refused == 5) return absl::OkStatus();
    poll(nullptr, 0, 100);  // what else waited may be run yet
  }
  return absl::InternalError("the queue of one place does not stay full");
}

absl::Status Run(const Settings& settings, const std::string& folder) {
  ASSIGN_OR_RETURN(const Setup setup, Prepare(settings, folder));
  std::atomic<int64_t> numbers = 0;
  Report report;
  const Child& npucd = setup.children[0];
  const Child& full = setup.children[1];
  const Child& bare = setup.children[2];
  const auto hit = [&](Stub& stub, int64_t n) { return Create(stub, setup.hit, n, true); };
  const auto submit = [&](Stub& stub, int64_t n) { return Create(stub, setup.submit, n, false); };
  const std::vector<Subject> hits = {
      {"npucd cache hit", &npucd, setup.npucd.get(), hit},
      {"bare read + synced write", &bare, setup.bare.get(), hit},
      {"bare read", &bare, setup.bare.get(), [](Stub& stub, int64_t) { return Get(stub); }}};
  const std::vector<Subject> submits = {{"npucd durable submit", &npucd, setup.npucd.get(), submit},
                                        {"bare synced write", &bare, setup.bare.get(), submit}};
  const auto refused = [&](Stub& stub, int64_t n) { return CreateRefused(stub, setup.submit, n); };
  const std::vector<Subject> refusals = {{"npucd refusal", &full, setup.full.get(), refused},
                                         hits[2]};
  const auto flights = [&](const char* what) {
    return settings.only.empty() || settings.only == what ? settings.in_flight : std::vector<int>();
  };
  for (const int in_flight : flights("hits")) {
    ASSIGN_OR_RETURN(const auto samples, Interleave(settings, hits, in_flight, numbers));
    for (size_t i = 0; i < hits.size(); ++i) report.Add(in_flight, hits[i].name, samples[i]);
    report.Ratio(in_flight, "hit / bare read + write", samples[0], samples[1]);
    report.Ratio(in_flight, "hit / bare read", samples[0], samples[2]);
  }
  // From here no job is compiled, so that only submitting is measured.
  const auto hold = [&](const Child& server, Stub& stub) {
    return server.HoldSlot([&] {
      const grpc::Status status = submit(stub, ++numbers);
      const bool refused = status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED;
      return status.ok() || refused ? absl::OkStatus()
                                    : absl::InternalError(status.error_message());
    });
  };
  RETURN_IF_ERROR(hold(npucd, *setup.npucd));
  RETURN_IF_ERROR(hold(full, *setup.full));
  for (const int in_flight : flights("submits")) {
    ASSIGN_OR_RETURN(const auto samples, Interleave(settings, submits, in_flight, numbers));
    for (size_t i = 0; i < submits.size(); ++i) report.Add(in_flight, submits[i].name, samples[i]);
    report.Ratio(in_flight, "submit / bare write", samples[0], samples[1]);
  }
  RETURN_IF_ERROR(Fill([&] { return submit(*setup.full, ++numbers); }));
  for (const int in_flight : flights("refusals")) {
    ASSIGN_OR_RETURN(const auto samples, Interleave(settings, refusals, in_flight, numbers));
    for (size_t i = 0; i < refusals.size(); ++i) {
      report.Add(in_flight, refusals[i].name, samples[i]);
    }
    report.Ratio(in_flight, "refusal / bare read", samples[0], samples[1]);
  }
  if (settings.json_file.empty()) return absl::OkStatus();
  std::FILE* file = std::fopen(settings.json_file.c_str(), "w");
  if (file == nullptr) return absl::ErrnoToStatus(errno, settings.json_file);
  std::fputs(report.Json().c_str(), file);
  return std::fclose(file) == 0 ? absl::OkStatus() : absl::ErrnoToStatus(errno, "fclose");
}

int Main(int argc, char** argv) {
  Settings settings;
  std::string bare, port_file;
  bool smoke = false;
  const fs::path self = fs::read_symlink("/proc/self/exe");
  settings.npucd = (self.parent_path() / "npucd").string();
  settings.config = (self.parent_path() / "../../deploy/samples/kws/config.yaml").string();
  CLI::App app("npucd beside a bare gRPC + RocksDB server", "bench_service");
  app.add_option("--npucd", settings.npucd, "the daemon (default: beside this program)");
  app.add_option("--config", settings.config, "what to compile (default: the sample)");
  app.add_option("--seconds", settings.seconds, "of one measurement")
      ->check(CLI::Range(0.05, 60.0));
  app.add_option("--rounds", settings.rounds, "measurements of each")->check(CLI::Range(1, 1000));
  app.add_option("--in-flight", settings.in_flight, "calls at once")->check(CLI::Range(1, 256));
  app.add_option("--only", settings.only, "one of the three")
      ->check(CLI::IsMember({"hits", "submits", "refusals"}));
  app.add_option("--json", settings.json_file, "write the figures there, too");
  app.add_flag("--smoke", smoke, "a few seconds in all: does it run?");
  app.add_option("--bare", bare, "be the bare server on this folder")->group("");
  app.add_option("--port-file", port_file, "of the bare server")->group("");
  CLI11_PARSE(app, argc, argv);
  // As npucd (server/main.cc): the bare server and the client are to have the same.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  if (!bare.empty()) return RunBareServer(bare, port_file);
  if (smoke) {
    settings.seconds = 0.1;
    settings.rounds = 1;
  }
  std::string folder = (fs::temp_directory_path() / "npuc-bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  const absl::Status status = Run(settings, folder);
  if (!status.ok()) {
    std::fprintf(stderr, "bench_service: %s\nlogs are in %s\n", status.ToString().c_str(),
                 folder.c_str());
    return 1;
  }
  fs::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace npuc::bench

int main(int argc, char** argv) { return npuc::bench::Main(argc, argv); }
