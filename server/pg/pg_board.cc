#include "server/pg/pg_board.h"

#include <algorithm>
#include <limits>
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
constexpr int kMaxTakes = 1000;
constexpr double kMinCostSeconds = 0.001;  // of a start, as FairQueue has it
constexpr double kFirstMeanSeconds = 2;    // of a tenant without runs, as tables.sql has it
constexpr std::chrono::seconds kCountsAge(1);
constexpr std::chrono::seconds kLookPeriod(5);
constexpr int64_t kMaxDue = 200;

// Every slot ends a job of the mean time again and again.
absl::Duration WaitFor(int64_t ahead, int64_t running, int64_t slots, double mean_s) {
  const int64_t must_end = std::max<int64_t>(0, ahead + 1 + running - slots);
  return absl::Seconds(mean_s * static_cast<double>(must_end) / static_cast<double>(slots));
}

int64_t Id(ClaimId claim) { return static_cast<int64_t>(claim); }

}  // namespace

PgBoard::PgBoard(Sessions* sessions, Node* node, PgBoardOptions options)
    : node_(node), options_(std::move(options)), sessions_(WithoutSync(sessions->options())) {}

PgBoard::~PgBoard() {
  {
    const MutexLock lock(poll_mutex_);
    stopping_ = true;
  }
  stop_.NotifyAll();
  if (poller_.joinable()) poller_.join();
}

void PgBoard::StartPolling(absl::Duration period) {
  poller_ = std::thread([this, period] {
    while (true) {
      {
        const MutexLock lock(poll_mutex_);
        const SteadyTime next = SteadyTimeAfter(absl::ToChronoNanoseconds(period));
        while (!stopping_ && stop_.WaitUntil(poll_mutex_, next)) {
        }
        if (stopping_) return;
      }
      Maintain(node_->ClusterNow());
      Wake();
    }
  });
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
  Wake();
}

void PgBoard::RefreshPolicies() {
  std::set<std::string, std::less<>> tenants;
  {
    const MutexLock lock(mutex_);
    tenants.swap(tenants_);
  }
  for (const std::string& tenant : tenants) AddTenant(tenant);
}

// Makes sure that the tenant's row has its policy.
void PgBoard::AddTenant(absl::string_view tenant) {
  {
    const MutexLock lock(mutex_);
    if (tenants_.contains(tenant)) return;
  }
  scheduler::TenantPolicy policy;
  if (options_.policy) policy = options_.policy(tenant);
  if (!(policy.weight > 0)) policy.weight = 1.0;
  const absl::StatusOr<Rows> rows =
      sessions_.Run(Sessions::Repeat::kRepeatable,
                    "INSERT INTO tenant (tenant, weight, max_running, virtual_s) "
                    "VALUES ($1, $2, $3, coalesce((SELECT max(start_s) FROM tenant), 0)) "
                    "ON CONFLICT (tenant) DO UPDATE SET weight = $2, max_running = $3",
                    {tenant, policy.weight, policy.max_running});
  if (!rows.ok()) return;
  const MutexLock lock(mutex_);
  tenants_.insert(std::string(tenant));
}

absl::Status PgBoard::Reserve(absl::string_view tenant) {
  AddTenant(tenant);
  const std::map<std::string, Counts> counts = ReadCounts();
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
  // A paused node has work in pinned jobs alone.
  if (!is_paused_ || !job.pinned_to.empty()) Wake();
}

bool PgBoard::Has(absl::string_view job_id) const {
  const absl::StatusOr<Rows> rows =
      sessions_.Read("SELECT EXISTS (SELECT 1 FROM job_queue WHERE job_id = $1)", {job_id});
  return !rows.ok() || rows->Bool(0, 0);
}

std::optional<BoardClaim> PgBoard::Claim(absl::string_view owner, absl::Time now) {
  for (int tries = 0; tries < kMaxClaimTries && node_->IsHeard(); ++tries) {
    const int64_t incarnation = node_->incarnation();
    const absl::StatusOr<Rows> rows =
        sessions_.Run(kOnce, "SELECT claim_id, claimed_job FROM claim_next($1, $2, $3)",
                      {incarnation, owner, is_paused_.load()});
    if (!rows.ok() || rows->empty()) return std::nullopt;
    if (rows->IsNull(0, 0)) continue;
    const BoardClaim claim{.id = static_cast<ClaimId>(rows->Int(0, 0)),
                           .owner = std::string(owner),
                           .job_id = std::string(rows->Text(0, 1))};
    {
      const MutexLock lock(mutex_);
      held_[claim.id] = {.claim = claim, .incarnation = incarnation, .renewed = now};
    }
    Wake();  // there may be more
    return claim;
  }
  return std::nullopt;
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
  const absl::StatusOr<Rows> rows = sessions_.Read(
      "SELECT c.id FROM claim c WHERE c.incarnation = $1 AND c.fence <> 0 AND NOT EXISTS "
      "(SELECT 1 FROM job_queue q WHERE q.job_id = c.job_id AND q.held_by = c.id) ORDER BY c.id",
      {incarnation});
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
  const absl::StatusOr<Rows> rows =
      sessions_.Read("SELECT job_id FROM job_queue WHERE due_us <= $1 ORDER BY due_us LIMIT $2",
                     {ToMicros(now), kMaxDue});
  for (size_t row = 0; rows.ok() && row < rows->size(); ++row) {
    due.emplace_back(rows->Text(row, 0));
  }
  return due;
}

std::optional<BoardView> PgBoard::Look(absl::string_view job_id) const {
  const absl::StatusOr<Rows> rows = sessions_.Read(
      "SELECT place, ahead, limited, running, slots, mean_s FROM look_at_job($1)", {job_id});
  if (!rows.ok() || rows->empty()) return std::nullopt;
  constexpr BoardView::Place kPlaces[] = {BoardView::Place::kQueue, BoardView::Place::kClaimed,
                                          BoardView::Place::kFollows, BoardView::Place::kRuns};
  BoardView view{.place = kPlaces[(rows->Int(0, 0) - 1) & 3]};
  if (view.place != BoardView::Place::kQueue) return view;
  view.queue.position = rows->Int(0, 1);
  view.queue.tenant_limited = rows->Bool(0, 2);
  view.queue.estimated_wait =
      WaitFor(view.queue.position, rows->Int(0, 3), rows->Int(0, 4), rows->Double(0, 5));
  return view;
}

// By the counts of the last second, as if all tenants had the same weight.
std::optional<BoardView> PgBoard::LookAtNew(absl::string_view /*job_id*/,
                                            absl::string_view tenant) const {
  const MutexLock lock(mutex_);
  BoardView view{.place = BoardView::Place::kQueue};
  const auto own = counts_.find(std::string(tenant));
  const int64_t before = own == counts_.end() ? 0 : own->second.queued;
  int64_t running = 0;
  for (const auto& [name, count] : counts_) {
    view.queue.position += name == tenant ? before : std::min(count.queued, before + 1);
    running += count.running;
  }
  const auto mean = means_.find(std::string(tenant));
  view.queue.estimated_wait = WaitFor(view.queue.position, running, slots_,
                                      mean == means_.end() ? kFirstMeanSeconds : mean->second);
  return view;
}

std::map<std::string, jobs::JobBoard::Counts> PgBoard::ReadCounts() const {
  {
    const MutexLock lock(mutex_);
    if (std::chrono::steady_clock::now() < counts_until_) return counts_;
    counts_until_ = SteadyTimeAfter(kCountsAge);
  }
  const absl::StatusOr<Rows> rows = sessions_.Read(
      "SELECT c.tenant, c.queued, c.running, t.mean_s, "
      "(SELECT greatest(coalesce(sum(n.slots), 0), 1) FROM node n WHERE n.state = 1) FROM ("
      "SELECT tenant, sum(queued)::bigint AS queued, sum(running)::bigint AS running FROM ("
      "SELECT tenant, count(*) AS queued, 0 AS running FROM job_queue WHERE state <> 3 "
      "GROUP BY tenant UNION ALL "
      "SELECT tenant, 0, count(*) FROM claim WHERE fence <> 0 AND has_slot GROUP BY tenant"
      ") AS both_kinds GROUP BY tenant) AS c LEFT JOIN tenant t USING (tenant)",
      {});
  const MutexLock lock(mutex_);
  if (!rows.ok()) return counts_;
  counts_.clear();
  means_.clear();
  for (size_t row = 0; row < rows->size(); ++row) {
    const std::string tenant(rows->Text(row, 0));
    counts_[tenant] = {.queued = rows->Int(row, 1), .running = rows->Int(row, 2)};
    if (!rows->IsNull(row, 3)) means_[tenant] = rows->Double(row, 3);
    slots_ = rows->Int(row, 4);
  }
  return counts_;
}

jobs::JobBoard::Counts PgBoard::GetCounts() const {
  Counts counts;
  for (const auto& [tenant, some] : ReadCounts()) {
    counts.queued += some.queued;
    counts.running += some.running;
  }
  return counts;
}

std::map<std::string, jobs::JobBoard::Counts> PgBoard::CountsByTenant() const {
  return ReadCounts();
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
  for (const auto& [tenant, use] : uses) {
    // A charge that is lost makes no job wait for ever.
    sessions_
        .Run(kOnce, "SELECT charge_tenant($1, $2, $3, $4)",
             {absl::string_view(tenant), use.excess_s, use.runs, use.used_s})
        .status()
        .IgnoreError();
  }
  for (const auto& [claim, incarnation] : to_end) {
    if (EndInDatabase(claim, incarnation, now)) continue;
    const MutexLock lock(mutex_);
    to_end_[claim] = incarnation;
  }
  if (looks) EndUnknownClaims(now);
}

}  // namespace npuc::pg
