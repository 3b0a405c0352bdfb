#include "server/jobs/job_service.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "server/jobs/service_error.h"

namespace npuc {
namespace {

constexpr uint64_t kIdRandomMask = (uint64_t{1} << 40) - 1;

absl::Status RequestIdReused(const Job& job) {
  return ServiceError(
      absl::StatusCode::kAlreadyExists,
      absl::StrCat("request id '", Printable(job.request_id, 64),
                   "' was used with a different request, for job ", job.id, "; use a fresh id"),
      {.reason = "REQUEST_ID_REUSED", .metadata = {{"job_id", job.id}}});
}

}  // namespace

JobService::JobService(JobServiceOptions options, JobStore* store, JobQueue* queue)
    : options_(std::move(options)), store_(store), queue_(queue) {}

std::shared_ptr<JobService::Entry> JobService::FindEntry(absl::string_view job_id) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = live_.find(std::string(job_id));
  return found == live_.end() ? nullptr : found->second;
}

void JobService::AddLive(const std::shared_ptr<Entry>& entry, const Job& job) {
  std::lock_guard<std::mutex> lock(mutex_);
  live_[job.id] = entry;
  deadlines_.emplace(job.deadline, job.id);
}

void JobService::Enqueue(const Job& job, bool reserved) {
  queue_->Push({job.id, job.spec.priority, job.accept_order}, reserved);
  // Taking the lock orders this after a waiter's look at the queue, so that none sleeps through it.
  { std::lock_guard<std::mutex> lock(mutex_); }
  work_.notify_one();
}

std::pair<std::string, uint64_t> JobService::NextIdAndOrder(absl::Time now) {
  std::lock_guard<std::mutex> lock(mutex_);
  // Ids ascend even where the clock does not: then, and within a millisecond, the random part is
  // counted up.
  const int64_t now_ms = absl::ToUnixMillis(now);
  if (now_ms > last_id_ms_) {
    last_id_ms_ = now_ms;
    last_id_high_ = options_.random() & kIdRandomMask;
    last_id_low_ = options_.random() & kIdRandomMask;
  } else if (last_id_low_ == kIdRandomMask) {
    last_id_low_ = 0;
    if (last_id_high_ == kIdRandomMask) ++last_id_ms_;
    last_id_high_ = (last_id_high_ + 1) & kIdRandomMask;
  } else {
    ++last_id_low_;
  }
  return {MakeJobId(absl::FromUnixMillis(last_id_ms_), last_id_high_, last_id_low_), next_order_++};
}

absl::Status JobService::RecoverJob(Job job, const std::function<void(const Job&)>& visit) {
  if (job.state == JobState::kRunning) {
    ASSIGN_OR_RETURN(JobChange change,
                     LoseLease(job, job.fence, LossKind::kDaemon, "the daemon was restarted",
                               options_.retry, {}, options_.now()));
    RETURN_IF_ERROR(store_->Apply(change));
    job = std::move(change.job);
  }
  if (IsTerminal(job.state)) return absl::OkStatus();
  next_order_ = std::max(next_order_, job.accept_order + 1);
  if (visit) visit(job);
  auto entry = std::make_shared<Entry>();
  entry->job = std::make_shared<const Job>(std::move(job));
  AddLive(entry, *entry->job);
  Enqueue(*entry->job, /*reserved=*/false);
  return absl::OkStatus();
}

absl::Status JobService::Recover(const std::function<void(const Job&)>& visit) {
  ASSIGN_OR_RETURN(const JobPage newest, store_->List({.limit = 1}));
  if (!newest.jobs.empty()) {
    // Ids go on above the newest one even where the clock went back in between.
    last_id_ms_ = std::max(absl::ToUnixMillis(newest.jobs[0].create_time),
                           absl::ToUnixMillis(options_.now())) +
                  1;
  }
  std::vector<Job> live;
  RETURN_IF_ERROR(store_->ForEachLive([&](Job job) {
    live.push_back(std::move(job));
    return absl::OkStatus();
  }));
  for (Job& job : live) RETURN_IF_ERROR(RecoverJob(std::move(job), visit));
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Job>> JobService::FindSubmitted(
    absl::string_view request_id, absl::string_view request_sha256) const {
  if (request_id.empty()) return nullptr;
  ASSIGN_OR_RETURN(const std::optional<std::string> owner, store_->FindRequest(request_id));
  if (!owner.has_value()) return nullptr;
  // The store and not Get: a change is stored a moment before its entry shows it.
  ASSIGN_OR_RETURN(Job job, store_->Read(*owner));
  if (job.request_sha256 != request_sha256) return RequestIdReused(job);
  return std::make_shared<const Job>(std::move(job));
}

absl::StatusOr<JobService::Submitted> JobService::Submit(NewJob request) {
  const std::string request_id = request.request_id;
  const std::string request_sha256 = request.request_sha256;
  ASSIGN_OR_RETURN(std::shared_ptr<const Job> earlier, FindSubmitted(request_id, request_sha256));
  if (earlier != nullptr) return Submitted{std::move(earlier), true};

  const bool waits = !request.cached.has_value();
  if (waits) RETURN_IF_ERROR(queue_->Reserve());
  const absl::Time now = options_.now();
  auto [id, order] = NextIdAndOrder(now);
  JobChange change = CreateJob(std::move(request), id, order, now);

  // The entry is there before the job is stored, so that who learns of the job from the store finds
  // it, and waits for this write.
  auto entry = std::make_shared<Entry>();
  std::unique_lock<std::mutex> changing(entry->change);
  if (waits) AddLive(entry, change.job);
  const absl::Time deadline = change.job.deadline;
  absl::StatusOr<std::shared_ptr<const Job>> stored = Store(*entry, std::move(change));
  if (!stored.ok()) {
    if (waits) {
      queue_->Release();
      std::lock_guard<std::mutex> lock(mutex_);
      live_.erase(id);
      deadlines_.erase({deadline, id});
    }
    changing.unlock();
    if (!absl::IsAlreadyExists(stored.status())) return stored.status();
    ASSIGN_OR_RETURN(earlier, FindSubmitted(request_id, request_sha256));
    if (earlier == nullptr) return absl::InternalError("a request id is taken by no job");
    return Submitted{std::move(earlier), true};
  }
  // Still under `change`: a cancel of the new job comes after it is in the queue.
  if (waits) Enqueue(**stored, /*reserved=*/true);
  changing.unlock();
  hub_.Notify(id);
  return Submitted{*std::move(stored), false};
}

absl::StatusOr<std::shared_ptr<const Job>> JobService::Store(Entry& entry, JobChange change) {
  RETURN_IF_ERROR(store_->Apply(change));
  auto job = std::make_shared<const Job>(std::move(change.job));
  std::lock_guard<std::mutex> lock(entry.read);
  entry.job = job;
  return job;
}

void JobService::Tell(const Job* before, const Job& after) {
  const bool was_running = before->state == JobState::kRunning;
  const bool is_running = after.state == JobState::kRunning;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    running_ += (is_running ? 1 : 0) - (was_running ? 1 : 0);
    if (IsTerminal(after.state)) {
      live_.erase(after.id);
      deadlines_.erase({after.deadline, after.id});
    }
  }
  if (IsTerminal(after.state)) {
    queue_->Remove(after.id);
  } else if (was_running && after.state == JobState::kQueued) {
    Enqueue(after, /*reserved=*/false);
  }
}

absl::StatusOr<std::shared_ptr<const Job>> JobService::Transit(absl::string_view job_id,
                                                               const Step& step) {
  const std::shared_ptr<Entry> entry = FindEntry(job_id);
  if (entry == nullptr) {
    ASSIGN_OR_RETURN(Job job, store_->Read(job_id));
    // A job that is not live has ended, and no transition leaves an ended job; `step` says what
    // its caller is to be told.
    ASSIGN_OR_RETURN(const std::optional<JobChange> change, step(job));
    if (change.has_value()) {
      return absl::InternalError(absl::StrCat("job ", job_id, " is stored as ",
                                              JobStateName(job.state), " but not known"));
    }
    return std::make_shared<const Job>(std::move(job));
  }
  std::unique_lock<std::mutex> changing(entry->change);
  const std::shared_ptr<const Job> before = entry->Get();
  if (before == nullptr) return JobNotFound(job_id);  // its submit failed
  ASSIGN_OR_RETURN(std::optional<JobChange> change, step(*before));
  if (!change.has_value()) return before;
  ASSIGN_OR_RETURN(std::shared_ptr<const Job> after, Store(*entry, *std::move(change)));
  Tell(before.get(), *after);
  changing.unlock();
  hub_.Notify(job_id);
  if (IsTerminal(after->state) && end_listener_) end_listener_(*after);
  return after;
}

absl::StatusOr<std::optional<JobService::Leased>> JobService::TryLease() {
  while (std::optional<QueuedJob> next = queue_->Pop()) {
    uint64_t fence = 0;
    const auto job = Transit(next->id, [&](const Job& current) {
      std::optional<JobChange> change = LeaseJob(current, options_.now());
      if (change.has_value()) fence = change->job.fence;
      return absl::StatusOr<std::optional<JobChange>>(std::move(change));
    });
    if (!job.ok()) {
      queue_->Push(*std::move(next), /*reserved=*/false);
      return job.status();
    }
    if (fence != 0) return Leased{{.job_id = (*job)->id, .fence = fence}, *job};
    // It ended between Pop and here: take the next one.
  }
  return std::nullopt;
}

absl::StatusOr<std::optional<JobService::Leased>> JobService::WaitAndLease() {
  while (true) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      work_.wait(lock, [&] { return !leasing_ || queue_->size() > 0; });
      if (!leasing_) return std::nullopt;
    }
    ASSIGN_OR_RETURN(std::optional<Leased> leased, TryLease());
    if (leased.has_value()) return leased;
  }
}

void JobService::StopLeasing() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    leasing_ = false;
  }
  work_.notify_all();
}

absl::Status JobService::Append(const Lease& lease, std::vector<EventBody> bodies) {
  return Transit(lease.job_id,
                 [&](const Job& job) {
                   return AppendToJob(job, lease.fence, std::move(bodies), options_.now());
                 })
      .status();
}

absl::Status JobService::Finish(const Lease& lease, std::vector<EventBody> bodies,
                                JobResult result) {
  return Transit(lease.job_id,
                 [&](const Job& job) -> absl::StatusOr<std::optional<JobChange>> {
                   return FinishJob(job, lease.fence, std::move(bodies), std::move(result),
                                    options_.now());
                 })
      .status();
}

absl::Status JobService::Lose(const Lease& lease, LossKind kind, absl::string_view why,
                              std::vector<EventBody> bodies) {
  return Transit(lease.job_id,
                 [&](const Job& job) -> absl::StatusOr<std::optional<JobChange>> {
                   return LoseLease(job, lease.fence, kind, why, options_.retry, std::move(bodies),
                                    options_.now());
                 })
      .status();
}

bool JobService::IsCurrent(const Lease& lease) const {
  const std::shared_ptr<Entry> entry = FindEntry(lease.job_id);
  if (entry == nullptr) return false;
  const std::shared_ptr<const Job> job = entry->Get();
  return job != nullptr && job->state == JobState::kRunning && job->fence == lease.fence;
}

absl::StatusOr<std::shared_ptr<const Job>> JobService::Cancel(absl::string_view job_id,
                                                              absl::string_view reason) {
  return Transit(job_id, [&](const Job& job) -> absl::StatusOr<std::optional<JobChange>> {
    return CancelJob(job, reason, options_.now());
  });
}

absl::Status JobService::ExpireDue() {
  const absl::Time now = options_.now();
  std::vector<std::string> due;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [deadline, id] : deadlines_) {
      if (deadline > now) break;
      due.push_back(id);
    }
  }
  absl::Status first_error;
  for (const std::string& id : due) {
    first_error.Update(Transit(id, [&](const Job& job) -> absl::StatusOr<std::optional<JobChange>> {
                         return ExpireJob(job, now);
                       }).status());
  }
  return first_error;
}

absl::StatusOr<std::shared_ptr<const Job>> JobService::Get(absl::string_view job_id) const {
  if (const std::shared_ptr<Entry> entry = FindEntry(job_id)) {
    if (std::shared_ptr<const Job> job = entry->Get()) return job;
  }
  ASSIGN_OR_RETURN(Job job, store_->Read(job_id));
  return std::make_shared<const Job>(std::move(job));
}

JobService::Counts JobService::GetCounts() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return {.queued = queue_->size(), .running = running_};
}

}  // namespace npuc
