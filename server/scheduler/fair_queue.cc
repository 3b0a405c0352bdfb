#include "server/scheduler/fair_queue.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <ext/pb_ds/assoc_container.hpp>
#include <ext/pb_ds/tree_policy.hpp>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/mutex.h"
#include "server/jobs/service_error.h"

namespace npuc::scheduler {
namespace {

// The mean run time before any job has run, and the share of a run in it later.
constexpr double kFirstMeanSeconds = 2.0;
constexpr double kMeanShare = 0.1;
// What a start costs at least, so that jobs that take no time do not stand before all others.
constexpr double kMinCostSeconds = 0.001;

// What the jobs of a tenant are ordered by, the first to start first.
struct Place {
  int64_t rank_us = 0;  // time of acceptance less what its priority is worth
  uint64_t accept_order = 0;

  auto operator<=>(const Place&) const = default;
};

// A tree that knows how many keys are before a key.
using OrderedPlaces =
    __gnu_pbds::tree<Place, std::string, std::less<Place>, __gnu_pbds::rb_tree_tag,
                     __gnu_pbds::tree_order_statistics_node_update>;

struct Tenant {
  std::string name;
  TenantPolicy policy;
  OrderedPlaces places;  // in order
  int64_t parked = 0;
  int64_t reserved = 0;
  int64_t running = 0;
  double virtual_seconds = 0.0;
  uint64_t number = 0;          // in order of coming; decides between equals
  std::vector<double> charged;  // with what each start under way was charged
  bool ready = false;           // it is in Impl::ready
  double ready_key = 0.0;       // under this

  int64_t waiting() const { return static_cast<int64_t>(places.size()) + parked; }
  bool limited() const { return policy.max_running > 0 && running >= policy.max_running; }
};

struct Waiting {
  jobs::QueuedJob job;
  Place place;
  Tenant* tenant = nullptr;
  bool is_parked = false;
};

}  // namespace

struct FairQueue::Impl {
  explicit Impl(FairQueueOptions given) : options(std::move(given)) {}

  const FairQueueOptions options;
  mutable Mutex mutex;
  std::map<std::string, std::unique_ptr<Tenant>, std::less<>> tenants NPUC_GUARDED_BY(mutex);
  std::unordered_map<std::string, Waiting> waiting NPUC_GUARDED_BY(mutex);  // by job
  // Tenants with a job that may start.
  std::set<std::tuple<double, uint64_t, Tenant*>> ready NPUC_GUARDED_BY(mutex);
  uint64_t next_number NPUC_GUARDED_BY(mutex) = 0;
  int64_t reserved NPUC_GUARDED_BY(mutex) = 0;
  int64_t running NPUC_GUARDED_BY(mutex) = 0;
  double virtual_now NPUC_GUARDED_BY(mutex) = 0.0;  // of the newest start
  double mean_seconds NPUC_GUARDED_BY(mutex) = kFirstMeanSeconds;

  Tenant& TenantOf(absl::string_view name) NPUC_REQUIRES(mutex) {
    std::unique_ptr<Tenant>& slot = tenants[std::string(name)];
    if (slot == nullptr) {
      slot = std::make_unique<Tenant>();
      slot->name = std::string(name);
      slot->virtual_seconds = virtual_now;
      slot->number = next_number++;
      SetPolicy(*slot);
    }
    return *slot;
  }

  void SetPolicy(Tenant& tenant) const {
    if (options.policy) tenant.policy = options.policy(tenant.name);
    if (!(tenant.policy.weight > 0)) tenant.policy.weight = 1.0;
  }

  // Puts the index right after a change of a tenant, and forgets the tenant where nothing is left.
  void Update(Tenant& tenant) NPUC_REQUIRES(mutex) {
    const bool was_ready = tenant.ready;
    if (was_ready) ready.erase({tenant.ready_key, tenant.number, &tenant});
    tenant.ready = !tenant.places.empty() && !tenant.limited();
    if (tenant.ready) {
      if (!was_ready) tenant.virtual_seconds = std::max(tenant.virtual_seconds, virtual_now);
      tenant.ready_key = tenant.virtual_seconds;
      ready.insert({tenant.ready_key, tenant.number, &tenant});
    } else if (tenant.waiting() == 0 && tenant.reserved == 0 && tenant.running == 0 &&
               tenant.virtual_seconds <= virtual_now) {
      tenants.erase(tenants.find(tenant.name));
    }
  }

  // A job leaves what waits.
  jobs::QueuedJob TakeOut(std::unordered_map<std::string, Waiting>::iterator it)
      NPUC_REQUIRES(mutex) {
    Waiting& entry = it->second;
    if (entry.is_parked) {
      --entry.tenant->parked;
    } else {
      entry.tenant->places.erase(entry.place);
    }
    jobs::QueuedJob job = std::move(entry.job);
    waiting.erase(it);
    return job;
  }

  void Start(Tenant& tenant) NPUC_REQUIRES(mutex) {
    virtual_now = std::max(virtual_now, tenant.virtual_seconds);
    tenant.virtual_seconds += mean_seconds / tenant.policy.weight;
    tenant.charged.push_back(mean_seconds);
    ++tenant.running;
    ++running;
  }

  bool HasRoomOfItsOwn(const Tenant& tenant) const {
    const int64_t own = tenant.waiting() + tenant.reserved;
    return tenant.policy.max_queued <= 0 || own < tenant.policy.max_queued;
  }
  // Places that this tenant may see taken, and still get one.
  int64_t PlacesFor(const Tenant& tenant) const {
    const bool is_idle = tenant.waiting() + tenant.reserved == 0;
    return options.max_queued - (is_idle ? 0 : options.kept_for_idle);
  }
  bool HasRoom(const Tenant& tenant) const NPUC_REQUIRES(mutex) {
    return HasRoomOfItsOwn(tenant) &&
           static_cast<int64_t>(waiting.size()) + reserved < PlacesFor(tenant);
  }
  absl::Status WhyNoRoom(const Tenant& tenant) const NPUC_REQUIRES(mutex);
  int64_t PositionOf(const Waiting& entry) const NPUC_REQUIRES(mutex);
};

FairQueue::FairQueue(FairQueueOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}
FairQueue::~FairQueue() = default;

absl::Status FairQueue::Impl::WhyNoRoom(const Tenant& tenant) const {
  if (!HasRoomOfItsOwn(tenant)) {
    const int64_t own = tenant.waiting() + tenant.reserved;
    return jobs::ServiceError(
        absl::StatusCode::kResourceExhausted,
        absl::StrCat("the tenant has ", own, " jobs waiting, at most ", tenant.policy.max_queued,
                     " may; wait for some of them, or cancel some"),
        {.reason = "QUOTA_EXCEEDED",
         .quota_violations = {
             {"queued_jobs", absl::StrCat(own, " of ", tenant.policy.max_queued, " jobs wait")}}});
  }
  const int64_t taken = static_cast<int64_t>(waiting.size()) + reserved;
  const std::string kept =
      options.kept_for_idle > 0
          ? absl::StrCat(", the last ", options.kept_for_idle, " of tenants with none waiting")
          : "";
  return jobs::ServiceError(absl::StatusCode::kResourceExhausted,
                            absl::StrCat("the queue is full: ", taken, " jobs wait, at most ",
                                         options.max_queued, " may", kept, "; try again later"),
                            {.reason = "QUEUE_FULL", .retry_delay = absl::Seconds(5)});
}

absl::Status FairQueue::Reserve(absl::string_view tenant_name) {
  const MutexLock lock(impl_->mutex);
  Tenant& tenant = impl_->TenantOf(tenant_name);
  absl::Status status = impl_->HasRoom(tenant) ? absl::OkStatus() : impl_->WhyNoRoom(tenant);
  if (status.ok()) {
    ++tenant.reserved;
    ++impl_->reserved;
  }
  impl_->Update(tenant);
  return status;
}

void FairQueue::Release(absl::string_view tenant_name) {
  const MutexLock lock(impl_->mutex);
  Tenant& tenant = impl_->TenantOf(tenant_name);
  --tenant.reserved;
  --impl_->reserved;
  impl_->Update(tenant);
}

void FairQueue::Push(jobs::QueuedJob job, bool reserved) {
  const MutexLock lock(impl_->mutex);
  Tenant& tenant = impl_->TenantOf(job.tenant);
  if (reserved) {
    --tenant.reserved;
    --impl_->reserved;
  }
  const Place place{absl::ToUnixMicros(job.create_time) -
                        job.priority * absl::ToInt64Microseconds(impl_->options.ageing),
                    job.accept_order};
  const std::string id = job.id;
  const auto [it, is_new] = impl_->waiting.try_emplace(id);
  if (is_new) {
    it->second = {.job = std::move(job), .place = place, .tenant = &tenant, .is_parked = true};
    ++tenant.parked;
  }
  if (it->second.is_parked) {
    it->second.is_parked = false;
    --tenant.parked;
    tenant.places.insert({it->second.place, id});
  }
  impl_->Update(tenant);
}

std::optional<jobs::QueuedJob> FairQueue::Pop() {
  const MutexLock lock(impl_->mutex);
  if (impl_->ready.empty()) return std::nullopt;
  Tenant& tenant = *std::get<Tenant*>(*impl_->ready.begin());
  jobs::QueuedJob job = impl_->TakeOut(impl_->waiting.find(tenant.places.begin()->second));
  impl_->Start(tenant);
  impl_->Update(tenant);
  return job;
}

bool FairQueue::Take(absl::string_view id) {
  const MutexLock lock(impl_->mutex);
  const auto found = impl_->waiting.find(std::string(id));
  if (found == impl_->waiting.end()) return false;
  Tenant& tenant = *found->second.tenant;
  impl_->TakeOut(found);
  impl_->Start(tenant);
  impl_->Update(tenant);
  return true;
}

void FairQueue::Done(absl::string_view tenant_name, absl::Duration ran) {
  const MutexLock lock(impl_->mutex);
  Tenant& tenant = impl_->TenantOf(tenant_name);
  --tenant.running;
  --impl_->running;
  // Which end belongs to which start does not matter: the sum is right once all have ended.
  const double charged = tenant.charged.back();
  tenant.charged.pop_back();
  const double seconds = std::max(absl::ToDoubleSeconds(ran), kMinCostSeconds);
  tenant.virtual_seconds += (seconds - charged) / tenant.policy.weight;
  if (ran > absl::ZeroDuration()) {
    impl_->mean_seconds += kMeanShare * (seconds - impl_->mean_seconds);
  }
  impl_->Update(tenant);
}

bool FairQueue::Park(absl::string_view id) {
  const MutexLock lock(impl_->mutex);
  const auto found = impl_->waiting.find(std::string(id));
  if (found == impl_->waiting.end() || found->second.is_parked) return false;
  Tenant& tenant = *found->second.tenant;
  tenant.places.erase(found->second.place);
  ++tenant.parked;
  found->second.is_parked = true;
  impl_->Update(tenant);
  return true;
}

bool FairQueue::Remove(absl::string_view id) {
  const MutexLock lock(impl_->mutex);
  const auto found = impl_->waiting.find(std::string(id));
  if (found == impl_->waiting.end()) return false;
  Tenant& tenant = *found->second.tenant;
  impl_->TakeOut(found);
  impl_->Update(tenant);
  return true;
}

// The job of rank r of its tenant starts at a virtual time; so do those of others, as if each took
// the mean time.
int64_t FairQueue::Impl::PositionOf(const Waiting& entry) const {
  const Tenant& own = *entry.tenant;
  const auto rank = static_cast<int64_t>(own.places.order_of_key(entry.place));
  const double start =
      own.virtual_seconds + static_cast<double>(rank) * mean_seconds / own.policy.weight;
  int64_t before = rank;
  for (const auto& [name, tenant] : tenants) {
    if (tenant.get() == &own || !tenant->ready) continue;
    const double ahead = (start - tenant->virtual_seconds) * tenant->policy.weight / mean_seconds;
    if (ahead <= 0) continue;
    before += static_cast<int64_t>(
        std::min(std::ceil(ahead), static_cast<double>(tenant->places.size())));
  }
  return before;
}

std::optional<jobs::QueueView> FairQueue::Look(absl::string_view id) const {
  const MutexLock lock(impl_->mutex);
  const auto found = impl_->waiting.find(std::string(id));
  if (found == impl_->waiting.end() || found->second.is_parked) return std::nullopt;
  jobs::QueueView view;
  view.position = impl_->PositionOf(found->second);
  view.tenant_limited = found->second.tenant->limited();
  // Every slot ends a job of the mean time again and again.
  const int slots = std::max(impl_->options.slots, 1);
  const int64_t must_end = std::max<int64_t>(0, view.position + 1 + impl_->running - slots);
  view.estimated_wait = absl::Seconds(impl_->mean_seconds * static_cast<double>(must_end) / slots);
  return view;
}

int64_t FairQueue::size() const {
  const MutexLock lock(impl_->mutex);
  return static_cast<int64_t>(impl_->waiting.size());
}

bool FairQueue::HasReady() const {
  const MutexLock lock(impl_->mutex);
  return !impl_->ready.empty();
}

void FairQueue::RefreshPolicies() {
  const MutexLock lock(impl_->mutex);
  std::vector<Tenant*> all;
  for (const auto& [name, tenant] : impl_->tenants) all.push_back(tenant.get());
  for (Tenant* tenant : all) {
    impl_->SetPolicy(*tenant);
    impl_->Update(*tenant);
  }
}

FairQueue::TenantCounts FairQueue::CountsOf(absl::string_view tenant) const {
  const MutexLock lock(impl_->mutex);
  const auto found = impl_->tenants.find(tenant);
  if (found == impl_->tenants.end()) return {};
  return {.queued = found->second->waiting(), .running = found->second->running};
}

std::map<std::string, FairQueue::TenantCounts> FairQueue::Counts() const {
  std::map<std::string, TenantCounts> counts;
  const MutexLock lock(impl_->mutex);
  for (const auto& [name, tenant] : impl_->tenants) {
    counts[name] = {.queued = tenant->waiting(), .running = tenant->running};
  }
  return counts;
}

std::unique_ptr<jobs::JobQueue> MakeFairQueue(int64_t max_queued, int slots) {
  return std::make_unique<FairQueue>(FairQueueOptions{.max_queued = max_queued, .slots = slots});
}

}  // namespace npuc::scheduler
