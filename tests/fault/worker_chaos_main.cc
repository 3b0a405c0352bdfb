// The workers' warm parent, killed again and again under a load of real compiles, and its program
// spoilt; README.md says what must hold.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
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

constexpr absl::Duration kStartPatience = absl::Seconds(60);
constexpr absl::Duration kParentPatience = absl::Seconds(60);
constexpr absl::Duration kProgressPatience = absl::Seconds(20);
// How soon readiness must tell that no worker can be started.
constexpr absl::Duration kTellPatience = absl::Seconds(10);
constexpr char kCondition[] = "workers";
constexpr char kAdvice[] = "install the npuc-worker of npucd's own build";

struct Settings {
  std::vector<std::string> configs;
  int kills = 10;
  int spoils = 1;
  int workers = 4;
  int clients = 8;
  uint64_t seed = 0;
  double mean_seconds = 0.7;  // from a job's end to the next kill
  std::string keep;
};

class Chaos {
 public:
  Chaos(Settings settings, std::string folder)
      : settings_(std::move(settings)),
        folder_(std::move(folder)),
        program_(folder_ + "/bin/npuc-worker"),
        random_(settings_.seed) {}

  absl::Status Run();

 private:
  absl::Status CopyPrograms() const;
  absl::Status Start(const std::string& name, std::vector<LoadVariant>& variants);
  pid_t WarmParent() const;
  absl::StatusOr<pid_t> AwaitParent();
  absl::Status KillParent(pid_t pid) const;
  void AwaitProgress(const ServiceLoad& load);
  absl::Status Upgrade() const;
  absl::Status Spoil();
  absl::Status AwaitCondition(bool holds) const;
  absl::Status Check(const ServiceLoad::Report& report) const;

  const Settings settings_;
  const std::string folder_;
  const std::string program_;
  std::mt19937_64 random_;
  std::unique_ptr<DaemonProcess> daemon_;
  std::unique_ptr<client::Client> client_;
};

// npucd takes the npuc-worker beside it, which is spoilt here.
absl::Status Chaos::CopyPrograms() const {
  const fs::path bin = fs::read_symlink("/proc/self/exe").parent_path();
  std::error_code error;
  fs::create_directories(folder_ + "/bin", error);
  for (const char* name : {"npucd", "npuc-worker"}) {
    fs::copy_file(bin / name, fs::path(folder_) / "bin" / name, error);
    if (error) return absl::InternalError(absl::StrCat("cannot copy ", name));
  }
  // The file itself, whatever will lie at the path.
  fs::create_hard_link(program_, folder_ + "/bin/original", error);
  return error ? absl::InternalError("cannot link npuc-worker") : absl::OkStatus();
}

absl::Status Chaos::Start(const std::string& name, std::vector<LoadVariant>& variants) {
  daemon_ = std::make_unique<DaemonProcess>(
      DaemonProcess::Options{.program = folder_ + "/bin/npucd",
                             .folder = absl::StrCat(folder_, "/", name),
                             .workers = settings_.workers});
  RETURN_IF_ERROR(daemon_->Spawn());
  RETURN_IF_ERROR(daemon_->AwaitServing(kStartPatience));
  ASSIGN_OR_RETURN(client_, client::Client::Create({.server = daemon_->address()}));
  for (const LoadVariant& variant : variants) {
    RETURN_IF_ERROR(client_->Upload(variant.input.files, nullptr));
  }
  return absl::OkStatus();
}

// The daemon's only child; 0: there is none at the moment.
pid_t Chaos::WarmParent() const {
  for (const pid_t pid : worker::ProcessesBelow(daemon_->pid())) {
    std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
    std::string text;
    std::getline(file, text);
    // "PID (NAME) STATE PARENT ..."
    const size_t end = text.rfind(')');
    if (end != std::string::npos &&
        absl::StartsWith(text.substr(end + 4), absl::StrCat(daemon_->pid(), " "))) {
      return pid;
    }
  }
  return 0;
}

absl::StatusOr<pid_t> Chaos::AwaitParent() {
  const absl::Time limit = absl::Now() + kParentPatience;
  while (absl::Now() < limit) {
    const pid_t pid = WarmParent();
    if (pid != 0) return pid;
    const std::optional<int> code = daemon_->AwaitEnd(absl::ZeroDuration());
    if (code.has_value()) {
      return absl::InternalError(absl::StrCat("npucd ended by itself: ", *code));
    }
    Pause(absl::Milliseconds(10));
  }
  return absl::DeadlineExceededError("there is no warm parent any more");
}

absl::Status Chaos::KillParent(pid_t pid) const {
  kill(pid, SIGKILL);
  const absl::Time limit = absl::Now() + kParentPatience;
  while (WarmParent() == pid) {
    if (absl::Now() > limit) return absl::DeadlineExceededError("a warm parent does not die");
    Pause(absl::Milliseconds(5));
  }
  return absl::OkStatus();
}

// Until a job has ended, so that a slow machine comes to an end, too, and then for a random while.
// Some kills come without, and so while a warm parent starts.
void Chaos::AwaitProgress(const ServiceLoad& load) {
  const auto ended = [&] {
    const ServiceLoad::Report report = load.report();
    return report.succeeded + report.cancelled + report.given_up + report.broken_count;
  };
  const int64_t before = ended();
  const absl::Time limit = absl::Now() + kProgressPatience;
  const bool waits = random_() % 10 != 0;
  while (waits && ended() == before && absl::Now() < limit) Pause(absl::Milliseconds(5));
  std::exponential_distribution<double> draw(1.0 / settings_.mean_seconds);
  Pause(absl::Seconds(std::min(draw(random_), 6.0 * settings_.mean_seconds)));
}

// From now on another program lies where the daemon found its npuc-worker.
absl::Status Chaos::Upgrade() const {
  std::error_code error;
  fs::copy_file("/bin/true", folder_ + "/bin/new", error);
  if (!error) fs::rename(folder_ + "/bin/new", program_, error);
  return error ? absl::InternalError("cannot replace npuc-worker") : absl::OkStatus();
}

absl::Status Chaos::AwaitCondition(bool holds) const {
  const absl::Time limit = absl::Now() + kTellPatience;
  std::string last = "not told";
  while (absl::Now() < limit) {
    ASSIGN_OR_RETURN(const auto info, client_->GetServerInfo());
    for (const v1::ReadinessCondition& condition : info.conditions()) {
      if (condition.name() != kCondition) continue;
      last = condition.reason();
      if (holds ? last.empty() : absl::StrContains(last, kAdvice)) return absl::OkStatus();
    }
    Pause(absl::Milliseconds(20));
  }
  return absl::DeadlineExceededError(absl::StrCat("readiness does not tell that workers can",
                                                  holds ? "" : "not", " be started: ", last));
}

// No worker can be started for a while.
absl::Status Chaos::Spoil() {
  // First the parent: without the permission, one that was just killed would have no successor.
  ASSIGN_OR_RETURN(const pid_t parent, AwaitParent());
  fs::permissions(folder_ + "/bin/original", fs::perms::owner_read);
  RETURN_IF_ERROR(KillParent(parent));
  RETURN_IF_ERROR(AwaitCondition(false));
  Pause(absl::Seconds(1));
  fs::permissions(folder_ + "/bin/original", fs::perms::owner_all);
  return AwaitCondition(true);
}

absl::Status Chaos::Run() {
  RETURN_IF_ERROR(CopyPrograms());
  ASSIGN_OR_RETURN(std::vector<LoadVariant> variants, ReadVariants(settings_.configs));
  RETURN_IF_ERROR(Start("quiet", variants));
  RETURN_IF_ERROR(CompileQuietly(daemon_->address(), variants));
  RETURN_IF_ERROR(Start("loud", variants));
  ServiceLoad load(
      {.addresses = {daemon_->address()}, .clients = settings_.clients, .seed = settings_.seed},
      &variants);
  load.Start();
  const absl::Time begin = absl::Now();
  for (int i = 0; i < settings_.kills; ++i) {
    if (i == settings_.kills / 2) RETURN_IF_ERROR(Upgrade());
    AwaitProgress(load);
    ASSIGN_OR_RETURN(const pid_t parent, AwaitParent());
    RETURN_IF_ERROR(KillParent(parent));
    if (load.report().broken_count > 0) break;
    if ((i + 1) % 20 == 0) {
      std::printf("  %d of %d, %lld jobs accepted\n", i + 1, settings_.kills,
                  static_cast<long long>(load.report().accepted));
      std::fflush(stdout);
    }
  }
  for (int i = 0; i < settings_.spoils && load.report().broken_count == 0; ++i) {
    RETURN_IF_ERROR(Spoil());
  }
  load.Finish();
  load.Audit();
  std::printf("%.0f s, seed %llu\n", absl::ToDoubleSeconds(absl::Now() - begin),
              static_cast<unsigned long long>(settings_.seed));
  return Check(load.report());
}

absl::Status Chaos::Check(const ServiceLoad::Report& report) const {
  const auto number = [](int64_t value) { return static_cast<long long>(value); };
  std::printf(
      "FIGURE: warm parent killed %d times under load, another program at its path since half of "
      "them, not executable %d times: %lld jobs accepted, %lld succeeded, %lld cancelled by their "
      "clients, %lld failed; %lld run again, %lld cache hits\n",
      settings_.kills, settings_.spoils, number(report.accepted), number(report.succeeded),
      number(report.cancelled), number(report.given_up + report.broken_count),
      number(report.run_again), number(report.cache_hits));
  for (const auto& [error, count] : report.errors) {
    std::printf("  clients saw %lld x %s\n", number(count), error.c_str());
  }
  for (const std::string& what : report.broken) std::printf("BROKEN: %s\n", what.c_str());
  if (report.broken_count == 0 && report.given_up == 0) return absl::OkStatus();
  return absl::InternalError("accepted jobs did not succeed");
}

int Main(int argc, char** argv) {
  Settings settings;
  settings.seed = std::random_device{}();
  CLI::App app("the workers' warm parent, killed again and again under load", "worker_chaos");
  app.add_option("configs", settings.configs, "what to compile")->required();
  app.add_option("--kills", settings.kills, "of the warm parent")->check(CLI::Range(0, 100000));
  app.add_option("--spoils", settings.spoils, "how often npuc-worker cannot be executed")
      ->check(CLI::Range(0, 1000));
  app.add_option("--workers", settings.workers, "of the daemon")->check(CLI::Range(1, 64));
  app.add_option("--clients", settings.clients, "at once")->check(CLI::Range(1, 256));
  app.add_option("--seed", settings.seed, "of all that is drawn (default: random)");
  app.add_option("--mean", settings.mean_seconds, "seconds from a job's end to the next kill")
      ->check(CLI::Range(0.01, 60.0));
  app.add_option("--keep", settings.keep, "keep data and logs in this folder");
  CLI11_PARSE(app, argc, argv);
  return RunInFolder("worker_chaos", settings.keep,
                     [&](const std::string& folder) { return Chaos(settings, folder).Run(); });
}

}  // namespace
}  // namespace npuc::fault

int main(int argc, char** argv) { return npuc::fault::Main(argc, argv); }
