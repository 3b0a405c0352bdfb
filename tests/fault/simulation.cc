#include "tests/fault/simulation.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "server/jobs/service_error.h"
#include "tests/fault/sim_board.h"
#include "tests/fault/sim_history.h"

namespace npuc {
namespace {

constexpr int kTenants = 3;
constexpr std::array<const char*, kTenants> kTenantNames = {"ann", "bob", "cat"};
constexpr std::array<double, kTenants> kWeights = {1, 2, 4};
constexpr int kBadKey = 0;   // jobs that want this result cannot be compiled
constexpr int kLostKey = 5;  // ... have a model that was damaged on the disk
constexpr int kMaxRestSteps = 4000;
constexpr jobs::RetryLimits kRetry = {.max_worker_losses = 3, .max_daemon_losses = 4};
constexpr absl::Duration kLeaseTtl = absl::Seconds(60);
constexpr SimStore::Faults kFaults = {.fail_clean = 1.5,
                                      .fail_visible = 2.0,
                                      .fail_hidden = 0.5,
                                      .crash_before = 0.7,
                                      .crash_after = 0.7,
                                      .slow = 5,
                                      .nested = 10};
constexpr absl::Duration kRetention = absl::Hours(24 * 8);
// 2023-11-14
const absl::Time kEpoch = absl::FromUnixSeconds(1'700'000'000);

bool GivesLease(const jobs::JobChange& change) {
  return std::any_of(change.events.begin(), change.events.end(), [](const jobs::JobEvent& event) {
    const auto* state = std::get_if<jobs::StateChangedEvent>(&event.body);
    return state != nullptr && state->state == jobs::JobState::kRunning;
  });
}

class World {
 public:
  World(uint64_t seed, const SimulationOptions& options)
      : options_(options),
        random_(seed),
        store_(seed ^ 0x5eed, options.plant),
        history_(kRetry, kRetention) {
    tenants_ = static_cast<int>(random_.Between(1, kTenants));
    keys_ = static_cast<int>(random_.Between(2, 6));
    slots_ = static_cast<int>(random_.Between(1, 3));
    max_queued_ = random_.Between(3, 20);
    max_queued_of_one_ = random_.Percent(30) ? random_.Between(2, 6) : 0;
    max_running_of_one_ = random_.Percent(30) ? 1 : 0;
    steps_ = static_cast<int>(random_.Between(20, 90));
    faulty_ = random_.Percent(80);
    cached_.resize(static_cast<size_t>(keys_), false);
    daemons_ = options.daemons;
    const bool are_several = seed % 5 < 2 || IsOfSeveralDaemons(options.plant);
    if (daemons_ == 0) daemons_ = are_several ? 2 + static_cast<int>(seed / 5 % 4) : 1;
    if (daemons_ > 1) store_.Share();
    store_.SetHooks({.wait = [this] { Advance(absl::Milliseconds(random_.Between(1, 90000))); },
                     .between = [this](bool is_new) { Between(is_new); },
                     .unanswered =
                         [this](const jobs::JobChange& change) {
                           if (GivesLease(change)) history_.LeaseLost(change.job.id);
                         }});
  }

  std::optional<std::string> Live() {
    SetFaults(faulty_);
    Start();
    for (int i = 0; i < steps_ && !broken(); ++i) {
      Step();
      if (store_.dead()) Restart("died in a write");
      for (int d = 0; d < daemons_; ++d) {
        if (store_.IsDead(d)) {
          KillOne(d, "died in a write");
        } else if (!IsUp(d) && random_.Percent(10)) {
          StartDaemon(d);
        }
      }
    }
    Rest();
    return history_.violation();
  }

 private:
  struct Held {
    jobs::Lease lease;
    int run = 0;
    int key = 0;
    int64_t steps_left = 0;
    int daemon = 0;
  };
  struct HeldClaim {
    jobs::JobService::Claim claim;
    int daemon = 0;
  };
  // One daemon: what it has in memory. Without a service it is not started again yet.
  struct Daemon {
    std::unique_ptr<SimBoard> board;
    std::unique_ptr<jobs::JobService> service;
  };

  bool broken() const { return history_.violation().has_value(); }
  absl::Time Steady() const { return kEpoch + elapsed_; }
  absl::Time Clock() const { return kEpoch + elapsed_ + skew_; }
  void Advance(absl::Duration by) {
    elapsed_ += by;
    history_.SawClock(Clock(), Steady());
  }

  template <typename... Parts>
  void Trace(const Parts&... parts) {
    if (!options_.trace) return;
    options_.trace(absl::StrCat("t=", absl::FormatDuration(elapsed_), " ",
                                depth_ > 0 ? "  (in a write) " : "", parts...));
  }

  void SetFaults(bool on) { store_.SetFaults(on ? kFaults : SimStore::Faults()); }
  void Start();
  void StartDaemon(int daemon);
  void Restart(absl::string_view why);
  void KillOne(int daemon, absl::string_view why);
  bool IsUp(int daemon) const {
    return running_.at(static_cast<size_t>(daemon)).service != nullptr;
  }
  int OneThatIsUp() {
    auto daemon = static_cast<int>(random_.Below(daemons_));
    while (!IsUp(daemon)) daemon = (daemon + 1) % daemons_;
    return daemon;
  }
  bool IsAnyUp() const {
    return std::any_of(running_.begin(), running_.end(),
                       [](const Daemon& daemon) { return daemon.service != nullptr; });
  }
  // From here on it is this daemon's turn.
  void Switch(int daemon) {
    at_ = daemon;
    store_.SetWriter(daemon);
  }
  jobs::JobService& service() { return *running_.at(static_cast<size_t>(at_)).service; }
  void Step();
  void Between(bool is_new);
  void Rest();
  bool AllEnded();
  void CheckAll();

  void SubmitNew();
  void Repeat();
  void Send(const SimHistory::Request& request);
  void CheckBounds(const SimHistory::Request& request);
  void StartOne();
  void Unstarted(jobs::JobService::Claim claim);
  void LeaseOne(jobs::JobService::Claim claim);
  void ClaimOver(const jobs::JobService::Claim& claim);
  void Work(bool may_misbehave);
  void FinishRun(const Held& held);
  void Stale();
  void Drop(int run, bool remember);
  void CancelOne();
  void Heard(int run);
  void Tick();
  void Look();
  void PassTime();

  const SimulationOptions& options_;
  SimRandom random_;
  SimStore store_;
  SimHistory history_;
  int tenants_ = 1;
  int keys_ = 1;
  int slots_ = 1;
  int64_t max_queued_ = 0;
  int64_t max_queued_of_one_ = 0;
  int64_t max_running_of_one_ = 0;
  int steps_ = 0;
  bool faulty_ = false;
  absl::Duration elapsed_ = absl::ZeroDuration();
  absl::Duration skew_ = absl::ZeroDuration();
  int depth_ = 0;
  int requeues_ = 0;
  int next_request_ = 0;
  std::vector<bool> cached_;                     // by key: the cache has its result
  std::vector<SimHistory::Request> repeatable_;  // requests with an id that were sent
  std::vector<std::string> known_;               // accepted jobs
  std::vector<SimHistory::Watcher> watchers_;
  std::vector<Held> held_;    // leases of workers that work
  std::vector<Held> strays_;  // leases of workers that were written off, but may speak up again
  std::unique_ptr<scheduler::FairQueue> queue_;
  std::unique_ptr<jobs::LocalBoard> board_;
  std::array<Daemon, kMaxDaemons> running_;
  int daemons_ = 1;
  int at_ = 0;                   // the daemon whose turn it is
  std::list<HeldClaim> claims_;  // jobs whose workers get going
};

void World::Start() {
  scheduler::FairQueueOptions queue_options{.max_queued = max_queued_, .slots = slots_};
  queue_options.policy = [this](absl::string_view tenant) {
    scheduler::TenantPolicy policy{.max_queued = max_queued_of_one_,
                                   .max_running = max_running_of_one_};
    for (size_t i = 0; i < kTenants; ++i) {
      if (tenant == kTenantNames[i]) policy.weight = kWeights[i];
    }
    if (options_.plant == Plant::kNoBounds) policy.max_queued = 0;
    return policy;
  };
  if (options_.plant == Plant::kNoBounds) queue_options.max_queued = 1 << 30;
  queue_ = options_.plant == Plant::kDropFromQueue
               ? std::make_unique<LeakyQueue>(queue_options, &random_)
               : std::make_unique<scheduler::FairQueue>(queue_options);
  board_ = std::make_unique<jobs::LocalBoard>(
      queue_.get(), options_.plant == Plant::kNoLeaseExpiry ? absl::InfiniteDuration() : kLeaseTtl);
  for (int d = 0; d < daemons_; ++d) StartDaemon(d);
}

void World::StartDaemon(int daemon) {
  jobs::JobServiceOptions service_options{
      .owner = kDaemonNames.at(static_cast<size_t>(daemon)),
      .now =
          [this] {
            const bool is_early = options_.plant == Plant::kExpireEarly;
            return Clock() + (is_early ? absl::Minutes(9) : absl::ZeroDuration());
          },
      .steady_now = [this] { return Steady(); },
      .random = [this] { return random_.Next(); },
      .retry = kRetry,
      .lease_ttl = kLeaseTtl,
      .retention = kRetention};
  if (options_.plant == Plant::kEarlyPrune) service_options.retention = absl::Hours(1);
  if (options_.plant == Plant::kUnboundedRetries) service_options.retry = {1000, 1000};
  Daemon& running = running_.at(static_cast<size_t>(daemon));
  while (!broken()) {
    Switch(daemon);
    running.service.reset();
    running.board = std::make_unique<SimBoard>(board_.get(), &store_, options_.plant, daemon);
    running.service =
        std::make_unique<jobs::JobService>(service_options, &store_, running.board.get());
    running.service->SetAbandonListener([this](const jobs::Lease& lease) {
      Trace("the run of lease ", lease.fence, " of ", lease.job_id, " is abandoned");
      history_.RunOver(lease);
      for (Held& held : held_) {
        if (held.lease == lease) held.steps_left = -1;
      }
    });
    ++depth_;  // nothing else happens during recovery
    const absl::Status status = running.service->Recover(nullptr);
    --depth_;
    Trace("daemon ", daemon, " starts: ", status.ToString());
    if (status.ok()) return;
    // The daemon gives up, and is started again.
    running.board->Die();
    store_.Revive(daemon);
    if (daemons_ == 1) store_.Restart();
  }
}

// One of several daemons dies, and is started again, perhaps much later. The board, the store and
// the other daemons go on.
void World::KillOne(int daemon, absl::string_view why) {
  Trace("CRASH of daemon ", daemon, ": ", why);
  Daemon& running = running_.at(static_cast<size_t>(daemon));
  running.board->Die();
  history_.AllRunsOver(daemon);
  history_.AllClaimsOver(daemon);
  requeues_ += static_cast<int>(held_.size()) + 3;
  std::erase_if(claims_, [&](const HeldClaim& claim) { return claim.daemon == daemon; });
  running.service.reset();
  std::erase_if(held_, [&](const Held& held) {
    if (held.daemon == daemon) strays_.push_back(held);
    return held.daemon == daemon;
  });
  store_.Revive(daemon);
  Advance(absl::Milliseconds(random_.Between(1, 5000)));
  if (!IsAnyUp() || random_.Percent(50)) StartDaemon(daemon);
}

void World::Restart(absl::string_view why) {
  if (daemons_ > 1) return KillOne(OneThatIsUp(), why);
  Trace("CRASH: ", why);
  history_.AllRunsOver();
  history_.AllClaimsOver(0);
  requeues_ += static_cast<int>(held_.size()) + 3;
  running_[0].board->Die();
  claims_.clear();
  running_[0].service.reset();
  board_.reset();
  queue_.reset();
  for (Held& held : held_) strays_.push_back(std::move(held));
  held_.clear();
  store_.Restart();
  Advance(absl::Milliseconds(random_.Between(1, 5000)));
  if (random_.Percent(10)) skew_ += absl::Seconds(random_.Between(-3600, 3600));
  history_.SawClock(Clock(), Steady());
  Start();
}

void World::Step() {
  Advance(absl::Milliseconds(random_.Between(0, 2000)));
  Switch(OneThatIsUp());
  const int64_t dice = random_.Below(100);
  if (dice < 22) {
    SubmitNew();
  } else if (dice < 27) {
    Repeat();
  } else if (dice < 43) {
    StartOne();
  } else if (dice < 68) {
    Work(/*may_misbehave=*/true);
  } else if (dice < 72) {
    Stale();
  } else if (dice < 78) {
    CancelOne();
  } else if (dice < 86) {
    Tick();
  } else if (dice < 95) {
    Look();
  } else if (dice < 99) {
    PassTime();
  } else if (faulty_) {
    Restart("killed");
  }
  // A store that takes no writes is seen by the watchdog before long.
  if (!store_.dead() && store_.broken() && random_.Percent(30)) Restart("the store is broken");
}

// What other threads do while one waits for the store. A job whose first write is under way is
// known to nobody, so everything may happen then; during other writes only new jobs come, since
// real threads would wait for the locks that the writer holds.
void World::Between(bool is_new) {
  if (depth_ > 0) return;
  ++depth_;
  const int before = at_;
  Switch(OneThatIsUp());
  // Another daemon waits for no lock of this one.
  const bool is_other = at_ != before;
  const int64_t dice = random_.Below(10);
  if (is_other && dice < 2) {
    CancelOne();
  } else if (is_other && dice < 4) {
    Tick();
  } else if ((!is_new && !is_other) || dice < 3) {
    SubmitNew();
  } else if (dice < 6) {
    StartOne();
  } else if (dice < 9) {
    Work(/*may_misbehave=*/true);
  } else {
    Look();
  }
  Switch(before);
  --depth_;
}

void World::SubmitNew() {
  const auto tenant = static_cast<size_t>(random_.Below(tenants_));
  SimHistory::Request request{.tenant = kTenantNames[tenant],
                              .key = static_cast<int>(random_.Below(keys_)),
                              .no_cache = random_.Percent(10)};
  if (random_.Percent(50)) request.id = absl::StrCat("r", next_request_++);
  request.sha256 = absl::StrCat("k", request.key, request.no_cache ? "n" : "c", request.id);
  if (!request.id.empty() && depth_ == 0) repeatable_.push_back(request);
  Send(request);
}

void World::Repeat() {
  if (repeatable_.empty()) return;
  SimHistory::Request request =
      repeatable_[static_cast<size_t>(random_.Below(static_cast<int64_t>(repeatable_.size())))];
  if (random_.Percent(5)) request.sha256 += "-other";
  Send(request);
}

void World::Send(const SimHistory::Request& request) {
  jobs::NewJob job;
  job.tenant = request.tenant;
  job.request_id = request.id;
  job.request_sha256 = request.sha256;
  job.output_file = "m.h";
  int seen_key = request.key;
  if (options_.plant == Plant::kMixResults) seen_key = 1;
  job.cache_key = absl::StrCat("key", seen_key);
  if (options_.plant == Plant::kNoSingleFlight) {
    absl::StrAppend(&job.cache_key, "#", random_.Next());
  }
  job.spec.inputs = {{.role = "MODEL_FILE", .name = "m", .sha256 = "s", .md5 = "m"}};
  job.spec.priority = static_cast<int32_t>(random_.Between(-3, 3));
  job.spec.timeout = absl::Seconds(random_.Percent(20) ? random_.Between(1, 60) : 3600);
  job.spec.no_cache = request.no_cache;
  // A repeat with another content must not slip through as a new job with that of the first.
  if (!request.no_cache && cached_[static_cast<size_t>(request.key)] && random_.Percent(80)) {
    job.cached =
        jobs::NewJob::Cached{.artifacts = {{"m.h", 1, SimHistory::CachedName(request.key)}}};
  }
  const absl::Time sent = Steady();
  const auto submitted = service().SubmitAndWait(std::move(job));
  if (submitted.ok()) {
    const jobs::Job& accepted = *submitted->job;
    Trace("submit by ", request.tenant, " of result ", request.key,
          request.no_cache ? " without cache" : "",
          request.id.empty() ? "" : absl::StrCat(" as ", request.id), ": ", accepted.id,
          submitted->already_existed ? " again, " : ", ", jobs::JobStateName(accepted.state));
    if (!submitted->already_existed && !jobs::IsTerminal(accepted.state)) CheckBounds(request);
    history_.Accepted(request, accepted, submitted->already_existed, Clock(), sent);
    known_.push_back(accepted.id);
    if (random_.Percent(40)) watchers_.push_back({.job_id = accepted.id});
    return;
  }
  ++requeues_;  // perhaps it is there, and comes in beyond the bounds
  const auto details = jobs::ErrorDetailsOf(submitted.status());
  Trace("submit by ", request.tenant, " of result ", request.key, ": ",
        submitted.status().message());
  history_.Refused(request, details.has_value() ? details->reason : "");
}

// Counts in the store what waits; jobs that came back after they ran are let in beyond the bounds.
void World::CheckBounds(const SimHistory::Request& request) {
  if (store_.broken()) return;
  int64_t all = 0;
  int64_t own = 0;
  const absl::Status status = store_.ForEachLive([&](const jobs::LiveJob& job) {
    if (job.state != jobs::JobState::kQueued) return absl::OkStatus();
    ++all;
    if (job.tenant == request.tenant) ++own;
    return absl::OkStatus();
  });
  if (!status.ok()) return;
  if (all > max_queued_ + requeues_ + slots_ * daemons_) {
    history_.Break(absl::StrCat("the queue is bounded: ", all, " of ", max_queued_, " jobs wait"));
  }
  if (max_queued_of_one_ > 0 && own > max_queued_of_one_ + requeues_ + slots_ * daemons_) {
    history_.Break(absl::StrCat("quotas hold: ", own, " jobs of ", request.tenant, " wait, ",
                                max_queued_of_one_, " may"));
  }
}

void World::StartOne() {
  if (!claims_.empty() && random_.Percent(60) && (depth_ == 0 || claims_.front().daemon == at_)) {
    HeldClaim held = std::move(claims_.front());
    claims_.pop_front();
    Switch(held.daemon);
    if (random_.Percent(95)) return LeaseOne(std::move(held.claim));
    return Unstarted(std::move(held.claim));
  }
  const auto busy = std::count_if(held_.begin(), held_.end(),
                                  [&](const Held& held) { return held.daemon == at_; }) +
                    std::count_if(claims_.begin(), claims_.end(),
                                  [&](const HeldClaim& held) { return held.daemon == at_; });
  if (busy >= slots_) return;
  const absl::Time asked = Steady();
  auto claim = service().TryClaim();
  if (!claim.ok()) {
    ++requeues_;
    Trace("claim: ", claim.status().message());
    return;
  }
  if (!claim->has_value()) return;
  history_.Claimed((*claim)->job()->id, at_, asked + 2 * kLeaseTtl);
  if (random_.Percent(50)) return LeaseOne(**std::move(claim));
  Trace("daemon ", at_, " claims ", (*claim)->job()->id);
  claims_.push_back({**std::move(claim), at_});
}

void World::ClaimOver(const jobs::JobService::Claim& claim) {
  history_.ClaimOver(claim.job()->id, at_);
}

// No worker can be started: the job stays in its place.
void World::Unstarted(jobs::JobService::Claim claim) {
  ++requeues_;
  Trace("no worker can be started for ", claim.job()->id);
  ClaimOver(claim);
  if (options_.plant != Plant::kFailUnstarted) return;
  const auto leased = claim.Lease();
  if (!leased.ok() || !leased->has_value()) return;
  const jobs::JobResult result{.failure_kind = jobs::FailureKind::kInternal, .reason = "no worker"};
  service().Finish((*leased)->lease, {}, result).IgnoreError();
}

void World::LeaseOne(jobs::JobService::Claim claim) {
  const int daemon = at_;
  const std::string id = claim.job()->id;
  const auto leased = claim.Lease();
  ClaimOver(claim);
  if (!leased.ok()) {
    ++requeues_;
    Trace("daemon ", daemon, ": lease of ", id, ": ", leased.status().message());
    history_.LeaseLost(id);
    return;
  }
  if (!leased->has_value()) return;
  const jobs::Job& job = *(*leased)->job;
  const int key = static_cast<int>(job.request_sha256[1] - '0');
  if (daemons_ > 1) history_.DaemonsUnheardSince(Steady() - 2 * kLeaseTtl);
  const int run = history_.RunBegan((*leased)->lease, key, !job.spec.no_cache, Steady(), daemon);
  Trace("daemon ", daemon, ": lease ", (*leased)->lease.fence, " of ", job.id, " (", job.tenant,
        ", result ", key, ") is run ", run);
  held_.push_back({(*leased)->lease, run, key, random_.Between(0, 4), daemon});
}

// By its number: other calls may have come during the last one, and moved it.
void World::Drop(int run, bool remember) {
  const auto held =
      std::find_if(held_.begin(), held_.end(), [&](const Held& other) { return other.run == run; });
  if (held == held_.end()) return;
  if (remember) strays_.push_back(*held);
  held_.erase(held);
}

void World::Work(bool may_misbehave) {
  if (held_.empty()) return;
  const auto slot = static_cast<size_t>(random_.Below(static_cast<int64_t>(held_.size())));
  const Held held = held_[slot];
  if (depth_ > 0 && held.daemon != at_) return;
  Switch(held.daemon);
  if (service().Renew(held.lease)) {
    if (!history_.alive(held.run)) {
      history_.Break(absl::StrCat("a lease that is over is its holder's no more: run ", held.run));
    }
    Heard(held.run);
  }
  if (held.steps_left < 0) {  // its worker was told to stop
    Drop(held.run, /*remember=*/true);
    return;
  }
  const int64_t dice = may_misbehave ? random_.Below(100) : 50;
  if (dice < 3) {
    // It hangs: nobody hears of it until it speaks up as a stray, if ever.
    Trace("run ", held.run, " hangs");
    Drop(held.run, /*remember=*/true);
    return;
  }
  if (dice < 12 || (dice < 15 && options_.plant == Plant::kUnboundedRetries)) {
    const bool host_died = dice >= 10 && dice < 12;
    if (!host_died) history_.WorkerDied(held.run);
    const jobs::LossKind kind = host_died && options_.plant != Plant::kCountHostDeaths
                                    ? jobs::LossKind::kHandBack
                                    : jobs::LossKind::kWorker;
    if (daemons_ > 1) history_.RunMayBeOver(held.run);
    const absl::Status status = service().Lose(held.lease, kind, "it died", {jobs::LogEvent{"x"}});
    Trace("run ", held.run, " is lost: ", status.ToString());
    ++requeues_;
    Heard(held.run);
    if (!status.ok()) history_.RunMayBeOver(held.run);
    if (!status.ok() && !absl::IsAborted(status)) return;  // tried again
    history_.RunOver(held.run);
    Drop(held.run, random_.Percent(50));
    return;
  }
  if (held.steps_left > 0) {
    --held_[slot].steps_left;
    const absl::Status status =
        service().Append(held.lease, {jobs::LogEvent{"line"}, jobs::ProgressEvent{"lower", 0.5}});
    Trace("run ", held.run, " tells: ", status.ToString());
    if (status.ok() && !history_.alive(held.run)) {
      history_.Break(absl::StrCat("no stale result: a log line of run ", held.run, " was taken"));
    }
    if (absl::IsAborted(status)) {
      history_.RunOver(held.run);
      Drop(held.run, /*remember=*/true);
    } else {
      Heard(held.run);
    }
    return;
  }
  FinishRun(held);
}

void World::FinishRun(const Held& held) {
  const std::string name = history_.Report(held.run, held.key);
  jobs::JobResult result;
  if (held.key == kBadKey) {
    result.failure_kind = jobs::FailureKind::kInvalidInput;
    result.reason = name;
  } else if (held.key == kLostKey) {
    result.failure_kind = jobs::FailureKind::kInputLost;
    result.reason = name;
  } else if (random_.Percent(8)) {
    result.failure_kind = jobs::FailureKind::kInternal;
    result.reason = name;
  } else {
    result.succeeded = true;
    result.artifacts = {{"m.h", 1, name}};
    if (options_.plant == Plant::kMixTries && random_.Percent(10)) {
      result.artifacts.push_back(result.artifacts[0]);
    }
    cached_[static_cast<size_t>(held.key)] = true;
  }
  jobs::Lease lease = held.lease;
  if (options_.plant == Plant::kIgnoreFence) {
    // Whoever runs the job now, this result is given out as theirs.
    const auto job = store_.Read(lease.job_id);
    if (job.ok()) lease.fence = job->fence;
  }
  const bool is_damaged = held.key == kLostKey;
  // While its end is given to followers, the other daemon may begin an equal job.
  if (daemons_ > 1) history_.RunMayBeOver(held.run);
  const absl::Status status =
      is_damaged && options_.plant == Plant::kDamageIsDeath
          ? service().Lose(lease, jobs::LossKind::kWorker, "it died", {jobs::LogEvent{"done"}})
          : service().Finish(lease, {jobs::LogEvent{"done"}}, result);
  Trace("run ", held.run, " ends with ", name, ": ", status.ToString());
  if (is_damaged && status.ok()) history_.SawDamage(lease.job_id);
  history_.Reported(name, status);
  if (!absl::IsAborted(status)) Heard(held.run);
  if (!status.ok() && !absl::IsAborted(status)) return;  // tried again
  history_.RunOver(held.run);
  Drop(held.run, random_.Percent(50));
}

// A worker that was written off sends its result, perhaps not for the first time.
void World::Stale() {
  if (strays_.empty()) return;
  const Held held =
      strays_[static_cast<size_t>(random_.Below(static_cast<int64_t>(strays_.size())))];
  if (!IsUp(held.daemon)) return;
  Trace("stray run ", held.run, " speaks up");
  Switch(held.daemon);
  FinishRun(held);
}

void World::CancelOne() {
  if (known_.empty()) return;
  const std::string id =
      known_[static_cast<size_t>(random_.Below(static_cast<int64_t>(known_.size())))];
  history_.CancelAsked(id);
  ++requeues_;  // its run may find no other job
  const auto job = service().Cancel(id, "test");
  Trace("cancel ", id, ": ", job.ok() ? jobs::JobStateName((*job)->state) : job.status().message());
  if (job.ok()) history_.Shown(**job);
  if (absl::IsNotFound(job.status())) history_.NotFound(id, Clock());
  if (options_.plant != Plant::kCancelWholeFlight || !job.ok()) return;
  std::string other;
  store_
      .ForEachLive([&](const jobs::LiveJob& live) {
        if (!live.flight_key.empty() && live.flight_key == (*job)->flight_key()) other = live.id;
        return absl::OkStatus();
      })
      .IgnoreError();
  if (!other.empty()) service().Cancel(other, "its flight was cancelled").IgnoreError();
}

void World::Heard(int run) {
  if (daemons_ > 1) history_.DaemonsUnheardSince(Steady() - 2 * kLeaseTtl);  // it may be taken
  history_.RunHeard(run, Steady());
}

void World::Tick() {
  const absl::Time begin = Steady();
  std::vector<Held> current;
  for (const std::vector<Held>& runs : {held_, strays_}) {
    std::copy_if(runs.begin(), runs.end(), std::back_inserter(current), [&](const Held& held) {
      return held.daemon == at_ && service().IsCurrent(held.lease);
    });
  }
  if (daemons_ > 1) history_.DaemonsUnheardSince(begin - 2 * kLeaseTtl);
  const absl::Status status = service().Tick();
  if (daemons_ > 1) history_.DaemonsUnheardSince(Steady() - 2 * kLeaseTtl);
  Trace("tick: ", status.ToString());
  // A lease that was taken back counts as a worker's death. Where a write failed, the log may hold
  // the death although the service does not know it yet: a restart brings it.
  for (const Held& held : current) {
    if (!status.ok() || !service().IsCurrent(held.lease)) history_.WorkerDied(held.run);
  }
  for (int d = 0; d < daemons_ && status.ok(); ++d) {
    history_.RunsUnheardSince(begin - (d == at_ ? 1 : 2) * kLeaseTtl, d);
  }
  requeues_ += daemons_;
}

void World::Look() {
  if (!known_.empty()) {
    const std::string& id =
        known_[static_cast<size_t>(random_.Below(static_cast<int64_t>(known_.size())))];
    const auto job = service().Get(id);
    if (job.ok()) history_.Shown(**job);
    if (absl::IsNotFound(job.status())) history_.NotFound(id, Clock());
    if (job.ok() && (*job)->state == jobs::JobState::kQueued && !store_.broken()) {
      const auto wait = service().Wait(id);
      if (!wait.has_value() && options_.plant == Plant::kNone && !faulty_) {
        history_.Break(absl::StrCat("every queued job has a reason to wait: ", id, " has none"));
      }
    }
  }
  for (SimHistory::Watcher& watcher : watchers_) {
    if (!random_.Percent(50)) continue;
    const auto events = service().ReadEvents(
        watcher.job_id, static_cast<int64_t>(watcher.seen.size()) + 1, 3, 1 << 20);
    if (events.ok()) history_.Watched(watcher, *events);
  }
}

void World::PassTime() {
  const int64_t dice = random_.Below(100);
  if (dice < 70) {
    Advance(absl::Seconds(random_.Between(5, 90)));
  } else if (dice < 80) {
    skew_ += absl::Seconds(random_.Between(-600, 600));
    history_.SawClock(Clock(), Steady());
    Trace("the clock jumps");
  } else if (dice < 97) {
    Advance(absl::Minutes(random_.Between(5, 120)));
  } else if (dice < 99) {
    Advance(absl::Hours(random_.Between(10, 23)));
  } else {
    Advance(absl::Hours(24 * 9));
  }
}

// In the store, and for the service, which may not have looked since a write failed.
bool World::AllEnded() {
  const jobs::JobService::Counts counts = service().GetCounts();
  bool all = counts.queued == 0 && counts.running == 0;
  store_
      .ForEachLive([&](const jobs::LiveJob&) {
        all = false;
        return absl::CancelledError("one is enough");
      })
      .IgnoreError();
  return all;
}

// No more faults and no more crashes: everything that was accepted comes to its end.
void World::Rest() {
  if (broken()) return;
  SetFaults(false);
  if (store_.broken()) Restart("to have a store that works");
  for (int d = 0; d < daemons_; ++d) {
    if (!IsUp(d) && random_.Percent(50)) StartDaemon(d);
  }
  Switch(OneThatIsUp());
  Trace("from here on all goes well");
  // Clients without an answer ask again.
  for (const SimHistory::Request& request : std::vector<SimHistory::Request>(repeatable_)) {
    if (!broken()) Send(request);
  }
  for (int i = 0; i < kMaxRestSteps && !broken(); ++i) {
    Switch(OneThatIsUp());
    StartOne();
    Work(/*may_misbehave=*/options_.plant == Plant::kUnboundedRetries && i < 400);
    if (i % 16 != 15) continue;
    Advance(absl::Seconds(5));
    for (int d = 0; d < daemons_; ++d) {
      if (!IsUp(d)) continue;
      Switch(d);
      Tick();
    }
    if (held_.empty() && claims_.empty() && AllEnded()) break;
  }
  CheckAll();
}

void World::CheckAll() {
  std::map<std::string, std::vector<jobs::JobEvent>> all;
  for (const auto& [id, facts] : history_.jobs()) {
    const auto job = service().Get(id);
    if (!job.ok()) {
      history_.NotFound(id, Clock());
      continue;
    }
    const auto events = service().ReadEvents(id, 1, 100000, 1 << 24);
    if (!events.ok()) {
      history_.Break(absl::StrCat("the events of ", id, " cannot be read"));
      return;
    }
    history_.Final(**job, *events);
    all[id] = *events;
  }
  for (const SimHistory::Watcher& watcher : watchers_) {
    const auto found = all.find(watcher.job_id);
    if (found != all.end()) history_.FinalWatcher(watcher, found->second);
  }
  const jobs::JobService::Counts counts = service().GetCounts();
  if (!broken() && (counts.queued != 0 || counts.running != 0)) {
    history_.Break(absl::StrCat("counts come back to nothing: ", counts.queued, " queued, ",
                                counts.running, " running at the end"));
  }
}

}  // namespace

std::optional<std::string> Simulate(uint64_t seed, const SimulationOptions& options) {
  // The scheduler by itself takes longer a seed, and has fewer ways to go.
  if (seed % 16 == 0) {
    std::optional<std::string> broken = SimulateFairness(seed, options);
    if (broken.has_value()) return broken;
  }
  return World(seed, options).Live();
}

}  // namespace npuc
