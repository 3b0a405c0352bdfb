// Claims of a large cluster. The board is a model of server/pg/board_functions.sql (read_claimable,
// claim_jobs, charge_tenants, take_claims); nodes are what PgBoard is without its database.
#include "tests/fault/sim_claims.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <random>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/fault/jain_index.h"

namespace npuc {
namespace {

using scheduler::ClaimPlanner;
using scheduler::ReadyTenant;
using Kind = ClaimPlanner::Plan::Kind;

// As PgBoard, PgBoardOptions, NodeOptions and Dispatcher have them.
constexpr int kMaxClaimTries = 16;
constexpr scheduler::QuestionPeriod kViewPeriod = {.least = absl::Milliseconds(100),
                                                   .per_node = absl::Milliseconds(10)};
constexpr scheduler::QuestionPeriod kCarePeriod = {.least = absl::Seconds(1),
                                                   .per_node = absl::Milliseconds(5)};
constexpr scheduler::QuestionPeriod kCommonPeriod = {.least = absl::Milliseconds(200),
                                                     .per_node = absl::Milliseconds(250)};
constexpr double kPollSeconds = 1;
constexpr double kTtlSeconds = 10;
constexpr double kBeatSeconds = 2;
constexpr size_t kClaimsPerTake = 200;
constexpr double kMeanShare = 0.1;

constexpr double kWindowSeconds = 100;  // of the figures
constexpr size_t kLeastTenants = 10;    // of a weight, for a figure
// Windows count while so many jobs wait for each slot.
constexpr int64_t kBacklogOfSlot = 10;

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

struct SimRun {
  int tenant = 0;
  double seconds = 0;
  double charged_s = 0;
};

class Board {
 public:
  struct Tenant {
    double weight = 1;
    double run_s = 1;  // true mean of its runs
    double clock_s = 0;
    double mean_s = 2;
    int64_t ready = 0;
    int64_t returned = 0;  // of them, jobs of lost runs, which are the first
    double served_s = 0;   // in this window
    double came = 0;       // guests: when
  };

  static std::string NameOf(int tenant) { return absl::StrCat("t", tenant); }
  static int IdOf(const std::string& name) {
    int id = 0;
    (void)absl::SimpleAtoi(name.substr(1), &id);
    return id;
  }

  int AddTenant(double weight, double run_s, int64_t jobs, double now) {
    tenants_.push_back({.weight = weight, .run_s = run_s, .clock_s = newest_floor_s_, .came = now});
    const int id = static_cast<int>(tenants_.size()) - 1;
    Put(id, jobs);
    return id;
  }
  void Put(int tenant, int64_t jobs) {
    at(tenant).ready += jobs;
    waiting_ += jobs;
    if (at(tenant).ready > 0) ready_.insert(tenant);
  }
  void Return(int tenant) {
    ++at(tenant).returned;
    Put(tenant, 1);
  }

  ClaimPlanner::View Read() const {
    ClaimPlanner::View view;
    view.newest_floor_s = newest_floor_s_;
    view.tenants.reserve(ready_.size());
    for (const int id : ready_) view.tenants.push_back(StateOf(id));
    return view;
  }

  struct Claimed {
    std::vector<double> charged_s;  // of each job
    int64_t returned = 0;           // of them, jobs of lost runs
    ClaimPlanner::Answer answer;
  };
  Claimed Claim(const ClaimPlanner::Plan& plan) {
    const int id = IdOf(plan.tenant);
    Tenant& tenant = at(id);
    Claimed claimed;
    double clock = std::max(tenant.clock_s, plan.floor_s);
    int64_t most = plan.jobs;
    if (clock > plan.until_s) {
      most = 0;
    } else if (std::isfinite(plan.until_s)) {
      const double steps = (plan.until_s - clock) * tenant.weight / tenant.mean_s;
      most = std::min(most, 1 + static_cast<int64_t>(std::min(steps, 1000.0)));
    }
    const int64_t taken = std::min(most, tenant.ready);
    if (taken > 0) {
      clock += static_cast<double>(taken) * tenant.mean_s / tenant.weight;
      tenant.clock_s = clock;
      newest_floor_s_ = std::max(newest_floor_s_, plan.floor_s);
      claimed.returned = std::min(taken, tenant.returned);
      tenant.returned -= claimed.returned;
      claimed.charged_s.assign(static_cast<size_t>(taken), tenant.mean_s);
      tenant.ready -= taken;
      waiting_ -= taken;
      if (tenant.ready == 0) ready_.erase(id);
    }
    claimed.answer = {.tenant = StateOf(id), .has_more = taken == most};
    claimed.answer.tenant.clock_s = clock;
    return claimed;
  }

  struct Use {
    double excess_s = 0;
    double used_s = 0;
    int64_t runs = 0;
  };
  void Charge(int id, const Use& use) {
    Tenant& tenant = at(id);
    tenant.clock_s += use.excess_s / tenant.weight;
    const double share =
        1 - std::pow(1 - kMeanShare, static_cast<double>(std::min<int64_t>(use.runs, 100)));
    tenant.mean_s += share * (use.used_s / static_cast<double>(use.runs) - tenant.mean_s);
  }

  Tenant& at(int tenant) { return tenants_[static_cast<size_t>(tenant)]; }
  int64_t waiting() const { return waiting_; }

 private:
  ReadyTenant StateOf(int id) const {
    const Tenant& tenant = tenants_[static_cast<size_t>(id)];
    return {.tenant = NameOf(id),
            .clock_s = tenant.clock_s,
            .mean_s = tenant.mean_s,
            .weight = tenant.weight};
  }

  std::vector<Tenant> tenants_;
  std::set<int> ready_;
  double newest_floor_s_ = 0;
  int64_t waiting_ = 0;
};

struct SimNode {
  ClaimPlanner planner;
  int free = 0;
  bool is_dead = false;
  double wake_at = std::numeric_limits<double>::infinity();
  std::vector<SimRun> runs = {};  // by slot
  std::vector<int> free_slots = {};
  std::map<int, Board::Use> uses = {};
};

struct Event {
  enum class What : uint8_t {
    kEnd,
    kPoll,
    kWake,
    kCare,
    kCommon,
    kGuest,
    kLoss,
    kDeclared,
    kWindow
  };
  double at = 0;
  What what = What::kEnd;
  int node = 0;
  int slot = 0;
  bool operator>(const Event& other) const { return at > other.at; }
};

class ClaimWorld {
 public:
  explicit ClaimWorld(const ClaimScaleOptions& options)
      : options_(options),
        random_(options.seed),
        size_({.nodes = options.nodes, .slots = int64_t{options.nodes} * options.slots}),
        expected_s_(static_cast<double>(options.jobs) * options.mean_s /
                    static_cast<double>(size_.slots)) {
    double sum = 0;
    for (int i = 1; i <= options.tenants; ++i) sum += 1.0 / i;
    for (int i = 0; i < options.tenants; ++i) {
      const double share = 1.0 / (i + 1) / sum;
      const auto jobs =
          std::max<int64_t>(1, std::llround(share * static_cast<double>(options.jobs)));
      to_run_ += jobs;
      board_.AddTenant(1 << (i % 3), options.mean_s * Between(0.5, 1.5), jobs, 0);
    }
    const scheduler::QuestionPeriod period =
        options.plant == ClaimPlant::kOldViews
            ? scheduler::QuestionPeriod{.least = absl::Hours(1000), .per_node = {}}
            : kViewPeriod;
    for (int i = 0; i < options.nodes; ++i) {
      nodes_.push_back({.planner = ClaimPlanner(period, random_())});
      SimNode& node = nodes_.back();
      node.free = options.slots;
      node.runs.resize(static_cast<size_t>(options.slots));
      for (int slot = 0; slot < options.slots; ++slot) node.free_slots.push_back(slot);
      Plan(Between(0, kPollSeconds), Event::What::kPoll, i);
      Plan(Between(0, Seconds(kCarePeriod)), Event::What::kCare, i);
      Plan(Between(0, Seconds(kCommonPeriod)), Event::What::kCommon, i);
    }
    Plan(kWindowSeconds, Event::What::kWindow);
    Plan(Between(0, 2 / options.guests_per_s), Event::What::kGuest);
    Plan(expected_s_ / 3, Event::What::kLoss);
  }

  ClaimScaleFigures Run() {
    while (figures_.ended < to_run_ && now_ < 3 * expected_s_) {
      const Event event = events_.top();
      events_.pop();
      busy_slot_s_ += IsBusyTime() ? (event.at - now_) * static_cast<double>(running_) : 0;
      all_slot_s_ += IsBusyTime() ? (event.at - now_) * static_cast<double>(size_.slots) : 0;
      now_ = event.at;
      Handle(event);
    }
    figures_.not_ended = to_run_ - figures_.ended;
    figures_.seconds = now_;
    figures_.busy = busy_slot_s_ / all_slot_s_;
    figures_.mean_guest_s = guest_s_ / static_cast<double>(std::max<int64_t>(1, started_guests_));
    for (const auto& [kind, count] : all_statements_) {
      figures_.statements[kind] = static_cast<double>(count) / measured_s_;
    }
    return figures_;
  }

 private:
  double Between(double from, double to) {
    return std::uniform_real_distribution<double>(from, to)(random_);
  }
  void Plan(double after, Event::What what, int node = 0, int slot = 0) {
    events_.push({.at = now_ + after, .what = what, .node = node, .slot = slot});
  }
  double Seconds(const scheduler::QuestionPeriod& period) const {
    return absl::ToDoubleSeconds(period.Of(size_.nodes));
  }
  absl::Time Time() const { return absl::UnixEpoch() + absl::Seconds(now_); }
  bool IsBusyTime() const { return board_.waiting() > kBacklogOfSlot * size_.slots; }
  void Count(const char* kind, int64_t statements = 1) { statements_[kind] += statements; }
  bool IsGuest(int tenant) const { return tenant >= options_.tenants; }

  void Handle(const Event& event) {
    SimNode& node = nodes_[static_cast<size_t>(event.node)];
    switch (event.what) {
      case Event::What::kEnd:
        if (!node.is_dead) EndRun(event.node, event.slot);
        return;
      case Event::What::kPoll:
        if (!node.is_dead) Poll(event.node);
        return;
      case Event::What::kWake:
        if (node.is_dead || event.at < node.wake_at) return;
        node.wake_at = std::numeric_limits<double>::infinity();
        return Fill(event.node);
      case Event::What::kCare:
        if (!node.is_dead) Care(event.node);
        return;
      case Event::What::kCommon:
        if (!node.is_dead) CareForAll(event.node);
        return;
      case Event::What::kGuest:
        return SubmitOfGuest();
      case Event::What::kLoss:
        return LoseNodes();
      case Event::What::kDeclared:
        lost_.swap(undeclared_);
        size_.nodes -= dead_;
        size_.slots -= int64_t{dead_} * options_.slots;
        return;
      case Event::What::kWindow:
        return CloseWindow();
    }
  }

  // A slot that is free asks at once, and again where it was woken, as PgBoard::ClaimSome does for
  // all that wait.
  void Fill(int number) {
    SimNode& node = nodes_[static_cast<size_t>(number)];
    while (node.free > 0 && ClaimSome(number)) {
    }
  }

  bool ClaimSome(int number) {
    SimNode& node = nodes_[static_cast<size_t>(number)];
    scheduler::ClusterSize size = size_;
    if (options_.plant == ClaimPlant::kLeast) size.slots = 0;  // no clock moves meanwhile
    for (int tries = 0; tries < kMaxClaimTries; ++tries) {
      const ClaimPlanner::Plan plan =
          node.planner.Next(tries, node.free, /*pinned_only=*/false, size, Time());
      if (plan.kind == Kind::kNothing) {
        const double wait = absl::ToDoubleSeconds(plan.ask_again - Time());
        if (std::isfinite(wait) && now_ + wait < node.wake_at) {
          node.wake_at = now_ + wait;
          Plan(wait, Event::What::kWake, number);
        }
        return false;
      }
      if (plan.kind == Kind::kRead) {
        Count("reads of the tenants with work");
        node.planner.SetView(board_.Read(), Time());
        continue;
      }
      const Board::Claimed claimed = board_.Claim(plan);
      node.planner.Learn(claimed.answer, Time());
      Count(claimed.charged_s.empty() ? "claims that gave nothing" : "claims");
      if (claimed.charged_s.empty()) continue;
      Start(number, Board::IdOf(plan.tenant), claimed);
      return true;
    }
    return false;
  }

  void Start(int number, int tenant, const Board::Claimed& claimed) {
    SimNode& node = nodes_[static_cast<size_t>(number)];
    const double mean = board_.at(tenant).run_s;
    for (const double charged : claimed.charged_s) {
      const int slot = node.free_slots.back();
      node.free_slots.pop_back();
      --node.free;
      ++running_;
      const double seconds = Between(0.1 * mean, 1.9 * mean);
      node.runs[static_cast<size_t>(slot)] = {
          .tenant = tenant, .seconds = seconds, .charged_s = charged};
      Plan(seconds, Event::What::kEnd, number, slot);
      Count("leases stored and started", 2);
    }
    if (claimed.returned > 0) {
      to_return_ -= claimed.returned;
      if (to_return_ == 0) figures_.recovery_s = now_ - lost_at_;
    } else if (IsGuest(tenant)) {
      const double waited = now_ - board_.at(tenant).came;
      ++started_guests_;
      guest_s_ += waited;
      figures_.worst_guest_s = std::max(figures_.worst_guest_s, waited);
    }
  }

  void EndRun(int number, int slot) {
    SimNode& node = nodes_[static_cast<size_t>(number)];
    const SimRun& run = node.runs[static_cast<size_t>(slot)];
    Board::Use& use = node.uses[run.tenant];
    use.excess_s += run.seconds - run.charged_s;
    use.used_s += run.seconds;
    ++use.runs;
    board_.at(run.tenant).served_s += run.seconds;
    node.planner.HearOfRoom(Board::NameOf(run.tenant));
    node.planner.HearOfAnything();
    node.free_slots.push_back(slot);
    ++node.free;
    --running_;
    ++figures_.ended;
    Count("ends stored, closed and ended", 3);
    Fill(number);
  }

  // PgBoard::PollLoop, the heartbeat and the look at the other nodes.
  void Poll(int number) {
    SimNode& node = nodes_[static_cast<size_t>(number)];
    for (const auto& [tenant, use] : node.uses) board_.Charge(tenant, use);
    if (!node.uses.empty()) Count("charges");
    node.uses.clear();
    beats_ += 2 * kPollSeconds / kBeatSeconds;
    node.planner.HearOfAnything();
    Fill(number);
    Plan(kPollSeconds, Event::What::kPoll, number);
  }

  // Expired claims and orphaned ones.
  void Care(int number) {
    Count("care", 2);
    Plan(Seconds(kCarePeriod), Event::What::kCare, number);
  }

  // Deadlines, and claims of dead nodes.
  void CareForAll(int number) {
    Count("care", 2);
    const size_t some = std::min(lost_.size(), kClaimsPerTake);
    for (size_t i = 0; i < some; ++i) {
      board_.Return(lost_.back());
      lost_.pop_back();
      Count("lost leases taken back", 2);
    }
    if (some > 0) nodes_[static_cast<size_t>(number)].planner.HearOfAnything();
    Plan(Seconds(kCommonPeriod), Event::What::kCommon, number);
  }

  int LiveNode() {
    while (true) {
      const int number = std::uniform_int_distribution<int>(0, options_.nodes - 1)(random_);
      if (!nodes_[static_cast<size_t>(number)].is_dead) return number;
    }
  }

  // One job of a tenant that had none.
  void SubmitOfGuest() {
    if (!IsBusyTime()) return;
    const int number = LiveNode();
    ++to_run_;
    ++figures_.guests;
    const int tenant = board_.AddTenant(1, options_.mean_s, 1, now_);
    if (options_.plant != ClaimPlant::kDeaf) {
      nodes_[static_cast<size_t>(number)].planner.HearOfWork(Board::NameOf(tenant),
                                                             /*is_own=*/true);
    }
    Fill(number);
    Plan(Between(0, 2 / options_.guests_per_s), Event::What::kGuest);
  }

  void LoseNodes() {
    lost_at_ = now_;
    for (dead_ = 0; dead_ < options_.nodes / 10; ++dead_) {
      SimNode& node = nodes_[static_cast<size_t>(LiveNode())];
      node.is_dead = true;
      for (size_t slot = 0; slot < node.runs.size(); ++slot) {
        const bool is_free = std::find(node.free_slots.begin(), node.free_slots.end(),
                                       static_cast<int>(slot)) != node.free_slots.end();
        if (!is_free) undeclared_.push_back(node.runs[slot].tenant);
      }
    }
    figures_.lost_runs = to_return_ = static_cast<int64_t>(undeclared_.size());
    running_ -= to_return_;
    // The last beat was just seen, and the next look comes a beat after the time to live.
    Plan(kTtlSeconds + kBeatSeconds, Event::What::kDeclared);
  }

  void CloseWindow() {
    int64_t count = std::llround(beats_);
    Count("heartbeats and looks at the nodes", count);
    beats_ = 0;
    count = 0;
    for (const auto& [kind, some] : statements_) count += some;
    if (IsBusyTime()) {
      for (const auto& [kind, some] : statements_) all_statements_[kind] += some;
      measured_s_ += kWindowSeconds;
      figures_.most_statements =
          std::max(figures_.most_statements, static_cast<double>(count) / kWindowSeconds);
      // In the first one the means become known; in that of the loss slots are lost.
      if (now_ > 1.5 * kWindowSeconds) MeasureShares();
    }
    statements_.clear();
    for (int i = 0; i < options_.tenants; ++i) board_.at(i).served_s = 0;
    Plan(kWindowSeconds, Event::What::kWindow);
  }

  void MeasureShares() {
    std::vector<double> all;
    std::map<double, std::vector<double>> of_weight;
    for (int i = 0; i < options_.tenants; ++i) {
      const Board::Tenant& tenant = board_.at(i);
      if (tenant.ready == 0) continue;
      all.push_back(tenant.served_s / tenant.weight);
      of_weight[tenant.weight].push_back(all.back());
    }
    if (all.size() < kLeastTenants) return;
    figures_.least_jain = std::min(figures_.least_jain, JainIndex(all));
    for (const auto& [weight, shares] : of_weight) {
      if (shares.size() < kLeastTenants) continue;
      figures_.weights_error =
          std::max(figures_.weights_error, std::abs(Mean(shares) / Mean(all) - 1));
    }
  }

  const ClaimScaleOptions options_;
  std::mt19937_64 random_;
  scheduler::ClusterSize size_;  // as the nodes know it
  const double expected_s_;      // until all jobs have run
  Board board_;
  std::vector<SimNode> nodes_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  double now_ = 0;
  int64_t to_run_ = 0;
  int64_t running_ = 0;
  int dead_ = 0;
  double lost_at_ = 0;
  std::vector<int> undeclared_, lost_;  // tenants of lost runs
  int64_t to_return_ = 0;               // lost runs that do not run again yet
  int64_t started_guests_ = 0;
  double guest_s_ = 0;
  double busy_slot_s_ = 0, all_slot_s_ = 0;
  double beats_ = 0;
  double measured_s_ = 0;
  std::map<std::string, int64_t> statements_, all_statements_;  // in this window; in all that count
  ClaimScaleFigures figures_;
};

}  // namespace

ClaimScaleFigures SimulateClaims(const ClaimScaleOptions& options) {
  return ClaimWorld(options).Run();
}

}  // namespace npuc
