#include "server/pg/pg_board.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "server/jobs/service_error.h"

namespace npuc::pg {
namespace {

using jobs::BoardClaim;
using jobs::BoardView;
using jobs::ClaimId;

constexpr auto kOnce = Sessions::Repeat::kOnce;

constexpr uint64_t kOrdersPerBlock = 4096;
// A claim that is always another node's, or parks equal jobs, gives up after so many tries.
constexpr int kMaxClaimTries = 16;
// Jobs that this node cannot read; a newer node may have ended one, or written it so that it can.
constexpr size_t kMaxAvoided = 1000;
constexpr std::chrono::minutes kAvoidTime(1);
constexpr int kMaxTakes = 1000;
constexpr double kMinCostSeconds = 0.001;  // of a start, as FairQueue has it
constexpr double kMicrosPerSecond = 1e6;
constexpr std::chrono::seconds kLookPeriod(5);
constexpr int64_t kMaxDue = 200;

// From columns clock_s, mean_s, weight, room on.
scheduler::ReadyTenant ReadyTenantOf(const Rows& rows, size_t row, std::string tenant, int column) {
  return {.tenant = std::move(tenant),
          .clock_s = rows.Double(row, column),
          .mean_s = rows.Double(row, column + 1),
          .weight = rows.Double(row, column + 2),
          .room = rows.Int(row, column + 3)};
}

int64_t Id(ClaimId claim) { return static_cast<int64_t>(claim); }

}  // namespace

PgBoard::PgBoard(Sessions* sessions, Node* node, PgBoardOptions options)
    : node_(node),
      options_(std::move(options)),
      sessions_(WithoutSync(sessions->options())),
      planner_(options_.view_period, std::random_device()()) {}

PgBoard::~PgBoard() {
  {
    const MutexLock lock(poll_mutex_);
    stopping_ = true;
  }
  stop_.NotifyAll();
  if (poller_.joinable()) poller_.join();
}

void PgBoard::StartPolling(absl::Duration period) {
  poller_ = std::thread([this, period] { PollLoop(period); });
}

void PgBoard::PollLoop(absl::Duration period) {
  SteadyTime next_poll = SteadyTimeAfter(absl::ToChronoNanoseconds(period));
  while (true) {
    {
      const MutexLock lock(poll_mutex_);
      while (!stopping_ && stop_.WaitUntil(poll_mutex_, std::min(next_poll, wake_at_))) {
      }
      if (stopping_) return;
      wake_at_ = SteadyTime::max();
    }
    if (std::chrono::steady_clock::now() >= next_poll) {
      Maintain(node_->ClusterNow());
      HearOfAnything();
      next_poll = SteadyTimeAfter(absl::ToChronoNanoseconds(period));
    }
    Wake();
  }
}

void PgBoard::WakeAfter(absl::Duration time) {
  {
    const MutexLock lock(poll_mutex_);
    wake_at_ = std::min(wake_at_, SteadyTimeAfter(absl::ToChronoNanoseconds(time)));
  }
  stop_.NotifyAll();
}

void PgBoard::HearOfAnything() {
  const MutexLock lock(mutex_);
  planner_.HearOfAnything();
}

void PgBoard::HearOf(const std::vector<jobs::Job>& jobs) {
  {
    const MutexLock lock(mutex_);
    for (const jobs::Job& job : jobs) {
      if (job.state != jobs::JobState::kQueued) {
        planner_.HearOfRoom(job.tenant);
      } else if (job.spec.pinned_to.empty()) {
        planner_.HearOfWork(job.tenant, /*is_own=*/false);
      } else if (job.spec.pinned_to == node_->name()) {
        planner_.HearOfPinned();
      }
    }
  }
  Wake();
}

void PgBoard::Wake() const {
  const MutexLock lock(subscribers_mutex_);
  for (const auto& [number, wake] : subscribers_) wake();
}

jobs::JobBoard::Unsubscribe PgBoard::Subscribe(std::function<void()> wake) {
  const MutexLock lock(subscribers_mutex_);
  const uint64_t number = next_subscriber_++;
  subscribers_[number] = std::move(wake);
  return [this, number] {
    const MutexLock again(subscribers_mutex_);
    subscribers_.erase(number);
  };
}

// Only a tie-break: where PostgreSQL is away, the job will not be stored.
uint64_t PgBoard::NextOrder() {
  {
    const MutexLock lock(mutex_);
    if (next_order_ < end_of_orders_) return next_order_++;
  }
  const absl::StatusOr<Rows> rows = sessions_.Read("SELECT nextval('accept_block')", {});
  const MutexLock lock(mutex_);
  if (rows.ok()) {
    next_order_ = static_cast<uint64_t>(rows->Int(0, 0)) * kOrdersPerBlock;
    end_of_orders_ = next_order_ + kOrdersPerBlock;
  }
  return next_order_++;
}

void PgBoard::SetPaused(bool paused) {
  is_paused_ = paused;
  HearOfAnything();
  Wake();
}

void PgBoard::RefreshPolicies() {
  {
    const MutexLock lock(mutex_);
    tenants_.clear();
    policies_due_ = true;
  }
  StorePolicies();
}

// Where they are due: of all tenants that have a row, whichever node made it. Maintain tries again
// what PostgreSQL did not take.
void PgBoard::StorePolicies() {
  {
    const MutexLock lock(mutex_);
    if (!policies_due_) return;
    policies_due_ = false;
  }
  const absl::StatusOr<Rows> rows = sessions_.Read("SELECT tenant FROM tenant", {});
  bool are_stored = rows.ok();
  for (size_t row = 0; are_stored && row < rows->size(); ++row) {
    are_stored = AddTenant(rows->Text(row, 0));
  }
  if (are_stored) return;
  const MutexLock lock(mutex_);
  policies_due_ = true;
}

// Makes sure that the tenant's row has its policy. False: PostgreSQL did not take it.
bool PgBoard::AddTenant(absl::string_view tenant) {
  {
    const MutexLock lock(mutex_);
    if (tenants_.contains(tenant)) return true;
  }
  scheduler::TenantPolicy policy;
  if (options_.policy) policy = options_.policy(tenant);
  if (!(policy.weight > 0)) policy.weight = 1.0;
  const absl::StatusOr<Rows> rows =
      sessions_.Run(Sessions::Repeat::kRepeatable,
                    "INSERT INTO tenant (tenant, weight, max_running) VALUES ($1, $2, $3) "
                    "ON CONFLICT (tenant) DO UPDATE SET weight = $2, max_running = $3 "
                    "WHERE tenant.weight <> $2 OR tenant.max_running <> $3",
                    {tenant, policy.weight, policy.max_running});
  if (!rows.ok()) return false;
  const MutexLock lock(mutex_);
  tenants_.insert(std::string(tenant));
  return true;
}

absl::Status PgBoard::Reserve(absl::string_view tenant) {
  AddTenant(tenant);
  const std::map<std::string, Counts> counts = CountsByTenant();
  int64_t waiting = 0;
  for (const auto& [name, count] : counts) waiting += count.queued;
  const auto own = counts.find(std::string(tenant));
  const bool is_idle = own == counts.end() || own->second.queued == 0;
  {
    const MutexLock lock(mutex_);
    const int64_t places = options_.max_queued - (is_idle ? 0 : options_.kept_for_idle);
    if (waiting + reserved_ >= places) {
      return jobs::ServiceError(absl::StatusCode::kResourceExhausted,
                                absl::StrCat("the queue is full: ", waiting, " jobs wait, at most ",
                                             options_.max_queued, " may; try again later"),
                                {.reason = "QUEUE_FULL", .retry_delay = absl::Seconds(5)});
    }
    ++reserved_;
  }
  const int64_t limit = options_.policy ? options_.policy(tenant).max_queued : 0;
  absl::Status status;
  int64_t place = 0;
  if (limit > 0) {
    const absl::StatusOr<Rows> rows =
        sessions_.Run(kOnce, "SELECT place, waiting FROM reserve_place($1, $2, $3)",
                      {tenant, node_->incarnation(), limit});
    status = rows.status();
    if (rows.ok() && rows->IsNull(0, 0)) {
      const int64_t found = rows->Int(0, 1);
      status = jobs::ServiceError(
          absl::StatusCode::kResourceExhausted,
          absl::StrCat("the tenant has ", found, " jobs waiting, at most ", limit,
                       " may; wait for some of them, or cancel some"),
          {.reason = "QUOTA_EXCEEDED",
           .quota_violations = {
               {"queued_jobs", absl::StrCat(found, " of ", limit, " jobs wait")}}});
    } else if (rows.ok()) {
      place = rows->Int(0, 0);
    }
  }
  const MutexLock lock(mutex_);
  if (!status.ok()) --reserved_;
  if (place != 0) places_[std::string(tenant)].push_back(place);
  return status;
}

void PgBoard::Release(absl::string_view tenant) {
  int64_t place = 0;
  {
    const MutexLock lock(mutex_);
    --reserved_;
    const auto found = places_.find(tenant);
    if (found == places_.end()) return;
    place = found->second.back();
    found->second.pop_back();
    if (found->second.empty()) places_.erase(found);
  }
  // One that is left goes with the node.
  sessions_.Run(Sessions::Repeat::kRepeatable, "DELETE FROM reservation WHERE id = $1", {place})
      .status()
      .IgnoreError();
}

void PgBoard::Accept(const jobs::BoardJob& job, bool reserved) {
  if (reserved) {
    Release(job.place.tenant);
  } else {
    AddTenant(job.place.tenant);
  }
  {
    const MutexLock lock(mutex_);
    if (job.pinned_to.empty()) {
      planner_.HearOfWork(job.place.tenant, /*is_own=*/true);
    } else if (job.pinned_to == node_->name()) {
      planner_.HearOfPinned();
    }
  }
  // A paused node has work in pinned jobs alone.
  if (!is_paused_ || !job.pinned_to.empty()) Wake();
}

bool PgBoard::Has(absl::string_view job_id) const {
  const absl::StatusOr<Rows> rows =
      sessions_.Read("SELECT EXISTS (SELECT 1 FROM job_queue WHERE job_id = $1)", {job_id});
  return !rows.ok() || rows->Bool(0, 0);
}

std::optional<BoardClaim> PgBoard::Claim(absl::string_view owner, absl::Time now) {
  BoardClaim claim;
  {
    MutexLock lock(claim_mutex_);
    ++asking_;
    while (taken_.empty() && is_claiming_) claimed_.Wait(claim_mutex_);
    if (taken_.empty()) {
      is_claiming_ = true;
      const int64_t slots = asking_;  // the others wait for it
      lock.Unlock();
      std::vector<BoardClaim> claims = ClaimSome(owner, slots, now);
      lock.Lock();
      is_claiming_ = false;
      for (BoardClaim& one : claims) taken_.push_back(std::move(one));
      claimed_.NotifyAll();
    }
    --asking_;
    if (taken_.empty()) return std::nullopt;
    claim = std::move(taken_.front());
    taken_.pop_front();
  }
  Wake();  // there may be more
  return claim;
}

std::vector<BoardClaim> PgBoard::ClaimSome(absl::string_view owner, int64_t slots, absl::Time now) {
  using Kind = scheduler::ClaimPlanner::Plan::Kind;
  for (int tries = 0; tries < kMaxClaimTries && node_->IsHeard(); ++tries) {
    const scheduler::ClusterSize size = node_->size();
    scheduler::ClaimPlanner::Plan plan;
    {
      const MutexLock lock(mutex_);
      plan = planner_.Next(tries, slots, is_paused_, size, now);
    }
    if (plan.kind == Kind::kNothing) {
      if (plan.ask_again != absl::InfiniteFuture()) WakeAfter(plan.ask_again - now);
      return {};
    }
    if (plan.kind == Kind::kRead) {
      if (!ReadView(owner, now)) return {};
      continue;
    }
    std::optional<std::vector<BoardClaim>> claims = RunPlan(plan, owner, now);
    if (!claims.has_value()) return {};
    if (!claims->empty()) return *std::move(claims);
  }
  return {};
}

void PgBoard::Avoid(absl::string_view job_id) {
  const MutexLock lock(mutex_);
  if (avoided_.size() >= kMaxAvoided) avoided_.erase(avoided_.begin());
  avoided_[std::string(job_id)] = SteadyTimeAfter(kAvoidTime);
}

TextArray PgBoard::Avoided() {
  const SteadyTime now = std::chrono::steady_clock::now();
  const MutexLock lock(mutex_);
  std::erase_if(avoided_, [now](const auto& entry) { return entry.second <= now; });
  TextArray jobs;
  for (const auto& [job, until] : avoided_) jobs.push_back(job);
  return jobs;
}

bool PgBoard::ReadView(absl::string_view owner, absl::Time now) {
  const absl::StatusOr<Rows> rows = sessions_.Read(
      "SELECT tenant, clock_s, mean_s, weight, room FROM read_claimable($1)", {owner});
  if (!rows.ok()) return false;
  scheduler::ClaimPlanner::View view;
  for (size_t row = 0; row < rows->size(); ++row) {
    if (rows->IsNull(row, 0)) {
      view.newest_floor_s = rows->Double(row, 1);
      view.has_pinned = rows->Int(row, 4) > 0;
    } else {
      view.tenants.push_back(ReadyTenantOf(*rows, row, std::string(rows->Text(row, 0)), 1));
    }
  }
  const MutexLock lock(mutex_);
  planner_.SetView(std::move(view), now);
  return true;
}

std::optional<std::vector<BoardClaim>> PgBoard::RunPlan(const scheduler::ClaimPlanner::Plan& plan,
                                                        absl::string_view owner, absl::Time now) {
  const bool is_pinned = plan.kind == scheduler::ClaimPlanner::Plan::Kind::kPinned;
  const int64_t incarnation = node_->incarnation();
  const absl::StatusOr<Rows> rows = sessions_.Run(
      kOnce,
      "SELECT claim_id, claimed_job, clock_s, mean_s, weight, room, has_more "
      "FROM claim_jobs($1, $2, $3, $4, $5, $6, $7)",
      {incarnation, owner, is_pinned ? Value(nullptr) : Value(absl::string_view(plan.tenant)),
       plan.floor_s, plan.until_s, plan.jobs, Avoided()});
  if (!rows.ok()) return std::nullopt;
  std::vector<BoardClaim> claims;
  const MutexLock lock(mutex_);
  if (rows->empty()) {
    is_pinned ? planner_.LearnPinned(false)
              : planner_.Learn({.tenant = {.tenant = plan.tenant}, .has_more = false}, now);
  }
  for (size_t row = 0; row < rows->size(); ++row) {
    if (!rows->IsNull(row, 0)) {
      claims.push_back({.id = static_cast<ClaimId>(rows->Int(row, 0)),
                        .owner = std::string(owner),
                        .job_id = std::string(rows->Text(row, 1))});
      held_[claims.back().id] = {
          .claim = claims.back(), .incarnation = incarnation, .renewed = now};
    } else if (is_pinned) {
      planner_.LearnPinned(rows->Bool(row, 6));
    } else {
      planner_.Learn(
          {.tenant = ReadyTenantOf(*rows, row, plan.tenant, 2), .has_more = rows->Bool(row, 6)},
          now);
    }
  }
  return claims;
}

bool PgBoard::Begin(const scheduler::QuestionPeriod& question, Care& care) const {
  const absl::Duration period = question.Of(node_->size().nodes);
  const MutexLock lock(care.mutex);
  if (std::chrono::steady_clock::now() < care.next) return false;
  care.next = SteadyTimeAfter(absl::ToChronoNanoseconds(period));
  return true;
}

void PgBoard::Restore(const jobs::BoardJob& job, absl::string_view owner, uint64_t fence,
                      absl::Time held_until) {
  sessions_
      .Run(Sessions::Repeat::kRepeatable, "SELECT restore_claim($1, $2, $3, $4)",
           {absl::string_view(job.place.id), owner, static_cast<int64_t>(fence),
            ToMicros(held_until)})
      .status()
      .IgnoreError();
}

int64_t PgBoard::IncarnationOf(ClaimId claim) const {
  const MutexLock lock(mutex_);
  const auto found = held_.find(claim);
  return found == held_.end() ? node_->incarnation() : found->second.incarnation;
}

bool PgBoard::Start(ClaimId claim, uint64_t fence, absl::Time now) {
  const absl::StatusOr<Rows> rows =
      sessions_.Run(Sessions::Repeat::kRepeatable, "SELECT start_claim($1, $2, $3, $4)",
                    {Id(claim), IncarnationOf(claim), static_cast<int64_t>(fence), ToMicros(now)});
  if (!rows.ok() || !rows->Bool(0, 0)) return false;
  const MutexLock lock(mutex_);
  const auto found = held_.find(claim);
  if (found == held_.end()) return false;
  found->second.claim.fence = fence;
  // A run that goes on for another job is as old as its worker's last word.
  if (!std::exchange(found->second.started, true)) found->second.renewed = now;
  return true;
}

bool PgBoard::Renew(ClaimId claim, absl::Time now) {
  const int64_t incarnation = node_->incarnation();
  const MutexLock lock(mutex_);
  const auto found = held_.find(claim);
  if (found == held_.end() || found->second.incarnation != incarnation) return false;
  found->second.renewed = now;
  return true;
}

// From columns tenant, used_s, charged_s on.
void PgBoard::AddUse(const Rows& rows, size_t row, int column) {
  if (rows.IsNull(row, column + 1)) return;
  const double used = rows.Double(row, column + 1);
  planner_.HearOfRoom(rows.Text(row, column));
  Use& use = uses_[std::string(rows.Text(row, column))];
  use.excess_s += std::max(used, kMinCostSeconds) - rows.Double(row, column + 2);
  if (used <= 0) return;
  ++use.runs;
  use.used_s += used;
}

std::optional<BoardClaim> PgBoard::PassOn(ClaimId claim, absl::Time now) {
  const absl::StatusOr<Rows> rows = sessions_.Run(
      kOnce, "SELECT next_job, tenant, used_s, charged_s FROM pass_claim_on($1, $2, $3)",
      {Id(claim), IncarnationOf(claim), ToMicros(now)});
  if (!rows.ok() || rows->empty()) return std::nullopt;
  const MutexLock lock(mutex_);
  AddUse(*rows, 0, 1);
  const auto found = held_.find(claim);
  if (found == held_.end() || rows->IsNull(0, 0)) return std::nullopt;
  found->second.claim.fence = 0;
  found->second.claim.job_id = std::string(rows->Text(0, 0));
  return found->second.claim;
}

std::vector<std::string> PgBoard::Close(ClaimId claim, absl::Time now) {
  std::vector<std::string> followers;
  const absl::StatusOr<Rows> rows = sessions_.Run(
      kOnce, "SELECT follower, tenant, used_s, charged_s FROM close_claim($1, $2, $3)",
      {Id(claim), IncarnationOf(claim), ToMicros(now)});
  if (!rows.ok()) return followers;  // they return to their places with the end
  {
    const MutexLock lock(mutex_);
    for (size_t row = 0; row < rows->size(); ++row) {
      if (rows->IsNull(row, 0)) {
        AddUse(*rows, row, 1);
      } else {
        followers.emplace_back(rows->Text(row, 0));
      }
    }
  }
  Wake();
  return followers;
}

bool PgBoard::EndInDatabase(ClaimId claim, int64_t incarnation, absl::Time now) {
  const absl::StatusOr<Rows> rows = sessions_.Run(
      Sessions::Repeat::kRepeatable, "SELECT tenant, used_s, charged_s FROM end_claim($1, $2, $3)",
      {Id(claim), incarnation, ToMicros(now)});
  if (!rows.ok()) return false;
  const MutexLock lock(mutex_);
  if (!rows->empty()) AddUse(*rows, 0, 0);
  return true;
}

void PgBoard::End(ClaimId claim, absl::Time now) {
  const int64_t incarnation = IncarnationOf(claim);
  const bool is_made = EndInDatabase(claim, incarnation, now);
  {
    const MutexLock lock(mutex_);
    held_.erase(claim);
    if (!is_made) to_end_[claim] = incarnation;
    planner_.HearOfAnything();  // its job may have returned to its place
  }
  Wake();
}

std::vector<BoardClaim> PgBoard::Expired(absl::string_view owner, absl::Time now) const {
  std::vector<BoardClaim> claims;
  if (owner != node_->name()) return claims;
  const int64_t incarnation = node_->incarnation();
  {
    const MutexLock lock(mutex_);
    for (const auto& [id, held] : held_) {
      if (held.incarnation == incarnation && now - held.renewed >= options_.ttl) {
        claims.push_back(held.claim);
      }
    }
  }
  if (!Begin(options_.care_period, expired_)) return claims;
  // Claims behind stored leases, which no run of this node renews.
  const absl::StatusOr<Rows> rows = sessions_.Read(
      "SELECT id, job_id, fence FROM claim WHERE incarnation = $1 AND held_until_us <= $2 "
      "ORDER BY id",
      {incarnation, ToMicros(now)});
  for (size_t row = 0; rows.ok() && row < rows->size(); ++row) {
    claims.push_back({.id = static_cast<ClaimId>(rows->Int(row, 0)),
                      .owner = std::string(owner),
                      .job_id = std::string(rows->Text(row, 1)),
                      .fence = static_cast<uint64_t>(rows->Int(row, 2))});
  }
  return claims;
}

std::vector<BoardClaim> PgBoard::Take(absl::string_view owner, bool own, absl::Time now) {
  std::vector<BoardClaim> claims;
  const absl::StatusOr<Rows> rows = sessions_.Run(
      kOnce, "SELECT claim_id, taken_job, taken_fence FROM take_claims($1, $2, $3, $4)",
      {node_->incarnation(), owner, own, ToMicros(now - options_.ttl)});
  for (size_t row = 0; rows.ok() && row < rows->size(); ++row) {
    claims.push_back({.id = static_cast<ClaimId>(rows->Int(row, 0)),
                      .owner = std::string(owner),
                      .job_id = std::string(rows->Text(row, 1)),
                      .fence = static_cast<uint64_t>(rows->Int(row, 2))});
  }
  return claims;
}

std::vector<BoardClaim> PgBoard::TakeExpired(absl::string_view owner, absl::Time now) {
  if (!Begin(options_.common_period, taken_over_)) return {};
  return Take(owner, /*own=*/false, now);
}

// Each call takes some of them.
std::vector<BoardClaim> PgBoard::TakeOwn(absl::string_view owner, absl::Time now) {
  std::vector<BoardClaim> claims;
  for (int takes = 0; takes < kMaxTakes; ++takes) {
    for (BoardClaim& claim : Take(owner, /*own=*/true, now)) claims.push_back(std::move(claim));
    const absl::StatusOr<Rows> left =
        sessions_.Read("SELECT EXISTS (SELECT 1 FROM claim WHERE owner = $1 AND incarnation <> $2)",
                       {owner, node_->incarnation()});
    if (!left.ok() || !left->Bool(0, 0)) break;
  }
  return claims;
}

std::vector<BoardClaim> PgBoard::Orphaned(absl::string_view owner) const {
  std::vector<BoardClaim> claims;
  if (owner != node_->name()) return claims;
  const int64_t incarnation = node_->incarnation();
  IntArray held;
  {
    const MutexLock lock(mutex_);
    for (const auto& [id, one] : held_) {
      if (one.incarnation == incarnation) held.push_back(Id(id));
    }
  }
  absl::StatusOr<Rows> rows = Rows();
  if (!held.empty() && Begin(options_.care_period, orphaned_)) {
    rows = sessions_.Read(
        "SELECT c.id FROM claim c WHERE c.id = ANY ($2) AND c.incarnation + 0 = $1 AND c.fence <> "
        "0 "
        "AND NOT EXISTS "
        "(SELECT 1 FROM job_queue q WHERE q.job_id = c.job_id AND q.held_by = c.id) ORDER BY c.id",
        {incarnation, held});
  }
  const MutexLock lock(mutex_);
  for (size_t row = 0; rows.ok() && row < rows->size(); ++row) {
    const auto found = held_.find(static_cast<ClaimId>(rows->Int(row, 0)));
    if (found != held_.end()) claims.push_back(found->second.claim);
  }
  // Claims of an incarnation that was declared dead are other nodes' now.
  for (const auto& [id, held] : held_) {
    if (held.incarnation != incarnation) claims.push_back(held.claim);
  }
  return claims;
}

std::vector<std::string> PgBoard::Due(absl::Time now) const {
  std::vector<std::string> due;
  if (!Begin(options_.common_period, due_)) return due;
  const absl::StatusOr<Rows> rows =
      sessions_.Read("SELECT job_id FROM job_queue WHERE due_us <= $1 ORDER BY due_us LIMIT $2",
                     {ToMicros(now), kMaxDue});
  for (size_t row = 0; rows.ok() && row < rows->size(); ++row) {
    due.emplace_back(rows->Text(row, 0));
  }
  return due;
}

std::optional<BoardView> PgBoard::Look(absl::string_view job_id) const {
  return queue_places_.Look(job_id);
}

std::optional<BoardView> PgBoard::LookAtNew(absl::string_view /*job_id*/,
                                            absl::string_view tenant) const {
  return queue_places_.LookAtNew(tenant);
}

jobs::JobBoard::Counts PgBoard::GetCounts() const {
  Counts counts;
  for (const auto& [tenant, some] : CountsByTenant()) {
    counts.queued += some.queued;
    counts.running += some.running;
  }
  return counts;
}

std::map<std::string, jobs::JobBoard::Counts> PgBoard::CountsByTenant() const {
  return queue_places_.CountsByTenant();
}

// Ends claims of this incarnation that nobody here knows at two looks: the answer of Claim was
// lost.
void PgBoard::EndUnknownClaims(absl::Time now) {
  const int64_t incarnation = node_->incarnation();
  const absl::StatusOr<Rows> rows = sessions_.Read(
      "SELECT id FROM claim WHERE incarnation = $1 AND held_until_us IS NULL", {incarnation});
  if (!rows.ok()) return;
  std::vector<ClaimId> to_end;
  {
    const MutexLock lock(mutex_);
    std::set<ClaimId> unknown;
    for (size_t row = 0; row < rows->size(); ++row) {
      const auto id = static_cast<ClaimId>(rows->Int(row, 0));
      if (held_.contains(id)) continue;
      if (unknown_.contains(id)) to_end.push_back(id);
      unknown.insert(id);
    }
    unknown_ = std::move(unknown);
  }
  for (const ClaimId id : to_end) EndInDatabase(id, incarnation, now);
}

void PgBoard::Maintain(absl::Time now) {
  StorePolicies();
  std::map<std::string, Use> uses;
  std::map<ClaimId, int64_t> to_end;
  bool looks = false;
  {
    const MutexLock lock(mutex_);
    uses.swap(uses_);
    to_end.swap(to_end_);
    looks = std::chrono::steady_clock::now() >= next_look_;
    if (looks) next_look_ = SteadyTimeAfter(kLookPeriod);
  }
  if (!uses.empty()) {
    TextArray tenants;
    IntArray excess_us, runs, used_us;
    for (const auto& [tenant, use] : uses) {
      tenants.push_back(tenant);
      excess_us.push_back(std::llround(use.excess_s * kMicrosPerSecond));
      runs.push_back(use.runs);
      used_us.push_back(std::llround(use.used_s * kMicrosPerSecond));
    }
    // A charge that is lost makes no job wait for ever.
    sessions_
        .Run(kOnce, "SELECT charge_tenants($1, $2, $3, $4)", {tenants, excess_us, runs, used_us})
        .status()
        .IgnoreError();
  }
  for (const auto& [claim, incarnation] : to_end) {
    if (EndInDatabase(claim, incarnation, now)) continue;
    const MutexLock lock(mutex_);
    to_end_[claim] = incarnation;
  }
  if (looks) EndUnknownClaims(now);
  queue_places_.CountWhereAsked();
}

}  // namespace npuc::pg
