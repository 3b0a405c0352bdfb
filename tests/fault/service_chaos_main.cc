// A daemon under a load of real compiles, ended again and again at random moments; README.md says
// what must hold.
#include <signal.h>
#include <sys/wait.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/lib/client.h"
#include "compiler_core/base/status.h"
#include "tests/fault/daemon_process.h"
#include "tests/fault/power_cut.h"
#include "tests/fault/service_load.h"

namespace npuc::fault {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kStartPatience = absl::Seconds(60);
// What a process needs to end once everything in it has.
constexpr absl::Duration kExitMargin = absl::Seconds(2);
// What npucd says of a job store that has lost something: RocksDB of files that do not belong
// together, and its own word of logs that end too early.
constexpr const char* kLossWords[] = {"Corruption: ", "has lost accepted jobs"};

struct Settings {
  std::string npucd;
  std::string preload;
  std::vector<std::string> configs;
  std::string how = "kill";
  int times = 5;
  int workers = 4;
  int clients = 8;
  uint64_t seed = 0;
  double mean_seconds = 0.5;  // between two ends
  int stop_seconds = 3;       // how long the daemon may take after SIGTERM
  std::vector<std::string> flags;
  std::vector<std::string> forbidden;  // in the daemon's log
  std::string keep;
  bool plant = false;  // the mistake that `cut` must find
};

struct Figures {
  std::vector<double> starts;  // seconds
  std::vector<double> ends;    // seconds, after SIGTERM
  CutReport cut;
  int killed_starting = 0;
};

class Chaos {
 public:
  Chaos(Settings settings, std::string folder)
      : settings_(std::move(settings)), folder_(std::move(folder)), random_(settings_.seed) {}

  absl::Status Run();

 private:
  DaemonProcess::Options ProcessOptions(const std::string& name) const;
  absl::Status Start();
  absl::Status EndOnce();
  absl::Status Cut();
  absl::Status Terminate();
  // The first line of npucd's log that has the text.
  std::optional<std::string> LogLineWith(const std::string& text) const;
  absl::Status CheckLog() const;
  void Sleep(double mean_seconds) {
    std::exponential_distribution<double> draw(1.0 / mean_seconds);
    Pause(absl::Seconds(std::min(draw(random_), 6.0 * mean_seconds)));
  }
  bool Print(const ServiceLoad::Report& report) const;

  const Settings settings_;
  const std::string folder_;
  std::mt19937_64 random_;
  std::unique_ptr<DaemonProcess> daemon_;
  Figures figures_;
};

DaemonProcess::Options Chaos::ProcessOptions(const std::string& name) const {
  DaemonProcess::Options options{.program = settings_.npucd,
                                 .folder = absl::StrCat(folder_, "/", name),
                                 .workers = settings_.workers,
                                 .flags = settings_.flags};
  options.flags.push_back(absl::StrCat("--stop-seconds=", settings_.stop_seconds));
  if (settings_.how == "cut" && name == "loud") {
    options.environment = {absl::StrCat("LD_PRELOAD=", settings_.preload),
                           absl::StrCat(kSyncTableEnv, "=", folder_, "/synced")};
    if (settings_.plant) options.environment.push_back(absl::StrCat(kDeafToLogsEnv, "=1"));
  }
  return options;
}

absl::Status Chaos::Start() {
  const absl::Time begin = absl::Now();
  RETURN_IF_ERROR(daemon_->Spawn());
  RETURN_IF_ERROR(daemon_->AwaitServing(kStartPatience));
  figures_.starts.push_back(absl::ToDoubleSeconds(absl::Now() - begin));
  return absl::OkStatus();
}

absl::Status Chaos::Cut() {
  ASSIGN_OR_RETURN(const CutReport cut,
                   DropUnsynced(folder_ + "/synced", daemon_->data_dir(), random_()));
  figures_.cut.files_cut += cut.files_cut;
  figures_.cut.files_gone += cut.files_gone;
  figures_.cut.bytes_dropped += cut.bytes_dropped;
  std::error_code error;
  fs::remove(folder_ + "/synced", error);
  return absl::OkStatus();
}

absl::Status Chaos::Terminate() {
  const absl::Time begin = absl::Now();
  daemon_->Signal(SIGTERM);
  const absl::Duration patience = absl::Seconds(settings_.stop_seconds) + kExitMargin;
  const std::optional<int> code = daemon_->AwaitEnd(patience);
  if (!code.has_value()) {
    return absl::DeadlineExceededError(
        absl::StrCat("npucd does not end within ", absl::FormatDuration(patience), " of SIGTERM"));
  }
  if (*code != 0) return absl::InternalError(absl::StrCat("npucd ended with ", *code));
  figures_.ends.push_back(absl::ToDoubleSeconds(absl::Now() - begin));
  return absl::OkStatus();
}

absl::Status Chaos::EndOnce() {
  Sleep(settings_.mean_seconds);
  if (settings_.how == "term") {
    RETURN_IF_ERROR(Terminate());
    return Start();
  }
  daemon_->Kill();
  if (settings_.how == "cut") RETURN_IF_ERROR(Cut());
  // Some die while they start, in the middle of recovery.
  if (random_() % 5 == 0) {
    RETURN_IF_ERROR(daemon_->Spawn());
    Sleep(0.05);
    daemon_->Kill();
    ++figures_.killed_starting;
    if (settings_.how == "cut") RETURN_IF_ERROR(Cut());
  }
  return Start();
}

std::optional<std::string> Chaos::LogLineWith(const std::string& text) const {
  std::ifstream in(daemon_->log());
  for (std::string line; std::getline(in, line);) {
    if (line.find(text) != std::string::npos) return line;
  }
  return std::nullopt;
}

absl::Status Chaos::CheckLog() const {
  for (const std::string& text : settings_.forbidden) {
    const std::optional<std::string> line = LogLineWith(text);
    if (line.has_value()) {
      return absl::InternalError(absl::StrCat("npucd's log has: ", *line));
    }
  }
  return absl::OkStatus();
}

absl::Status Chaos::Run() {
  ASSIGN_OR_RETURN(std::vector<LoadVariant> variants, ReadVariants(settings_.configs));
  {
    daemon_ = std::make_unique<DaemonProcess>(ProcessOptions("quiet"));
    RETURN_IF_ERROR(Start());
    RETURN_IF_ERROR(CompileQuietly(daemon_->address(), variants));
    daemon_->Kill();
  }
  figures_ = {};
  daemon_ = std::make_unique<DaemonProcess>(ProcessOptions("loud"));
  RETURN_IF_ERROR(Start());
  ASSIGN_OR_RETURN(const auto client, client::Client::Create({.server = daemon_->address()}));
  for (const LoadVariant& variant : variants) {
    RETURN_IF_ERROR(client->Upload(variant.input.files, nullptr));
  }
  ServiceLoad load({.addresses = {daemon_->address()},
                    .clients = settings_.clients,
                    .only_retryable = settings_.how == "term",
                    .seed = settings_.seed},
                   &variants);
  load.Start();
  const absl::Time begin = absl::Now();
  for (int i = 0; i < settings_.times; ++i) {
    const absl::Status ended = EndOnce();
    const bool says_loss =
        std::any_of(std::begin(kLossWords), std::end(kLossWords),
                    [&](const char* words) { return LogLineWith(words).has_value(); });
    if (!ended.ok() && settings_.plant && says_loss) {
      std::printf("the planted mistake was found: npucd does not start any more\n");
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(ended);
    if (load.report().broken_count > 0) break;
    if ((i + 1) % 20 == 0) {
      std::printf("  %d of %d, %lld jobs accepted\n", i + 1, settings_.times,
                  static_cast<long long>(load.report().accepted));
      std::fflush(stdout);
    }
  }
  load.Finish();
  load.Audit();
  RETURN_IF_ERROR(CheckLog());
  std::printf("%.0f s, seed %llu\n", absl::ToDoubleSeconds(absl::Now() - begin),
              static_cast<unsigned long long>(settings_.seed));
  const bool kept = Print(load.report());
  if (settings_.plant) {
    if (kept) return absl::InternalError("the planted mistake was not found");
    std::printf("the planted mistake was found\n");
    return absl::OkStatus();
  }
  if (!kept) return absl::InternalError("a promise was broken");
  return absl::OkStatus();
}

void PrintTimes(const char* what, std::vector<double> seconds) {
  if (seconds.empty()) return;
  std::sort(seconds.begin(), seconds.end());
  std::printf("%s: median %.3f s, longest %.3f s, %zu\n", what, seconds[seconds.size() / 2],
              seconds.back(), seconds.size());
}

bool Chaos::Print(const ServiceLoad::Report& report) const {
  const auto number = [](int64_t value) { return static_cast<long long>(value); };
  std::printf(
      "FIGURE: %s %d times (%d more while it started): %lld jobs accepted, %lld succeeded, "
      "%lld cancelled, %lld given up after 10 deaths, each once; %lld run again, %lld cache hits, "
      "%lld sends repeated\n",
      settings_.how.c_str(), settings_.times, figures_.killed_starting, number(report.accepted),
      number(report.succeeded), number(report.cancelled), number(report.given_up),
      number(report.run_again), number(report.cache_hits), number(report.repeated_sends));
  std::printf(
      "FIGURE: %lld events without gap, repeat or change over %lld reconnects; artifacts as "
      "in the quiet run, %lld of them fetched\n",
      number(report.events), number(report.reconnects), number(report.fetched));
  PrintTimes("FIGURE: start until it serves", figures_.starts);
  PrintTimes("FIGURE: SIGTERM until the exit", figures_.ends);
  if (settings_.how == "cut") {
    std::printf(
        "FIGURE: unsynced bytes dropped: %llu in %llu files; %llu files without a durable "
        "name removed\n",
        static_cast<unsigned long long>(figures_.cut.bytes_dropped),
        static_cast<unsigned long long>(figures_.cut.files_cut),
        static_cast<unsigned long long>(figures_.cut.files_gone));
  }
  for (const auto& [error, count] : report.errors) {
    std::printf("  clients saw %lld x %s\n", number(count), error.c_str());
  }
  for (const std::string& what : report.broken) std::printf("BROKEN: %s\n", what.c_str());
  if (report.broken_count > 0) {
    std::printf("%lld promises were broken\n", number(report.broken_count));
  }
  return report.broken_count == 0;
}

int Main(int argc, char** argv) {
  Settings settings;
  const fs::path bin = fs::read_symlink("/proc/self/exe").parent_path();
  settings.npucd = (bin / "npucd").string();
  settings.preload = (bin / "power_cut_preload.so").string();
  settings.seed = std::random_device{}();
  CLI::App app("npucd under load, ended again and again", "service_chaos");
  app.add_option("configs", settings.configs, "what to compile")->required();
  app.add_option("--how", settings.how,
                 "kill: SIGKILL; cut: SIGKILL, and what was not synced is lost; term: SIGTERM")
      ->check(CLI::IsMember({"kill", "cut", "term"}));
  app.add_option("--times", settings.times, "how often")->check(CLI::Range(1, 100000));
  app.add_option("--npucd", settings.npucd, "the daemon (default: beside this program)");
  app.add_option("--workers", settings.workers, "of the daemon")->check(CLI::Range(1, 64));
  app.add_option("--clients", settings.clients, "at once")->check(CLI::Range(1, 256));
  app.add_option("--seed", settings.seed, "of all that is drawn (default: random)");
  app.add_option("--mean", settings.mean_seconds, "seconds between two ends")
      ->check(CLI::Range(0.01, 60.0));
  app.add_option("--stop-seconds", settings.stop_seconds, "how long the daemon may take to stop");
  app.add_option("--flag", settings.flags, "one more of the daemon's, as --name=value");
  app.add_option("--fail-on", settings.forbidden, "a text that the daemon's log must not have");
  app.add_flag("--plant", settings.plant,
               "with --how cut: syncs of the databases' logs do not count, which must be found");
  app.add_option("--keep", settings.keep, "keep data and logs in this folder");
  CLI11_PARSE(app, argc, argv);
  if (settings.plant && settings.how != "cut") {
    std::fprintf(stderr, "service_chaos: --plant goes with --how cut\n");
    return 2;
  }
  return RunInFolder("service_chaos", settings.keep,
                     [&](const std::string& folder) { return Chaos(settings, folder).Run(); });
}

}  // namespace
}  // namespace npuc::fault

int main(int argc, char** argv) { return npuc::fault::Main(argc, argv); }
