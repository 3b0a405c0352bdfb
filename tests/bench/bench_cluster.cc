// The clients of bench_cluster.py, and the bare server that npucds on PostgreSQL are compared with.
// A measurement is one line of JSON; README.md says how to read it.
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "client/lib/client.h"
#include "client/npuc_remote/job_input.h"
#include "compiler_core/base/status.h"
#include "npuc/v1/compile.grpc.pb.h"
#include "server/api/convert.h"
#include "server/jobs/transitions.h"
#include "server/pg/node.h"
#include "server/pg/pg_job_store.h"
#include "tests/bench/watchers.h"

namespace npuc::bench {
namespace {

struct Settings {
  std::string config;
  std::vector<std::string> nodes;
  int in_flight = 32;
  double seconds = 1.0;
  std::string watch_at;  // measures starts, not submits
  int jobs = 200;
  int watchers = 0;
  std::string bare;  // PostgreSQL's URL
  std::string secret_file;
  std::string name;
  std::string port_file;
};

// A job as npucd makes it, put where npucd puts it, by the same batches, and answered by the same
// message; nothing is checked, kept in memory, counted or logged.
class BareService final : public v1::CompileService::CallbackService {
 public:
  explicit BareService(pg::PgJobStore* store) : store_(store) {}

  grpc::ServerUnaryReactor* CreateCompileJob(grpc::CallbackServerContext* context,
                                             const v1::CreateCompileJobRequest* request,
                                             v1::CreateCompileJobResponse* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    const v1::CompileJobSpec& spec = request->spec();
    jobs::NewJob job{.tenant = "default",
                     .request_id = request->request_id(),
                     .request_sha256 = std::string(64, 'a'),
                     .config_text = spec.config_text(),
                     .output_file = "model.h",
                     .cache_key = std::string(64, 'c')};
    job.spec.config_name = spec.config_name();
    job.spec.inputs = {{.role = "MODEL_FILE",
                        .name = "model.pb",
                        .sha256 = spec.model().sha256(),
                        .md5 = std::string(32, 'd'),
                        .size_bytes = static_cast<uint64_t>(spec.model().size_bytes())}};
    job.spec.timeout = absl::Minutes(10);
    job.spec.no_cache = true;
    job.spec.core = "GRUS";
    job.spec.framework = "tensorflow";
    job.spec.submitter = "local";
    const absl::Time now = absl::Now();
    const uint64_t number = ++number_;
    const auto change = std::make_shared<const jobs::JobChange>(
        jobs::CreateJob(std::move(job), jobs::MakeJobId(now, random_, number), number, now));
    store_->Apply(change, [reactor, response, change](const absl::Status& status) {
      api::ToProto(change->job, jobs::JobWait{.estimated_start = change->job.create_time},
                   response->mutable_job());
      reactor->Finish(status.ok() ? grpc::Status::OK
                                  : grpc::Status(grpc::StatusCode::INTERNAL, status.ToString()));
    });
    return reactor;
  }

 private:
  pg::PgJobStore* const store_;
  const uint64_t random_ = std::random_device{}();  // 32 bits of an id
  std::atomic<uint64_t> number_ = 0;
};

absl::Status ServeBare(const Settings& settings) {
  pg::ConnectionOptions options{.url = settings.bare};
  std::ifstream secret(settings.secret_file);
  std::getline(secret, options.password);
  pg::Sessions sessions(options);
  ASSIGN_OR_RETURN(const std::unique_ptr<pg::Node> node,
                   pg::Node::Join(&sessions, {.name = settings.name, .steady_now = absl::Now}));
  node->StartBeating();
  pg::PgJobStore store(&sessions, node.get());
  BareService service(&store);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return absl::InternalError("no port");
  std::ofstream(settings.port_file + ".tmp") << "grpc=127.0.0.1:" << port << "\n";
  if (std::rename((settings.port_file + ".tmp").c_str(), settings.port_file.c_str()) != 0) {
    return absl::ErrnoToStatus(errno, settings.port_file);
  }
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  server->Shutdown();
  return absl::OkStatus();
}

using Stub = v1::CompileService::Stub;

std::unique_ptr<Stub> Connect(const std::string& address) {
  return v1::CompileService::NewStub(
      grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
}

absl::StatusOr<v1::CompileJobSpec> ReadSpec(const Settings& settings) {
  Diagnostics diagnostics;
  ASSIGN_OR_RETURN(remote::JobInput input, remote::ReadJobInput(settings.config, diagnostics));
  input.spec.set_no_cache(true);
  return input.spec;
}

absl::StatusOr<std::string> Submit(Stub& stub, const v1::CompileJobSpec& spec) {
  grpc::ClientContext context;
  v1::CreateCompileJobRequest request;
  request.set_request_id(client::NewRequestId());
  *request.mutable_spec() = spec;
  v1::CreateCompileJobResponse response;
  const grpc::Status status = stub.CreateCompileJob(&context, request, &response);
  if (!status.ok()) return absl::InternalError(status.error_message());
  return response.job().job_id();
}

void Print(std::vector<double> seconds, double took) {
  std::sort(seconds.begin(), seconds.end());
  const auto at = [&](double share) {
    return seconds[static_cast<size_t>(share * static_cast<double>(seconds.size() - 1))] * 1e3;
  };
  std::printf("{\"calls\": %zu, \"per_second\": %.1f, \"p50_ms\": %.3f, \"p99_ms\": %.3f}\n",
              seconds.size(), static_cast<double>(seconds.size()) / took, at(0.5), at(0.99));
}

// Submits at all nodes for some seconds.
absl::Status MeasureSubmits(const Settings& settings) {
  ASSIGN_OR_RETURN(const v1::CompileJobSpec spec, ReadSpec(settings));
  std::vector<std::unique_ptr<Stub>> stubs;
  for (const std::string& node : settings.nodes) {
    stubs.push_back(Connect(node));
    RETURN_IF_ERROR(Submit(*stubs.back(), spec).status());  // connects
  }
  std::vector<std::vector<double>> latencies(static_cast<size_t>(settings.in_flight));
  std::vector<absl::Status> errors(latencies.size(), absl::OkStatus());
  std::vector<std::thread> threads;
  const absl::Time begin = absl::Now();
  const absl::Time end = begin + absl::Seconds(settings.seconds);
  for (size_t i = 0; i < latencies.size(); ++i) {
    threads.emplace_back([&, i] {
      Stub& stub = *stubs[i % stubs.size()];
      for (absl::Time start = absl::Now(); start < end && errors[i].ok(); start = absl::Now()) {
        errors[i].Update(Submit(stub, spec).status());
        latencies[i].push_back(absl::ToDoubleSeconds(absl::Now() - start));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double took = absl::ToDoubleSeconds(absl::Now() - begin);
  std::vector<double> all;
  for (size_t i = 0; i < latencies.size(); ++i) {
    RETURN_IF_ERROR(errors[i]);
    all.insert(all.end(), latencies[i].begin(), latencies[i].end());
  }
  Print(std::move(all), took);
  return absl::OkStatus();
}

// From the call that submits at the first node to where a watcher at another one sees the start.
absl::Status MeasureStarts(const Settings& settings) {
  ASSIGN_OR_RETURN(const v1::CompileJobSpec spec, ReadSpec(settings));
  const std::unique_ptr<Stub> submit = Connect(settings.nodes.front());
  const std::unique_ptr<Stub> watch = Connect(settings.watch_at);
  std::vector<double> seconds;
  const absl::Time begin = absl::Now();
  for (int i = 0; i < settings.jobs; ++i) {
    const absl::Time start = absl::Now();
    ASSIGN_OR_RETURN(const std::string id, Submit(*submit, spec));
    grpc::ClientContext context;
    v1::WatchCompileJobRequest request;
    request.set_job_id(id);
    request.set_from_seq(1);
    const auto reader = watch->WatchCompileJob(&context, request);
    bool started = false;
    for (v1::WatchCompileJobResponse response; reader->Read(&response);) {
      const bool runs = response.event().has_state_changed() &&
                        response.event().state_changed().state() == v1::JOB_STATE_RUNNING;
      if (!runs || started) continue;
      started = true;
      seconds.push_back(absl::ToDoubleSeconds(absl::Now() - start));
    }
    const grpc::Status status = reader->Finish();
    if (!status.ok()) return absl::InternalError(status.error_message());
    if (!started) return absl::InternalError(absl::StrCat("job ", id, " did not run"));
  }
  Print(std::move(seconds), absl::ToDoubleSeconds(absl::Now() - begin));
  return absl::OkStatus();
}

// Submits a job for each watcher, in turn at all nodes, and watches it at the next node, until the
// standard input ends. Prints a line once all watch.
absl::Status WatchQueuedJobs(const Settings& settings) {
  ASSIGN_OR_RETURN(const v1::CompileJobSpec spec, ReadSpec(settings));
  std::vector<std::unique_ptr<Stub>> stubs;
  for (const std::string& node : settings.nodes) stubs.push_back(Connect(node));
  Watchers watchers;
  for (int i = 0; i < settings.watchers; ++i) {
    const size_t n = static_cast<size_t>(i);
    ASSIGN_OR_RETURN(const std::string id, Submit(*stubs[n % stubs.size()], spec));
    watchers.Add(*stubs[(n + 1) % stubs.size()], id);
  }
  std::printf("submitted\n");
  std::fflush(stdout);
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  const int attached = watchers.attached();
  RETURN_IF_ERROR(watchers.End());
  if (attached == settings.watchers) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(attached, " of ", settings.watchers, " watchers had an event"));
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("the programs of bench_cluster.py", "bench_cluster");
  app.add_option("--config", settings.config, "what to compile");
  app.add_option("--nodes", settings.nodes, "addresses, separated by commas")->delimiter(',');
  app.add_option("--in-flight", settings.in_flight, "calls at once")->check(CLI::Range(1, 1024));
  app.add_option("--seconds", settings.seconds, "of the measurement")
      ->check(CLI::Range(0.05, 60.0));
  app.add_option("--watch-at", settings.watch_at, "measure starts, seen from this node");
  app.add_option("--jobs", settings.jobs, "how many starts")->check(CLI::Range(1, 100000));
  app.add_option("--watchers", settings.watchers, "watch so many queued jobs until input ends")
      ->check(CLI::Range(1, 100000));
  app.add_option("--bare", settings.bare, "be the bare server on this PostgreSQL");
  app.add_option("--secret-file", settings.secret_file, "of the bare server: the password");
  app.add_option("--name", settings.name, "of the bare server");
  app.add_option("--port-file", settings.port_file, "of the bare server");
  CLI11_PARSE(app, argc, argv);
  // As npucd (server/main.cc).
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const absl::Status status = !settings.bare.empty()       ? ServeBare(settings)
                              : settings.watchers > 0      ? WatchQueuedJobs(settings)
                              : !settings.watch_at.empty() ? MeasureStarts(settings)
                                                           : MeasureSubmits(settings);
  if (!status.ok()) std::fprintf(stderr, "bench_cluster: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace npuc::bench

int main(int argc, char** argv) { return npuc::bench::Main(argc, argv); }
