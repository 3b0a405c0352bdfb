// Two nodes that submit, claim, lease and end jobs at a steady rate through the store and the board
// of server/pg. bench_bloat.py starts it and says what must hold. One line of JSON for each second:
// how many jobs have ended and wait, and the milliseconds of each claim and each submit.
#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <deque>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "compiler_core/base/mutex.h"
#include "compiler_core/base/status.h"
#include "server/base/steady_clock.h"
#include "server/jobs/job_service.h"
#include "server/pg/janitor.h"
#include "server/pg/node.h"
#include "server/pg/pg_board.h"
#include "server/pg/pg_job_store.h"

namespace npuc::bench {
namespace {

constexpr int kTenants = 5;
constexpr absl::Duration kPace = absl::Milliseconds(2);  // of the submits
constexpr absl::Duration kTick = absl::Seconds(1);       // as the daemon's
constexpr absl::Duration kDue = absl::Milliseconds(200);

struct Settings {
  std::string url;
  std::string secret_file;
  double rate = 500;
  double seconds = 10;
  int slots = 16;
  int64_t dead_rows = 0;
  bool no_janitor = false;
};

double MillisecondsSince(absl::Time begin) {
  return absl::ToDoubleMilliseconds(absl::Now() - begin);
}

// The figures of the second that is under way.
class Second {
 public:
  void Claimed(double ms) {
    const MutexLock lock(mutex_);
    claims_.push_back(ms);
  }
  void Answered(double ms) {
    const MutexLock lock(mutex_);
    submits_.push_back(ms);
    ++answered_;
    changed_.NotifyAll();
  }
  // Waits for the answers of so many submits; false: some did not come in this time.
  bool AwaitAnswers(int64_t count, absl::Duration limit) {
    const SteadyTime until = SteadyTimeAfter(absl::ToChronoNanoseconds(limit));
    const MutexLock lock(mutex_);
    while (answered_ < count && changed_.WaitUntil(mutex_, until)) {
    }
    return answered_ >= count;
  }
  void Ended() { ++ended_; }
  int64_t ended() const { return ended_; }

  void Print(double at, int64_t submitted) {
    std::vector<double> claims, submits;
    {
      const MutexLock lock(mutex_);
      claims.swap(claims_);
      submits.swap(submits_);
    }
    const int64_t ended = ended_;
    std::printf(
        "{\"at\": %.1f, \"ended\": %lld, \"waiting\": %lld, \"claim_ms\": [%s], "
        "\"submit_ms\": [%s]}\n",
        at, static_cast<long long>(ended), static_cast<long long>(submitted - ended),
        absl::StrJoin(claims, ", ").c_str(), absl::StrJoin(submits, ", ").c_str());
    std::fflush(stdout);
  }

 private:
  std::atomic<int64_t> ended_ = 0;
  Mutex mutex_;
  CondVar changed_;
  int64_t answered_ NPUC_GUARDED_BY(mutex_) = 0;
  std::vector<double> claims_ NPUC_GUARDED_BY(mutex_);
  std::vector<double> submits_ NPUC_GUARDED_BY(mutex_);
};

// A board whose claims are timed, those that find nothing too.
class TimedBoard : public pg::PgBoard {
 public:
  TimedBoard(pg::Sessions* sessions, pg::Node* node, pg::PgBoardOptions options, Second* second)
      : PgBoard(sessions, node, std::move(options)), second_(second) {}
  std::optional<jobs::BoardClaim> Claim(absl::string_view owner, absl::Time now) override {
    const absl::Time begin = absl::Now();
    auto claim = PgBoard::Claim(owner, now);
    second_->Claimed(MillisecondsSince(begin));
    return claim;
  }

 private:
  Second* const second_;
};

class BenchNode {
 public:
  static absl::StatusOr<std::unique_ptr<BenchNode>> Start(const pg::ConnectionOptions& options,
                                                          const std::string& name,
                                                          const Settings& settings,
                                                          Second* second) {
    auto sessions = std::make_unique<pg::Sessions>(options);
    ASSIGN_OR_RETURN(auto node, pg::Node::Join(sessions.get(), {.name = name,
                                                                .slots = settings.slots,
                                                                .steady_now = base::SteadyNow}));
    auto made =
        std::make_unique<BenchNode>(std::move(sessions), std::move(node), name, settings, second);
    RETURN_IF_ERROR(made->jobs_.Recover(nullptr));
    made->Begin(settings);
    return made;
  }
  BenchNode(std::unique_ptr<pg::Sessions> sessions, std::unique_ptr<pg::Node> node,
            const std::string& name, const Settings& settings, Second* second)
      : sessions_(std::move(sessions)),
        node_(std::move(node)),
        store_(sessions_.get(), node_.get()),
        board_(sessions_.get(), node_.get(), {.max_queued = int64_t{1} << 40}, second),
        janitor_(sessions_.get(), {.dead_rows = settings.dead_rows, .steady_now = base::SteadyNow}),
        jobs_({.owner = name,
               .now = [this] { return node_->ClusterNow(); },
               .random = [random = std::make_shared<std::mt19937_64>(
                              std::random_device{}())] { return (*random)(); },
               .retry = {}},
              &store_, &board_),
        second_(second) {}
  ~BenchNode() {
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
    }
    changed_.NotifyAll();
    jobs_.StopLeasing();
    for (std::thread& thread : threads_) thread.join();
  }

  jobs::JobService& jobs() { return jobs_; }

 private:
  void Begin(const Settings& settings) {
    node_->StartBeating();
    board_.StartPolling(kTick);
    free_slots_ = settings.slots;
    for (int i = 0; i < settings.slots; ++i) threads_.emplace_back([this] { RunLoop(); });
    threads_.emplace_back([this] { ClaimLoop(); });
    if (!settings.no_janitor) {
      threads_.emplace_back([this] { Repeat(kTick, [this] { janitor_.Step().IgnoreError(); }); });
    }
    threads_.emplace_back([this] { Repeat(kTick, [this] { jobs_.Tick().IgnoreError(); }); });
    threads_.emplace_back([this] { Repeat(kDue, [this] { jobs_.ExpireDue().IgnoreError(); }); });
  }
  template <typename Call>
  void Repeat(absl::Duration period, Call call) {
    while (true) {
      call();
      const SteadyTime next = SteadyTimeAfter(absl::ToChronoNanoseconds(period));
      const MutexLock lock(mutex_);
      while (!stopping_ && changed_.WaitUntil(mutex_, next)) {
      }
      if (stopping_) return;
    }
  }
  // One thread claims for all slots, so that the time of a claim is that of PostgreSQL, not of a
  // wait for other claims of this node.
  void ClaimLoop() {
    while (!stopping_) {
      {
        const MutexLock lock(mutex_);
        while (free_slots_ == 0 && !stopping_) changed_.Wait(mutex_);
        --free_slots_;
      }
      auto claim = jobs_.WaitAndClaim();
      const MutexLock lock(mutex_);
      if (claim.ok() && claim->has_value()) {
        claims_.push_back(**std::move(claim));
      } else {
        ++free_slots_;
      }
      changed_.NotifyAll();
    }
  }
  void RunLoop() {
    while (true) {
      std::optional<jobs::JobService::Claim> claim;
      {
        const MutexLock lock(mutex_);
        while (claims_.empty() && !stopping_) changed_.Wait(mutex_);
        if (claims_.empty()) return;
        claim.emplace(std::move(claims_.front()));
        claims_.pop_front();
      }
      const auto leased = claim->Lease();
      if (leased.ok() && leased->has_value() &&
          jobs_.Finish((*leased)->lease, {}, {.succeeded = true}).ok()) {
        second_->Ended();
      }
      const MutexLock lock(mutex_);
      ++free_slots_;
      changed_.NotifyAll();
    }
  }

  const std::unique_ptr<pg::Sessions> sessions_;
  const std::unique_ptr<pg::Node> node_;
  pg::PgJobStore store_;
  TimedBoard board_;
  pg::Janitor janitor_;
  jobs::JobService jobs_;
  Second* const second_;
  std::atomic<bool> stopping_ = false;
  Mutex mutex_;
  CondVar changed_;
  int free_slots_ NPUC_GUARDED_BY(mutex_) = 0;
  std::deque<jobs::JobService::Claim> claims_ NPUC_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

// `run` tells the requests of one run from those of another on the same database.
jobs::NewJob NewJob(absl::string_view run, int64_t number) {
  jobs::NewJob job{.tenant = absl::StrCat("t", number % kTenants),
                   .request_id = absl::StrCat(run, "-", number),
                   .request_sha256 = std::string(64, 'a'),
                   .config_text = std::string(1200, 'c'),
                   .output_file = "model.h",
                   .cache_key = absl::StrCat(std::string(50, 'k'), run, number)};
  job.spec.inputs = {{.role = "MODEL_FILE", .name = "m", .sha256 = std::string(64, 'b')}};
  job.spec.timeout = absl::Hours(1);
  return job;
}

absl::Status Run(const Settings& settings) {
  pg::ConnectionOptions options{.url = settings.url};
  std::ifstream secret(settings.secret_file);
  std::getline(secret, options.password);
  Second second;
  std::vector<std::unique_ptr<BenchNode>> nodes;
  for (const char* name : {"a", "b"}) {
    ASSIGN_OR_RETURN(auto node, BenchNode::Start(options, name, settings, &second));
    nodes.push_back(std::move(node));
  }
  const std::string run = absl::StrCat(absl::ToUnixMicros(absl::Now()));
  std::atomic<int64_t> submitted = 0, failed = 0;
  const absl::Time begin = absl::Now();
  absl::Time next_line = begin + absl::Seconds(1);
  int64_t sent = 0;
  for (absl::Time now = begin; now < begin + absl::Seconds(settings.seconds); now = absl::Now()) {
    const auto wanted = static_cast<int64_t>(absl::ToDoubleSeconds(now - begin) * settings.rate);
    for (; sent < wanted; ++sent) {
      nodes[static_cast<size_t>(sent) % nodes.size()]->jobs().Submit(
          NewJob(run, sent), [&, now](const auto& job) {
            ++(job.ok() ? submitted : failed);
            second.Answered(MillisecondsSince(now));
          });
    }
    if (now >= next_line) {
      second.Print(absl::ToDoubleSeconds(now - begin), submitted);
      next_line += absl::Seconds(1);
    }
    second.AwaitAnswers(sent + 1, kPace);
  }
  if (!second.AwaitAnswers(sent, absl::Minutes(1))) {
    return absl::InternalError("submits were not answered in a minute");
  }
  if (failed > 0) return absl::InternalError(absl::StrCat(failed.load(), " submits failed"));
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("jobs at a steady rate on a shared PostgreSQL", "bench_bloat");
  app.add_option("--url", settings.url, "of the database")->required();
  app.add_option("--secret-file", settings.secret_file, "with its password")->required();
  app.add_option("--rate", settings.rate, "jobs a second")->check(CLI::Range(1.0, 1e5));
  app.add_option("--seconds", settings.seconds, "in all");
  app.add_option("--slots", settings.slots, "of each node")->check(CLI::Range(1, 64));
  app.add_option("--dead-rows", settings.dead_rows, "of a table that a janitor tolerates");
  app.add_flag("--no-janitor", settings.no_janitor, "leaves the tables to autovacuum");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = Run(settings);
  if (!status.ok()) std::fprintf(stderr, "bench_bloat: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace npuc::bench

int main(int argc, char** argv) { return npuc::bench::Main(argc, argv); }
