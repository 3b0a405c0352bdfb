// The daemon at ten times what it can do; README.md says what must hold.
#include <google/protobuf/util/time_util.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/types/span.h"
#include "client/lib/client.h"
#include "compiler_core/base/status.h"
#include "npuc/v1/server_info.grpc.pb.h"
#include "tests/fault/daemon_process.h"
#include "tests/fault/service_load.h"

namespace npuc::fault {
namespace {

namespace fs = std::filesystem;

constexpr double kTimes = 10;
constexpr double kMinGoodput = 0.9;
constexpr absl::Duration kMaxHealth = absl::Milliseconds(50);
constexpr int kMaxQueued = 50;
constexpr int kClientsNice = 19;
// Windows of full work and of overload take turns, so that a busy moment of the machine meets both;
// before each, the load has this long to settle. Windows are added, in pairs, until twice the
// standard error of the ratio is less than its distance to the bound.
constexpr absl::Duration kSettle = absl::Milliseconds(500);
constexpr size_t kMinPairs = 6;
constexpr size_t kMaxPairs = 30;
// The newest jobs that are read after a pair; more than a pair can have ended.
constexpr int kNewestJobs = 5000;

struct Settings {
  std::string self;  // this program
  std::string npucd;
  std::vector<std::string> configs;
  double seconds = 2;
  int workers = 2;
  int memory_mib = 512;
};

// What the machine had done at a moment, in seconds of one processor.
struct Meter {
  absl::Time time;
  double clients = 0;  // by this process, whose threads are the clients
  double stolen = 0;   // by the host, of all processors of this machine
};

absl::StatusOr<Meter> ReadMeter() {
  Meter meter = {.time = absl::Now()};
  rusage used;
  if (getrusage(RUSAGE_SELF, &used) != 0) return absl::ErrnoToStatus(errno, "getrusage");
  meter.clients = absl::ToDoubleSeconds(absl::DurationFromTimeval(used.ru_utime) +
                                        absl::DurationFromTimeval(used.ru_stime));
  // proc(5): "cpu" user nice system idle iowait irq softirq steal, in clock ticks.
  std::ifstream stat("/proc/stat");
  std::string word;
  stat >> word;
  for (int i = 0; i < 8; ++i) stat >> meter.stolen;
  if (!stat) return absl::InternalError("cannot read /proc/stat");
  meter.stolen /= static_cast<double>(sysconf(_SC_CLK_TCK));
  return meter;
}

// A time under one load.
struct Window {
  Meter begin;
  Meter end;
  int64_t succeeded = 0;  // jobs that ended in it

  double seconds() const { return absl::ToDoubleSeconds(end.time - begin.time); }
};

double Processors() { return static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN)); }

// Windows of one load, summed.
struct Total {
  double seconds = 0;
  double clients = 0;
  double stolen = 0;
  int64_t succeeded = 0;

  void Add(const Window& window) {
    seconds += window.seconds();
    clients += window.end.clients - window.begin.clients;
    stolen += window.end.stolen - window.begin.stolen;
    succeeded += window.succeeded;
  }
  double rate() const { return static_cast<double>(succeeded) / seconds; }
  // Jobs for each second of the machine that the clients left to the daemon.
  double rate_alone() const {
    return static_cast<double>(succeeded) / (seconds - clients / Processors());
  }
};

class Overload {
 public:
  Overload(const Settings& settings, const std::string& folder)
      : settings_(settings),
        daemon_({.program = settings.npucd,
                 .folder = folder,
                 .workers = settings.workers,
                 .flags = {absl::StrCat("--max-queued=", kMaxQueued),
                           absl::StrCat("--memory-mib=", settings.memory_mib)}}) {}
  absl::Status Run();

 private:
  // Offers `rate` jobs a second; what was done once the load had settled.
  absl::StatusOr<Window> Offer(double rate, int threads);
  // As much as keeps the queue from running dry, but nearly no refusal.
  absl::StatusOr<Window> Fill() { return Offer(capacity_ * 1.5, 2); }
  absl::StatusOr<Window> Flood();
  absl::Status CountSucceeded(absl::Span<Window* const> windows);
  void Submit(v1::CompileService::Stub& stub);
  void WatchHealth(FILE* probe);
  absl::Status MeasurePair();
  absl::Status Measure();
  // The clients stand for other machines, so what their own work takes from this one is left out.
  double Ratio() const { return flooded_.rate_alone() / filled_.rate_alone(); }
  // Of Ratio(), from the pairs'.
  double StandardError() const;
  absl::Status Judge();

  const Settings& settings_;
  DaemonProcess daemon_;
  std::vector<LoadVariant> variants_;
  std::unique_ptr<client::Client> client_;
  std::mutex mutex_;
  std::map<std::string, int64_t> answers_;  // guarded by mutex_
  int64_t untyped_ = 0;                     // guarded by mutex_
  std::vector<absl::Duration> health_;      // guarded by mutex_
  int64_t resident_max_ = 0;                // guarded by mutex_
  std::atomic<bool> overloaded_ = false;
  double capacity_ = 0;  // jobs a second
  Total filled_;
  Total flooded_;
  std::vector<double> ratios_;                  // of each pair
  double offered_ = 0;                          // jobs of all floods
  std::map<std::string, int64_t> all_answers_;  // under overload
};

void Overload::Submit(v1::CompileService::Stub& stub) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(30)));
  v1::CreateCompileJobRequest request;
  request.set_request_id(client::NewRequestId());
  *request.mutable_spec() = variants_.front().input.spec;
  request.mutable_spec()->set_no_cache(true);
  v1::CreateCompileJobResponse response;
  const grpc::Status status = stub.CreateCompileJob(&context, request, &response);
  const std::lock_guard<std::mutex> lock(mutex_);
  ++answers_[status.ok() ? "OK" : ReasonOf(status)];
  if (!status.ok() && (!IsRetryable(status) || ReasonOf(status).empty())) ++untyped_;
}

// Calls GetServerInfo again and again until a call fails, and prints how long each took, in
// nanoseconds; -1: it failed. It answers without the pool, as health does. A process of its own,
// since gRPC's threads in this one have the lowest priority: they would be what is measured.
int ProbeHealth(const std::string& address) {
  const auto stub = v1::ServerInfoService::NewStub(OpenChannel(address));
  while (true) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(10)));
    v1::GetServerInfoResponse response;
    const absl::Time begin = absl::Now();
    const bool ok = stub->GetServerInfo(&context, {}, &response).ok();
    const int64_t nanos = ok ? absl::ToInt64Nanoseconds(absl::Now() - begin) : -1;
    std::printf("%lld\n", static_cast<long long>(nanos));
    std::fflush(stdout);
    if (!ok) return 0;
    Pause(absl::Milliseconds(20));
  }
}

// Takes in the lines of the probe, and the daemon's memory, while there is overload; until the
// probe ends.
void Overload::WatchHealth(FILE* probe) {
  long long nanos = 0;
  while (std::fscanf(probe, "%lld", &nanos) == 1) {
    if (!overloaded_) continue;
    const std::lock_guard<std::mutex> lock(mutex_);
    health_.push_back(nanos < 0 ? absl::InfiniteDuration() : absl::Nanoseconds(nanos));
    resident_max_ = std::max(resident_max_, ResidentBytes(daemon_.pid()));
  }
}

absl::Status Overload::CountSucceeded(absl::Span<Window* const> windows) {
  v1::ListCompileJobsRequest request;
  request.add_states(v1::JOB_STATE_SUCCEEDED);
  ASSIGN_OR_RETURN(const auto jobs, client_->ListJobs(request, kNewestJobs));
  for (const v1::CompileJob& job : jobs) {
    const absl::Time end = absl::FromUnixNanos(
        google::protobuf::util::TimeUtil::TimestampToNanoseconds(job.end_time()));
    for (Window* const window : windows) {
      if (end >= window->begin.time && end < window->end.time) ++window->succeeded;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Window> Overload::Offer(double rate, int threads) {
  const absl::Time begin = absl::Now();
  const absl::Time end = begin + kSettle + absl::Seconds(settings_.seconds);
  std::vector<std::thread> clients;
  for (int i = 0; i < threads; ++i) {
    clients.emplace_back([&, i] {
      const auto stub = v1::CompileService::NewStub(OpenChannel(daemon_.address()));
      // Open loop: each send has its time, whatever became of those before.
      for (int64_t n = i;; n += threads) {
        const absl::Time due = begin + absl::Seconds(static_cast<double>(n) / rate);
        if (due >= end) return;
        if (due > absl::Now()) Pause(due - absl::Now());
        if (absl::Now() >= end) return;
        Submit(*stub);
      }
    });
  }
  Pause(kSettle);
  const absl::StatusOr<Meter> first = ReadMeter();
  Pause(end - absl::Now());
  const absl::StatusOr<Meter> last = ReadMeter();
  for (std::thread& client : clients) client.join();
  RETURN_IF_ERROR(first.status());
  RETURN_IF_ERROR(last.status());
  return Window{.begin = *first, .end = *last};
}

absl::StatusOr<Window> Overload::Flood() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    answers_.clear();
  }
  const double rate = kTimes * capacity_;
  overloaded_ = true;
  absl::StatusOr<Window> window = Offer(rate, 8);
  overloaded_ = false;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [answer, count] : answers_) all_answers_[answer] += count;
  offered_ += rate * (settings_.seconds + absl::ToDoubleSeconds(kSettle));
  return window;
}

absl::Status Overload::Run() {
  ASSIGN_OR_RETURN(variants_, ReadVariants({settings_.configs.back()}));
  RETURN_IF_ERROR(daemon_.Spawn());
  RETURN_IF_ERROR(daemon_.AwaitServing(absl::Minutes(1)));
  // Before this thread gives way, which a child inherits.
  FILE* const probe =
      popen(absl::StrCat("'", settings_.self, "' --probe ", daemon_.address()).c_str(), "r");
  if (probe == nullptr) return absl::ErrnoToStatus(errno, "popen");
  std::thread health([this, probe] { WatchHealth(probe); });
  const absl::Status status = Measure();
  daemon_.Kill();  // which ends the probe
  health.join();
  pclose(probe);
  RETURN_IF_ERROR(status);
  return Judge();
}

absl::Status Overload::MeasurePair() {
  // What comes first changes, so that a machine that grows slower or faster favours neither.
  const bool fill_first = ratios_.size() % 2 == 0;
  Window fill;
  Window flood;
  if (fill_first) {
    ASSIGN_OR_RETURN(fill, Fill());
  }
  ASSIGN_OR_RETURN(flood, Flood());
  if (!fill_first) {
    ASSIGN_OR_RETURN(fill, Fill());
  }
  RETURN_IF_ERROR(CountSucceeded({&fill, &flood}));
  if (fill.succeeded == 0) return absl::InternalError("no job succeeded");
  filled_.Add(fill);
  flooded_.Add(flood);
  capacity_ = filled_.rate();
  Total peak;
  peak.Add(fill);
  Total goodput;
  goodput.Add(flood);
  ratios_.push_back(goodput.rate_alone() / peak.rate_alone());
  std::printf("  peak %.1f jobs/s; under overload %.1f\n", peak.rate(), goodput.rate());
  return absl::OkStatus();
}

absl::Status Overload::Measure() {
  // The clients stand for other machines: on this one they give way to the daemon. Their threads
  // inherit it from this one.
  if (setpriority(PRIO_PROCESS, 0, kClientsNice) != 0) return absl::ErrnoToStatus(errno, "nice");
  ASSIGN_OR_RETURN(client_, client::Client::Create({.server = daemon_.address()}));
  RETURN_IF_ERROR(client_->Upload(variants_.front().input.files, nullptr));
  capacity_ = 100;
  for (int i = 0; i < 2; ++i) {
    ASSIGN_OR_RETURN(Window probe, Fill());
    RETURN_IF_ERROR(CountSucceeded({&probe}));
    if (probe.succeeded == 0) return absl::InternalError("no job succeeded");
    capacity_ = static_cast<double>(probe.succeeded) / probe.seconds();
  }
  while (ratios_.size() < kMinPairs ||
         (ratios_.size() < kMaxPairs && Ratio() - 2 * StandardError() < kMinGoodput)) {
    RETURN_IF_ERROR(MeasurePair());
  }
  return absl::OkStatus();
}

double Overload::StandardError() const {
  const double count = static_cast<double>(ratios_.size());
  const double mean = std::accumulate(ratios_.begin(), ratios_.end(), 0.0) / count;
  double squares = 0;
  for (const double ratio : ratios_) squares += (ratio - mean) * (ratio - mean);
  return std::sqrt(squares / (count - 1) / count);
}

absl::Status Overload::Judge() {
  if (health_.empty()) return absl::InternalError("no answer about health under overload");
  std::sort(health_.begin(), health_.end());
  const absl::Duration p99 = health_[health_.size() * 99 / 100];
  const double resident_mib = static_cast<double>(resident_max_) / (1 << 20);
  const auto percent = [](const Total& total, double part) {
    return 100 * part / (Processors() * total.seconds);
  };
  std::printf(
      "FIGURE: overload: goodput %.1f %% of peak in the time that the load program left (standard "
      "error %.1f %%, %zu pairs of %.0f s; %.1f of %.1f jobs/s in all of it, while it took %.1f "
      "and "
      "%.1f %% of the processors); resident at most %.0f MiB of %d; health p99 %.1f ms, longest "
      "%.1f ms of %zu\n",
      100 * Ratio(), 100 * StandardError(), ratios_.size(), settings_.seconds, flooded_.rate(),
      filled_.rate(), percent(flooded_, flooded_.clients), percent(filled_, filled_.clients),
      resident_mib, settings_.memory_mib, absl::ToDoubleMilliseconds(p99),
      absl::ToDoubleMilliseconds(health_.back()), health_.size());
  std::printf("  stolen by the host: %.1f %% at peak, %.1f %% under overload\n",
              percent(filled_, filled_.stolen), percent(flooded_, flooded_.stolen));
  int64_t answered = 0;
  for (const auto& [answer, count] : all_answers_) {
    answered += count;
    std::printf("  answered %lld x %s\n", static_cast<long long>(count), answer.c_str());
  }
  if (untyped_ > 0) return absl::InternalError("a refusal has no reason, or invites no retry");
  if (static_cast<double>(answered) < 0.9 * offered_) {
    return absl::InternalError(absl::StrCat("of ", offered_, " jobs that were due, only ", answered,
                                            " were offered and answered"));
  }
  if (resident_mib > settings_.memory_mib) return absl::InternalError("over its memory");
  if (Ratio() < kMinGoodput) return absl::InternalError("less is done under overload");
  if (p99 > kMaxHealth) return absl::InternalError("health answers too late");
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  if (argc == 3 && absl::string_view(argv[1]) == "--probe") return ProbeHealth(argv[2]);
  Settings settings;
  const fs::path self = fs::read_symlink("/proc/self/exe");
  settings.self = self.string();
  settings.npucd = (self.parent_path() / "npucd").string();
  CLI::App app("npucd at ten times what it can do", "service_overload");
  app.add_option("configs", settings.configs, "the last one is compiled")->required();
  app.add_option("--npucd", settings.npucd, "the daemon (default: beside this program)");
  app.add_option("--seconds", settings.seconds, "of one measurement")->check(CLI::Range(1, 600));
  app.add_option("--workers", settings.workers, "of the daemon")->check(CLI::Range(1, 64));
  app.add_option("--memory-mib", settings.memory_mib, "the daemon's limit");
  CLI11_PARSE(app, argc, argv);
  return RunInFolder("service_overload", "",
                     [&](const std::string& folder) { return Overload(settings, folder).Run(); });
}

}  // namespace
}  // namespace npuc::fault

int main(int argc, char** argv) { return npuc::fault::Main(argc, argv); }
