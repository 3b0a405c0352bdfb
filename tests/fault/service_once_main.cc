// Many sends of one request make one job, and many equal jobs one compile, on the real daemon;
// README.md says what must hold.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/lib/client.h"
#include "compiler_core/base/status.h"
#include "server/worker/process_tree_test_util.h"
#include "tests/fault/daemon_process.h"
#include "tests/fault/service_load.h"

namespace npuc::fault {
namespace {

namespace fs = std::filesystem;
using Stub = v1::CompileService::Stub;

constexpr int kChannels = 8;

struct Settings {
  std::string npucd;
  std::vector<std::string> configs;
  int sends = 10000;
  int jobs = 1000;
  uint64_t seed = 1;
};

// One CreateCompileJob, sent again while the answer invites that.
struct Send {
  v1::CreateCompileJobRequest request;
  v1::CreateCompileJobResponse response;
  grpc::Status status;
};

// Sends all at once, and again where a retry is invited, until each has an answer. Returns how many
// were sent again.
int64_t SendAll(std::vector<std::unique_ptr<Stub>>& stubs, std::vector<Send>& sends) {
  int64_t repeats = 0;
  std::vector<size_t> todo(sends.size());
  for (size_t i = 0; i < todo.size(); ++i) todo[i] = i;
  while (!todo.empty()) {
    std::mutex mutex;
    std::condition_variable all_done;
    size_t open = todo.size();
    std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
    for (const size_t i : todo) {
      contexts.push_back(std::make_unique<grpc::ClientContext>());
      contexts.back()->set_deadline(absl::ToChronoTime(absl::Now() + absl::Minutes(2)));
      stubs[i % stubs.size()]->async()->CreateCompileJob(
          contexts.back().get(), &sends[i].request, &sends[i].response,
          [&, i](const grpc::Status& status) {
            sends[i].status = status;
            const std::lock_guard<std::mutex> lock(mutex);
            if (--open == 0) all_done.notify_one();
          });
    }
    std::unique_lock<std::mutex> lock(mutex);
    all_done.wait(lock, [&] { return open == 0; });
    std::erase_if(todo, [&](size_t i) { return !IsRetryable(sends[i].status); });
    repeats += static_cast<int64_t>(todo.size());
  }
  return repeats;
}

class Once {
 public:
  Once(const Settings& settings, const std::string& folder)
      : settings_(settings), daemon_({.program = settings.npucd, .folder = folder, .workers = 2}) {}

  absl::Status Run() {
    ASSIGN_OR_RETURN(variants_, ReadVariants(settings_.configs));
    RETURN_IF_ERROR(daemon_.Spawn());
    RETURN_IF_ERROR(daemon_.AwaitServing(absl::Minutes(1)));
    ASSIGN_OR_RETURN(client_, client::Client::Create({.server = daemon_.address()}));
    for (const LoadVariant& variant : variants_) {
      RETURN_IF_ERROR(client_->Upload(variant.input.files, nullptr));
    }
    for (int i = 0; i < kChannels; ++i) {
      stubs_.push_back(v1::CompileService::NewStub(OpenChannel(daemon_.address())));
    }
    RETURN_IF_ERROR(OneRequest());
    return EqualJobs();
  }

 private:
  absl::Status OneRequest();
  absl::Status EqualJobs();
  absl::Status CheckEqualJobs(const std::vector<std::string>& ids,
                              const std::set<std::string>& cancelled);

  const Settings& settings_;
  DaemonProcess daemon_;
  std::vector<LoadVariant> variants_;
  std::unique_ptr<client::Client> client_;
  std::vector<std::unique_ptr<Stub>> stubs_;
};

absl::Status Once::OneRequest() {
  std::vector<Send> sends(static_cast<size_t>(settings_.sends));
  for (Send& send : sends) {
    send.request.set_request_id("the-one");
    *send.request.mutable_spec() = variants_.front().input.spec;
    send.request.mutable_spec()->set_no_cache(true);
  }
  const absl::Time begin = absl::Now();
  const int64_t repeats = SendAll(stubs_, sends);
  const double seconds = absl::ToDoubleSeconds(absl::Now() - begin);
  std::set<std::string> jobs;
  int made = 0;
  for (const Send& send : sends) {
    if (!send.status.ok()) return absl::InternalError(send.status.error_message());
    jobs.insert(send.response.job().job_id());
    if (!send.response.already_existed()) ++made;
  }
  ASSIGN_OR_RETURN(const auto listed, client_->ListJobs({}, 1000));
  std::printf(
      "FIGURE: %d concurrent sends of one request id: %zu job, made by %d of them, %zu "
      "listed; %.2f s, %lld sent again as the server asked\n",
      settings_.sends, jobs.size(), made, listed.size(), seconds, static_cast<long long>(repeats));
  if (jobs.size() == 1 && made == 1 && listed.size() == 1) return absl::OkStatus();
  return absl::InternalError("one request id must make one job");
}

absl::Status Once::EqualJobs() {
  std::vector<Send> sends(static_cast<size_t>(settings_.jobs));
  for (size_t i = 0; i < sends.size(); ++i) {
    sends[i].request.set_request_id(absl::StrCat("equal-", i));
    *sends[i].request.mutable_spec() = variants_.back().input.spec;
    // Where there is one config alone, the result of OneRequest is not theirs.
    sends[i].request.mutable_spec()->mutable_model_info_time()->set_seconds(1);
  }
  // The worker that has the first of them waits for the others.
  const std::vector<pid_t> workers = worker::ProcessesBelow(daemon_.pid());
  for (const pid_t pid : workers) kill(pid, SIGSTOP);
  SendAll(stubs_, sends);
  std::vector<std::string> ids;
  for (const Send& send : sends) {
    if (!send.status.ok()) return absl::InternalError(send.status.error_message());
    ids.push_back(send.response.job().job_id());
  }
  std::mt19937_64 random(settings_.seed);
  std::set<std::string> cancelled = {*std::min_element(ids.begin(), ids.end())};  // the leader
  for (const std::string& id : ids) {
    if (random() % 3 == 0) cancelled.insert(id);
  }
  for (const std::string& id : cancelled) RETURN_IF_ERROR(client_->CancelJob(id, "").status());
  for (const pid_t pid : workers) kill(pid, SIGCONT);
  return CheckEqualJobs(ids, cancelled);
}

absl::Status Once::CheckEqualJobs(const std::vector<std::string>& ids,
                                  const std::set<std::string>& cancelled) {
  std::set<std::string> results;
  int leased = 0;
  int succeeded = 0;
  for (const std::string& id : ids) {
    RETURN_IF_ERROR(client_->Watch(id, 1, [](const v1::JobEvent&) {}));
    ASSIGN_OR_RETURN(const v1::CompileJob job, client_->GetJob(id));
    if (job.has_cancelled() != cancelled.contains(id) ||
        (!job.has_cancelled() && !job.has_succeeded())) {
      return absl::InternalError(
          absl::StrCat("job ", id, " ended otherwise: ", job.ShortDebugString()));
    }
    leased += job.attempts() > 0 && job.has_succeeded() ? 1 : 0;
    if (!job.has_succeeded()) continue;
    ++succeeded;
    for (const v1::Artifact& artifact : job.artifacts()) {
      results.insert(absl::StrCat(artifact.name(), " ", artifact.sha256()));
    }
  }
  std::set<std::string> names;
  for (const std::string& result : results) names.insert(result.substr(0, result.find(' ')));
  std::printf(
      "FIGURE: %zu equal jobs, %zu cancelled, the first of them too: %d succeeded with the "
      "artifacts of one compile, which ran on for %d of them\n",
      ids.size(), cancelled.size(), succeeded, leased);
  // compile.log tells one compile from another, too.
  if (names.size() == results.size() && leased == 1) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(leased, " runs, ", results.size(), " artifacts of ", names.size(), " names"));
}

int Main(int argc, char** argv) {
  Settings settings;
  const fs::path bin = fs::read_symlink("/proc/self/exe").parent_path();
  settings.npucd = (bin / "npucd").string();
  CLI::App app("one request id, one job; equal jobs, one compile", "service_once");
  app.add_option("configs", settings.configs, "what to compile")->required();
  app.add_option("--npucd", settings.npucd, "the daemon (default: beside this program)");
  app.add_option("--sends", settings.sends, "of one request id")->check(CLI::Range(1, 100000));
  app.add_option("--jobs", settings.jobs, "that are equal")->check(CLI::Range(2, 10000));
  app.add_option("--seed", settings.seed, "of who is cancelled");
  CLI11_PARSE(app, argc, argv);
  return RunInFolder("service_once", "",
                     [&](const std::string& folder) { return Once(settings, folder).Run(); });
}

}  // namespace
}  // namespace npuc::fault

int main(int argc, char** argv) { return npuc::fault::Main(argc, argv); }
