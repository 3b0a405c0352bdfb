#include "server/jobs/job_service.h"

#include <algorithm>
#include <future>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "server/jobs/service_error.h"

namespace npuc {
namespace {

constexpr uint64_t kIdRandomMask = (uint64_t{1} << 40) - 1;

// Whoever changes a job that others change, too, begins again so often at most. Within one daemon
// once is enough; more would be another one's writes.
constexpr int kMaxTries = 8;

// Jobs whose submit failed are looked after up to this many; the next start finds the others.
constexpr size_t kMaxUnsure = 10000;

constexpr size_t kPruneBatch = 1000;
constexpr absl::Duration kPrunePeriod = absl::Minutes(1);

absl::Status RequestIdReused(const Job& job) {
  return ServiceError(
      absl::StatusCode::kAlreadyExists,
      absl::StrCat("request id '", Printable(job.request_id, 64),
                   "' was used with a different request, for job ", job.id, "; use a fresh id"),
      {.reason = "REQUEST_ID_REUSED", .metadata = {{"job_id", job.id}}});
}

// The store has said that nothing was changed.
bool IsDefinite(const absl::Status& status) {
  return absl::IsAborted(status) || absl::IsAlreadyExists(status);
}

}  // namespace

absl::string_view JobWaitReasonName(JobWait::Reason reason) {
  switch (reason) {
    case JobWait::Reason::kNextInLine:
      return "NEXT_IN_LINE";
    case JobWait::Reason::kJobsAhead:
      return "JOBS_AHEAD";
    case JobWait::Reason::kTenantLimit:
      return "TENANT_LIMIT";
    case JobWait::Reason::kEqualJob:
      return "EQUAL_JOB";
  }
  return "UNKNOWN";
}

JobService::JobService(JobServiceOptions options, JobStore* store, JobQueue* queue)
    : options_(std::move(options)), store_(store), queue_(queue) {}

std::shared_ptr<JobService::Entry> JobService::FindEntry(absl::string_view job_id) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = live_.find(std::string(job_id));
  return found == live_.end() ? nullptr : found->second.entry;
}

bool JobService::AddLive(const std::shared_ptr<Entry>& entry, const LiveJob& job) {
  const absl::Time due = SteadyNow() + (job.deadline - options_.now());
  std::lock_guard<std::mutex> lock(mutex_);
  const auto [it, is_new] = live_.try_emplace(job.id);
  if (!is_new) return false;
  it->second = {.entry = entry,
                .place = {.id = job.id,
                          .priority = job.priority,
                          .accept_order = job.accept_order,
                          .tenant = job.tenant,
                          .create_time = job.create_time},
                .key = job.flight_key,
                .due = due};
  due_.emplace(due, job.id);
  return true;
}

void JobService::ForgetLocked(const std::string& job_id) {
  const auto found = live_.find(job_id);
  if (found == live_.end()) return;
  const Live& live = found->second;
  if (!live.key.empty()) {
    if (const auto flight = flights_.find(live.key); flight != flights_.end()) {
      flight->second->followers.erase(live.place.accept_order);
    }
    if (const auto equal = waiting_.find(live.key); equal != waiting_.end()) {
      equal->second.erase(live.place.accept_order);
      if (equal->second.empty()) waiting_.erase(equal);
    }
  }
  due_.erase({live.due, job_id});
  queue_->Remove(job_id);
  live_.erase(found);
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

absl::Status JobService::RecoverJob(const LiveJob& job,
                                    const std::function<void(const LiveJob&)>& visit) {
  next_order_ = std::max(next_order_, job.accept_order + 1);
  auto entry = std::make_shared<Entry>();
  entry->content = Entry::Content::kUnread;
  if (job.state == JobState::kRunning) {
    ASSIGN_OR_RETURN(const Job stored, store_->Read(job.id));
    ASSIGN_OR_RETURN(JobChange change,
                     LoseLease(stored, stored.fence, LossKind::kDaemon, "the daemon was restarted",
                               options_.retry, {}, options_.now()));
    RETURN_IF_ERROR(store_->ApplyAndWait(change));
    if (IsTerminal(change.job.state)) return absl::OkStatus();
    entry->Set(std::make_shared<const Job>(std::move(change.job)));
  }
  if (visit) visit(job);
  AddLive(entry, job);
  std::lock_guard<std::mutex> lock(mutex_);
  RequeueLocked(job.id);
  return absl::OkStatus();
}

absl::Status JobService::Recover(const std::function<void(const LiveJob&)>& visit) {
  ASSIGN_OR_RETURN(const JobPage newest, store_->List({.limit = 1}));
  if (!newest.jobs.empty()) {
    // Ids go on above the newest one even where the clock went back in between. Its id counts and
    // not its time of acceptance, which is earlier where the clock had gone back before.
    last_id_ms_ = std::max(absl::ToUnixMillis(TimeOfJobId(newest.jobs[0].id)),
                           absl::ToUnixMillis(options_.now())) +
                  1;
    last_id_high_ = options_.random() & kIdRandomMask;
    last_id_low_ = options_.random() & kIdRandomMask;
  }
  // Those that ran change in the store, which must wait for the end of the sweep.
  std::vector<LiveJob> ran;
  RETURN_IF_ERROR(store_->ForEachLive([&](LiveJob job) {
    if (job.state != JobState::kRunning) return RecoverJob(job, visit);
    ran.push_back(std::move(job));
    return absl::OkStatus();
  }));
  for (const LiveJob& job : ran) RETURN_IF_ERROR(RecoverJob(job, visit));
  return absl::OkStatus();
}

bool JobService::IsUnsure(absl::string_view job_id) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return unsure_.contains(std::string(job_id));
}

absl::StatusOr<JobService::JobPtr> JobService::FindSubmitted(absl::string_view tenant,
                                                             absl::string_view request_id,
                                                             absl::string_view request_sha256) {
  if (request_id.empty()) return nullptr;
  for (int tries = 0; tries < kMaxTries; ++tries) {
    ASSIGN_OR_RETURN(const std::optional<std::string> owner,
                     store_->FindRequest(tenant, request_id));
    if (!owner.has_value()) return nullptr;
    // A look under the job's lock: where its submit is under way, this waits for how that ends.
    absl::StatusOr<JobPtr> job = IsUnsure(*owner) ? Resolve(*owner) : Transit(*owner, NoChange);
    if (job.ok() && !IsTerminal((*job)->state) && FindEntry(*owner) == nullptr) {
      job = Resolve(*owner);
    }
    if (absl::IsNotFound(job.status())) continue;  // its submit failed, or it was forgotten
    if (job.ok() && (*job)->request_sha256 != request_sha256) return RequestIdReused(**job);
    return job;
  }
  return absl::AbortedError("a request id changes hands all the time; try again");
}

// RESOURCE_EXHAUSTED: no room in the queue.
absl::StatusOr<JobService::NewEntry> JobService::BeginSubmit(NewJob request) {
  NewEntry submit{
      .entry = std::make_shared<Entry>(), .change = {}, .waits = !request.cached.has_value()};
  const std::string tenant = request.tenant;
  if (submit.waits) RETURN_IF_ERROR(queue_->Reserve(tenant));
  const absl::Time now = options_.now();
  auto [id, order] = NextIdAndOrder(now);
  submit.change = std::make_shared<JobChange>(CreateJob(std::move(request), id, order, now));

  // The entry is there before the job is stored, so that a caller that learns of the job from the
  // store finds it, and waits for this write.
  if (AddLive(submit.entry, ToLiveJob(submit.change->job))) return submit;
  if (submit.waits) queue_->Release(tenant);
  return absl::InternalError(absl::StrCat("job id ", id, " was made twice"));
}

// After the write, on the store's thread. From here on the job can be changed, or is forgotten.
absl::StatusOr<JobService::JobPtr> JobService::EndSubmit(NewEntry submit,
                                                         const absl::Status& written) {
  const std::string id = submit.change->job.id;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (written.ok() && submit.waits) {
      // Before the entry is opened: a cancel of the new job comes after it is in the queue.
      EnqueueLocked(live_.at(id), /*reserved=*/true);
    } else {
      ForgetLocked(id);
      if (submit.waits) queue_->Release(submit.change->job.tenant);
      if (!written.ok() && !IsDefinite(written) && unsure_.size() < kMaxUnsure) unsure_.insert(id);
    }
  }
  if (!written.ok()) {
    submit.entry->Set(Entry::Content::kUnknown);
    return written;
  }
  const auto job = std::make_shared<const Job>(std::move(submit.change->job));
  submit.entry->Set(job);
  hub_.Notify(id);
  // Its result was there already.
  if (IsTerminal(job->state) && end_listener_) end_listener_(*job);
  return job;
}

// The store found the request id taken since FindSubmitted had looked: the answer is the job that
// has it. That one's write was before this one, and is settled before it, so nothing here waits for
// the store's thread.
absl::StatusOr<JobService::Submitted> JobService::AnswerTaken(const Job& refused) const {
  const absl::Status unsure =
      ServiceError(absl::StatusCode::kUnavailable,
                   absl::StrCat("the job of request id '", Printable(refused.request_id, 64),
                                "' changes at this moment; send the request again"),
                   {.reason = "STORE_FAILED", .retry_delay = absl::Seconds(1)});
  ASSIGN_OR_RETURN(const std::optional<std::string> owner,
                   store_->FindRequest(refused.tenant, refused.request_id));
  if (!owner.has_value()) return unsure;
  if (const std::shared_ptr<Entry> entry = FindEntry(*owner)) entry->Await();
  if (IsUnsure(*owner)) return unsure;
  const absl::StatusOr<JobPtr> job = Get(*owner);
  if (absl::IsNotFound(job.status())) return unsure;
  RETURN_IF_ERROR(job.status());
  if ((*job)->request_sha256 != refused.request_sha256) return RequestIdReused(**job);
  return Submitted{*job, true};
}

void JobService::Submit(NewJob request, Done done) {
  // A look for a repeat comes first: a full queue must not hide an earlier job.
  const absl::StatusOr<JobPtr> earlier =
      FindSubmitted(request.tenant, request.request_id, request.request_sha256);
  if (!earlier.ok()) return done(earlier.status());
  if (*earlier != nullptr) return done(Submitted{*earlier, true});
  absl::StatusOr<NewEntry> submit = BeginSubmit(std::move(request));
  if (!submit.ok()) return done(submit.status());
  const std::shared_ptr<const JobChange> change = submit->change;
  store_->Apply(change, [this, submit = *std::move(submit),
                         done = std::move(done)](const absl::Status& written) mutable {
    const std::shared_ptr<const JobChange> made = submit.change;
    absl::StatusOr<JobPtr> job = EndSubmit(std::move(submit), written);
    if (job.ok()) return done(Submitted{*std::move(job), false});
    if (absl::IsAlreadyExists(written)) return done(AnswerTaken(made->job));
    done(job.status());
  });
}

absl::StatusOr<JobService::Submitted> JobService::SubmitAndWait(NewJob request) {
  std::promise<absl::StatusOr<Submitted>> answer;
  std::future<absl::StatusOr<Submitted>> answered = answer.get_future();
  Submit(std::move(request), [&answer](absl::StatusOr<Submitted> submitted) {
    answer.set_value(std::move(submitted));
  });
  return answered.get();
}

// Finds out whether a job is there whose first write failed. Where it is, it is made certain and
// becomes a job like any other; NOT_FOUND where it is not.
absl::StatusOr<JobService::JobPtr> JobService::Resolve(absl::string_view job_id) {
  const std::string id(job_id);
  auto entry = std::make_shared<Entry>();
  std::unique_lock<std::mutex> changing(entry->change);
  const absl::StatusOr<Job> stored = store_->Read(id);
  if (absl::IsNotFound(stored.status())) {
    std::lock_guard<std::mutex> lock(mutex_);
    unsure_.erase(id);
  }
  RETURN_IF_ERROR(stored.status());
  if (!AddLive(entry, ToLiveJob(*stored))) {
    changing.unlock();
    return Transit(id, NoChange);  // another thread resolves it, or has done so
  }
  absl::StatusOr<JobPtr> job = Refresh(*entry, id);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (job.ok()) unsure_.erase(id);
    if (!job.ok()) ForgetLocked(id);
    if (job.ok() && !IsTerminal((*job)->state)) RequeueLocked(id);
  }
  if (!job.ok()) entry->Set(Entry::Content::kUnknown);
  changing.unlock();
  if (job.ok()) hub_.Notify(id);
  return job;
}

absl::Status JobService::ResolveUnsure() {
  std::vector<std::string> ids;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ids.assign(unsure_.begin(), unsure_.end());
  }
  absl::Status first_error;
  for (const std::string& id : ids) {
    const absl::Status status = Resolve(id).status();
    if (!absl::IsNotFound(status)) first_error.Update(status);
  }
  return first_error;
}

absl::StatusOr<JobService::JobPtr> JobService::Store(Entry& entry, JobChange change) {
  const auto shared = std::make_shared<JobChange>(std::move(change));
  const absl::Status status = store_->ApplyAndWait(shared);
  if (!status.ok()) {
    if (!absl::IsAlreadyExists(status)) entry.uncertain = true;
    return status;
  }
  auto job = std::make_shared<const Job>(std::move(shared->job));
  entry.Set(job);
  return job;
}

absl::StatusOr<JobService::JobPtr> JobService::Load(Entry& entry, absl::string_view job_id) {
  if (JobPtr job = entry.Get()) return job;
  ASSIGN_OR_RETURN(Job stored, store_->Read(job_id));
  auto job = std::make_shared<const Job>(std::move(stored));
  entry.Set(job);
  return job;
}

// After a write that failed: what the store has counts, once a further write has made it certain,
// for nobody may be told of what a crash would take back.
absl::StatusOr<JobService::JobPtr> JobService::Refresh(Entry& entry, absl::string_view job_id) {
  const JobPtr before = entry.Get();
  const absl::StatusOr<Job> read = store_->Read(job_id);
  if (absl::IsNotFound(read.status())) {
    // It had ended unknown to us, and that so long ago that it was forgotten.
    std::lock_guard<std::mutex> lock(mutex_);
    if (before != nullptr && before->state == JobState::kRunning) --running_;
    ForgetLocked(std::string(job_id));
  }
  RETURN_IF_ERROR(read.status());
  const Job& stored = *read;
  if (before != nullptr && stored.revision <= before->revision) {
    entry.uncertain = false;
    return before;
  }
  JobChange change;
  const bool lease_is_out =
      before != nullptr && before->state == JobState::kRunning && before->fence == stored.fence;
  if (stored.state == JobState::kRunning && !lease_is_out) {
    // Its lease was stored but never given to anybody.
    ASSIGN_OR_RETURN(
        change, LoseLease(stored, stored.fence, LossKind::kHandBack,
                          "the store failed as it was leased", options_.retry, {}, options_.now()));
  } else {
    change = TouchJob(stored);
  }
  RETURN_IF_ERROR(store_->ApplyAndWait(change));
  auto job = std::make_shared<const Job>(std::move(change.job));
  entry.uncertain = false;
  entry.Set(job);
  Settle(before.get(), *job);
  return job;
}

void JobService::Settle(const Job* before, const Job& after) {
  const bool was_running = before != nullptr && before->state == JobState::kRunning;
  const bool is_running = after.state == JobState::kRunning;
  std::lock_guard<std::mutex> lock(mutex_);
  running_ += (is_running ? 1 : 0) - (was_running ? 1 : 0);
  if (IsTerminal(after.state)) ForgetLocked(after.id);
}

absl::StatusOr<JobService::JobPtr> JobService::TransitLocked(Entry& entry, absl::string_view job_id,
                                                             const Step& step) {
  for (int tries = 0; tries < kMaxTries; ++tries) {
    ASSIGN_OR_RETURN(const JobPtr before,
                     entry.uncertain ? Refresh(entry, job_id) : Load(entry, job_id));
    ASSIGN_OR_RETURN(std::optional<JobChange> change, step(*before));
    if (!change.has_value()) return before;
    absl::StatusOr<JobPtr> after = Store(entry, *std::move(change));
    if (after.ok()) Settle(before.get(), **after);
    // ABORTED: the store is ahead of what is known here, which Refresh mends.
    if (!absl::IsAborted(after.status())) return after;
  }
  return absl::InternalError(
      absl::StrCat("job ", job_id, " is changed by somebody else all the time"));
}

// A job that is not live has ended, and no transition leaves an ended job; `step` says what its
// caller is to be told.
absl::StatusOr<JobService::JobPtr> JobService::StepEnded(absl::string_view job_id, const Step& step,
                                                         JobPtr* now) const {
  ASSIGN_OR_RETURN(Job stored, store_->Read(job_id));
  auto job = std::make_shared<const Job>(std::move(stored));
  if (now != nullptr && IsTerminal(job->state)) *now = job;
  ASSIGN_OR_RETURN(const std::optional<JobChange> change, step(*job));
  if (change.has_value()) {
    return ServiceError(absl::StatusCode::kUnavailable,
                        absl::StrCat("it is not certain that job ", job_id, " was accepted"),
                        {.reason = "STORE_FAILED", .retry_delay = absl::Seconds(1)});
  }
  return job;
}

absl::StatusOr<JobService::JobPtr> JobService::Transit(absl::string_view job_id, const Step& step,
                                                       JobPtr* now) {
  const std::shared_ptr<Entry> entry = FindEntry(job_id);
  if (entry == nullptr) return StepEnded(job_id, step, now);
  if (!entry->Await()) return JobNotFound(job_id);
  std::unique_lock<std::mutex> changing(entry->change);
  const JobPtr before = entry->Get();
  absl::StatusOr<JobPtr> result = TransitLocked(*entry, job_id, step);
  const JobPtr after = entry->Get();
  changing.unlock();
  if (now != nullptr && after != nullptr) *now = after;
  if (after == nullptr || after == before) return result;
  hub_.Notify(job_id);
  const bool had_ended = before != nullptr && IsTerminal(before->state);
  if (IsTerminal(after->state) && !had_ended && end_listener_) end_listener_(*after);
  return result;
}

absl::Status JobService::ExpireDue() {
  const absl::Time steady = SteadyNow();
  std::vector<std::string> due;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [when, id] : due_) {
      if (when > steady) break;
      due.push_back(id);
    }
  }
  absl::Status first_error;
  for (const std::string& id : due) {
    const absl::Status status =
        EndJob(id, [&](const Job& job) -> absl::StatusOr<std::optional<JobChange>> {
          return ExpireJob(job, options_.now());
        }).status();
    if (!absl::IsNotFound(status)) first_error.Update(status);  // its submit may be under way
  }
  return first_error;
}

absl::Status JobService::Tick() {
  absl::Status first_error = ExpireDue();
  first_error.Update(TakeBackLeases());
  first_error.Update(ResolveUnsure());
  const absl::Time steady = SteadyNow();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (steady < next_prune_) return first_error;
    next_prune_ = steady + kPrunePeriod;
  }
  const absl::StatusOr<size_t> pruned =
      store_->Prune(options_.now() - options_.retention, kPruneBatch);
  if (pruned.ok() && *pruned == kPruneBatch) {
    std::lock_guard<std::mutex> lock(mutex_);
    next_prune_ = steady;
  }
  first_error.Update(pruned.status());
  return first_error;
}

absl::StatusOr<JobService::JobPtr> JobService::Get(absl::string_view job_id) const {
  if (const std::shared_ptr<Entry> entry = FindEntry(job_id)) {
    if (JobPtr job = entry->Get()) return job;
    if (!entry->is_stored()) return JobNotFound(job_id);
  }
  ASSIGN_OR_RETURN(Job job, store_->Read(job_id));
  return std::make_shared<const Job>(std::move(job));
}

absl::StatusOr<JobPage> JobService::List(const JobListQuery& query) const {
  ASSIGN_OR_RETURN(JobPage page, store_->List(query));
  // Not what a failed write may have left in the store, but what is certain.
  std::erase_if(page.jobs, [&](Job& job) {
    const std::shared_ptr<Entry> entry = FindEntry(job.id);
    if (entry == nullptr) return false;
    const JobPtr certain = entry->Get();
    if (certain == nullptr) return !entry->is_stored();
    if (certain->revision == job.revision) return false;
    job = *certain;
    job.diagnostics.clear();
    return !Matches(query, job);
  });
  return page;
}

absl::StatusOr<std::vector<JobEvent>> JobService::ReadEvents(absl::string_view job_id,
                                                             int64_t from_seq, size_t max_count,
                                                             size_t max_bytes) const {
  int64_t last_certain = INT64_MAX;
  if (const std::shared_ptr<Entry> entry = FindEntry(job_id)) {
    if (const JobPtr job = entry->Get()) {
      last_certain = job->last_seq;
    } else if (!entry->is_stored()) {
      last_certain = 0;
    }
  }
  if (from_seq > last_certain) return std::vector<JobEvent>();
  ASSIGN_OR_RETURN(std::vector<JobEvent> events,
                   store_->ReadEvents(job_id, from_seq, max_count, max_bytes));
  while (!events.empty() && events.back().seq > last_certain) events.pop_back();
  return events;
}

std::optional<JobWait> JobService::Wait(absl::string_view job_id) const {
  const absl::Time now = options_.now();
  std::lock_guard<std::mutex> lock(mutex_);
  if (const std::optional<QueueView> view = queue_->Look(job_id)) {
    JobWait wait{.reason = JobWait::Reason::kNextInLine,
                 .position = view->position,
                 .estimated_start = now + view->estimated_wait};
    if (view->tenant_limited) {
      wait.reason = JobWait::Reason::kTenantLimit;
    } else if (view->position > 0) {
      wait.reason = JobWait::Reason::kJobsAhead;
    }
    return wait;
  }
  const auto run = run_of_job_.find(std::string(job_id));
  if (run != run_of_job_.end() && run->second->lease.job_id.empty()) {  // claimed
    return JobWait{.estimated_start = now};
  }
  const auto found = live_.find(std::string(job_id));
  if (found == live_.end() || found->second.key.empty()) return std::nullopt;
  const auto flight = flights_.find(found->second.key);
  if (flight == flights_.end() ||
      !flight->second->followers.contains(found->second.place.accept_order)) {
    return std::nullopt;
  }
  return JobWait{.reason = JobWait::Reason::kEqualJob, .position = 0, .estimated_start = now};
}

std::optional<int64_t> JobService::Position(absl::string_view job_id) const {
  const std::optional<JobWait> wait = Wait(job_id);
  if (!wait.has_value()) return std::nullopt;
  return wait->position;
}

JobService::Counts JobService::GetCounts() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return {.queued = queue_->size(), .running = running_};
}

}  // namespace npuc
