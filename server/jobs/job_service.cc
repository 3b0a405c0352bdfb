#include "server/jobs/job_service.h"

#include <algorithm>
#include <future>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "server/jobs/service_error.h"

namespace npuc::jobs {
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

absl::Status RequestIdChanges(const Job& refused) {
  return ServiceError(absl::StatusCode::kUnavailable,
                      absl::StrCat("the job of request id '", Printable(refused.request_id, 64),
                                   "' changes at this moment; send the request again"),
                      {.reason = "STORE_FAILED", .retry_delay = absl::Seconds(1)});
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

JobService::JobService(JobServiceOptions options, JobStore* store, JobBoard* board)
    : options_(std::move(options)), store_(store), board_(board) {
  unsubscribe_ = board_->Subscribe([this] {
    {
      const MutexLock lock(work_mutex_);
      ++work_came_;
    }
    work_.NotifyAll();  // a board may claim for all that ask at once
  });
}

JobService::~JobService() { unsubscribe_(); }

std::shared_ptr<JobService::Entry> JobService::FindEntry(absl::string_view job_id) const {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(std::string(job_id));
  return found == entries_.end() ? nullptr : found->second;
}

std::shared_ptr<JobService::Entry> JobService::FindOrAddEntry(absl::string_view job_id) {
  const std::string id(job_id);
  const MutexLock lock(mutex_);
  std::shared_ptr<Entry>& entry = entries_[id];
  if (entry == nullptr) {
    entry = std::make_shared<Entry>(Entry::Content::kUnread, unsure_.contains(id));
  }
  return entry;
}

// Under the entry's `change`: it goes where nobody needs it any more.
void JobService::ReleaseEntry(const std::shared_ptr<Entry>& entry, absl::string_view job_id) {
  const JobPtr job = entry->Get();
  if (job != nullptr && IsTerminal(job->state)) board_->Forget(job_id);
  const MutexLock lock(mutex_);
  constexpr long kMapAndCaller = 2;
  const bool is_needed =
      entry->uncertain || (job != nullptr && !IsTerminal(job->state) &&
                           (!store_->is_shared() || entry.use_count() > kMapAndCaller));
  const auto found = entries_.find(std::string(job_id));
  if (!is_needed && found != entries_.end() && found->second == entry) entries_.erase(found);
}

void JobService::ForgetJob(absl::string_view job_id) {
  board_->Forget(job_id);
  const MutexLock lock(mutex_);
  entries_.erase(std::string(job_id));
}

BoardJob JobService::ToBoardJob(const LiveJob& job) const {
  return {.place = {.id = job.id,
                    .priority = job.priority,
                    .accept_order = job.accept_order,
                    .tenant = job.tenant,
                    .create_time = job.create_time},
          .flight_key = job.flight_key,
          .pinned_to = job.pinned_to,
          .due = SteadyNow() + (job.deadline - options_.now())};
}

std::string JobService::NextId(absl::Time now) {
  const MutexLock lock(mutex_);
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
  return MakeJobId(absl::FromUnixMillis(last_id_ms_), last_id_high_, last_id_low_);
}

// Puts on the board what the store has and the board lacks.
absl::Status JobService::FillBoard(const std::function<void(const LiveJob&)>& visit) {
  std::vector<LiveJob> running;
  RETURN_IF_ERROR(store_->ForEachLive([&](LiveJob job) {
    if (board_->Has(job.id)) return absl::OkStatus();
    if (visit) visit(job);
    if (job.state == JobState::kRunning) {
      running.push_back(std::move(job));
    } else {
      board_->Accept(ToBoardJob(job), /*reserved=*/false);
    }
    return absl::OkStatus();
  }));
  for (const LiveJob& job : running) {
    ASSIGN_OR_RETURN(const Job stored, store_->Read(job.id));
    const absl::Time held_until = SteadyNow() + (stored.lease_until - options_.now());
    board_->Restore(ToBoardJob(job), stored.owner, stored.fence, held_until);
  }
  return absl::OkStatus();
}

absl::Status JobService::Recover(const std::function<void(const LiveJob&)>& visit) {
  ASSIGN_OR_RETURN(const JobPage newest, store_->List({.limit = 1}));
  if (!newest.jobs.empty()) {
    const MutexLock lock(mutex_);
    // Ids go on above the newest one even where the clock went back in between. Its id counts and
    // not its time of acceptance, which is earlier where the clock had gone back before.
    last_id_ms_ = std::max(absl::ToUnixMillis(TimeOfJobId(newest.jobs[0].id)),
                           absl::ToUnixMillis(options_.now())) +
                  1;
    last_id_high_ = options_.random() & kIdRandomMask;
    last_id_low_ = options_.random() & kIdRandomMask;
  }
  if (board_->NeedsFill()) RETURN_IF_ERROR(FillBoard(visit));
  // Other daemons go on with their leases.
  for (const BoardClaim& claim : board_->TakeOwn(options_.owner, SteadyNow())) {
    const absl::Status taken = TakeBack(claim, /*is_restart=*/true);
    if (!IsRecordTooNew(taken)) RETURN_IF_ERROR(taken);
  }
  return absl::OkStatus();
}

bool JobService::IsUnsure(absl::string_view job_id) const {
  const MutexLock lock(mutex_);
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
    if (job.ok() && !IsTerminal((*job)->state) && !board_->Has(*owner)) job = Resolve(*owner);
    if (absl::IsNotFound(job.status())) continue;  // its submit failed, or it was forgotten
    if (job.ok() && (*job)->request_sha256 != request_sha256) return RequestIdReused(**job);
    return job;
  }
  return absl::AbortedError("a request id changes hands all the time; try again");
}

// A place in the queue, where the job is to wait.
absl::Status JobService::Reserve(const NewJob& request) {
  return request.cached.has_value() ? absl::OkStatus() : board_->Reserve(request.tenant);
}

// Behind Reserve.
absl::StatusOr<JobService::NewEntry> JobService::BeginSubmit(NewJob request) {
  NewEntry submit{
      .entry = std::make_shared<Entry>(), .change = {}, .waits = !request.cached.has_value()};
  const absl::Time now = options_.now();
  const std::string id = NextId(now);
  submit.change =
      std::make_shared<JobChange>(CreateJob(std::move(request), id, board_->NextOrder(), now));

  // The entry is there before the job is stored, so that a caller that learns of the job from the
  // store finds it, and waits for this write.
  {
    const MutexLock lock(mutex_);
    if (entries_.emplace(id, submit.entry).second) return submit;
  }
  if (submit.waits) board_->Release(submit.change->job.tenant);
  return absl::InternalError(absl::StrCat("job id ", id, " was made twice"));
}

// After the write, on the store's thread. From here on the job can be changed, or is forgotten.
absl::StatusOr<JobService::JobPtr> JobService::EndSubmit(const NewEntry& submit,
                                                         const absl::Status& written) {
  const std::string id = submit.change->job.id;
  const bool is_live = written.ok() && submit.waits;
  if (is_live) {
    // Before the entry is opened: a cancel of the new job comes after it is on the board.
    board_->Accept(ToBoardJob(ToLiveJob(submit.change->job)), /*reserved=*/true);
  } else {
    if (submit.waits) board_->Release(submit.change->job.tenant);
    const MutexLock lock(mutex_);
    entries_.erase(id);
    if (!written.ok() && !IsDefinite(written) && unsure_.size() < kMaxUnsure) unsure_.insert(id);
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

// `stored` is called on the store's thread.
void JobService::StoreNew(NewJob request, Stored stored) {
  absl::StatusOr<NewEntry> submit = BeginSubmit(std::move(request));
  if (!submit.ok()) return stored({.answer = submit.status()});
  const std::shared_ptr<const JobChange> change = submit->change;
  store_->Apply(change, [this, submit = *std::move(submit),
                         stored = std::move(stored)](const absl::Status& written) mutable {
    absl::StatusOr<JobPtr> job = EndSubmit(submit, written);
    if (job.ok()) return stored({.answer = Submitted{*std::move(job), false}});
    stored({.answer = job.status(),
            .taken = absl::IsAlreadyExists(written) ? std::move(submit.change) : nullptr});
  });
}

// Returns the job of an earlier request with this id; without one it returns `refusal`.
absl::StatusOr<JobService::Submitted> JobService::AnswerRefused(absl::string_view tenant,
                                                                absl::string_view request_id,
                                                                absl::string_view request_sha256,
                                                                const absl::Status& refusal) {
  ASSIGN_OR_RETURN(JobPtr earlier, FindSubmitted(tenant, request_id, request_sha256));
  if (earlier == nullptr) return refusal;
  return Submitted{std::move(earlier), true};
}

// The job that has the request id may be forgotten by now.
absl::StatusOr<JobService::Submitted> JobService::AnswerTaken(const Job& refused) {
  return AnswerRefused(refused.tenant, refused.request_id, refused.request_sha256,
                       RequestIdChanges(refused));
}

void JobService::Submit(NewJob request, Done done) {
  const absl::Status reserved = Reserve(request);
  if (!reserved.ok()) {
    // A full queue must not hide an earlier job.
    return done(
        AnswerRefused(request.tenant, request.request_id, request.request_sha256, reserved));
  }
  StoreNew(std::move(request), [this, done = std::move(done)](Written written) mutable {
    if (written.taken == nullptr) return done(std::move(written.answer));
    // This is the store's thread, and the look for the earlier job waits for the store.
    const auto answer = std::make_shared<Done>(std::move(done));
    const bool is_posted = repeats_.TryPost(
        [this, taken = written.taken, answer] { (*answer)(AnswerTaken(taken->job)); });
    if (!is_posted) (*answer)(RequestIdChanges(written.taken->job));
  });
}

absl::StatusOr<JobService::Submitted> JobService::SubmitAndWait(NewJob request) {
  const absl::Status reserved = Reserve(request);
  if (!reserved.ok()) {
    return AnswerRefused(request.tenant, request.request_id, request.request_sha256, reserved);
  }
  std::promise<Written> promise;
  std::future<Written> stored = promise.get_future();
  StoreNew(std::move(request),
           [&promise](Written written) { promise.set_value(std::move(written)); });
  Written written = stored.get();
  return written.taken == nullptr ? std::move(written.answer) : AnswerTaken(written.taken->job);
}

// Finds out whether a job is there whose first write failed. Where it is, it is made certain and
// becomes a job like any other; NOT_FOUND where it is not. A lease of this daemon that nobody got
// is taken back.
absl::StatusOr<JobService::JobPtr> JobService::Resolve(absl::string_view job_id) {
  if (const std::shared_ptr<Entry> entry = FindOrAddEntry(job_id); entry->Await()) {
    const MutexLock changing(entry->change);
    entry->uncertain = true;
  }
  absl::StatusOr<JobPtr> job =
      Transit(job_id, [&](const Job& now) -> absl::StatusOr<std::optional<JobChange>> {
        if (!IsUngiven(now)) return std::nullopt;
        return LoseLease(now, now.fence, LossKind::kHandBack, kStoreFailed, options_.retry, {},
                         options_.now());
      });
  if (job.ok() && !IsTerminal((*job)->state)) {
    board_->Accept(ToBoardJob(ToLiveJob(**job)), /*reserved=*/false);
  }
  if (job.ok() || absl::IsNotFound(job.status())) {
    const MutexLock lock(mutex_);
    unsure_.erase(std::string(job_id));
  }
  return job;
}

absl::Status JobService::ResolveUnsure() {
  std::vector<std::string> ids;
  {
    const MutexLock lock(mutex_);
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
    // ABORTED of a shared store: another daemon was first, and the next Load shows that.
    entry.uncertain = !absl::IsAborted(status) || !store_->is_shared();
    return status;
  }
  auto job = std::make_shared<const Job>(std::move(shared->job));
  entry.Set(job);
  ++entry.writes;
  return job;
}

absl::StatusOr<JobService::JobPtr> JobService::Load(Entry& entry, absl::string_view job_id) {
  if (!store_->is_shared()) {
    if (JobPtr job = entry.Get()) return job;
  }
  ASSIGN_OR_RETURN(Job stored, store_->Read(job_id));
  auto job = std::make_shared<const Job>(std::move(stored));
  entry.Set(job);
  return job;
}

// After a write that failed: what the store has counts, once a further write has made it certain,
// for nobody may be told of what a crash would take back.
absl::StatusOr<JobService::JobPtr> JobService::Refresh(Entry& entry, absl::string_view job_id) {
  const JobPtr before = entry.Get();
  ASSIGN_OR_RETURN(const Job stored, store_->Read(job_id));
  if (before != nullptr && stored.revision <= before->revision) {
    entry.uncertain = false;
    return before;
  }
  JobChange change;
  if (IsUngiven(stored)) {
    // Its lease was stored but never given to anybody.
    ASSIGN_OR_RETURN(change, LoseLease(stored, stored.fence, LossKind::kHandBack, kStoreFailed,
                                       options_.retry, {}, options_.now()));
  } else {
    change = TouchJob(stored);
  }
  RETURN_IF_ERROR(store_->ApplyAndWait(change));
  auto job = std::make_shared<const Job>(std::move(change.job));
  entry.uncertain = false;
  entry.Set(job);
  ++entry.writes;
  return job;
}

absl::StatusOr<JobService::JobPtr> JobService::TransitLocked(Entry& entry, absl::string_view job_id,
                                                             const Step& step) {
  for (int tries = 0; tries < kMaxTries; ++tries) {
    const absl::StatusOr<JobPtr> before =
        entry.uncertain ? Refresh(entry, job_id) : Load(entry, job_id);
    if (absl::IsAborted(before.status())) continue;
    RETURN_IF_ERROR(before.status());
    ASSIGN_OR_RETURN(std::optional<JobChange> change, step(**before));
    if (!change.has_value()) return *before;
    absl::StatusOr<JobPtr> after = Store(entry, *std::move(change));
    // ABORTED: the store is ahead of what is known here.
    if (!absl::IsAborted(after.status())) return after;
  }
  return absl::InternalError(
      absl::StrCat("job ", job_id, " is changed by somebody else all the time"));
}

absl::StatusOr<JobService::JobPtr> JobService::Transit(absl::string_view job_id, const Step& step,
                                                       JobPtr* now) {
  std::shared_ptr<Entry> entry = FindOrAddEntry(job_id);
  // Where its submit failed, the store alone knows whether the job is there.
  while (!entry->Await()) entry = FindOrAddEntry(job_id);
  MutexLock changing(entry->change);
  const JobPtr before = entry->Get();
  const uint64_t writes_before = entry->writes;
  absl::StatusOr<JobPtr> result = TransitLocked(*entry, job_id, step);
  const JobPtr after = entry->Get();
  const bool is_changed = entry->writes != writes_before;
  if (absl::IsNotFound(result.status())) {
    // It had ended unknown to us, and that so long ago that it was forgotten; or never was.
    ForgetJob(job_id);
  } else {
    ReleaseEntry(entry, job_id);
  }
  changing.Unlock();
  if (now != nullptr && after != nullptr) *now = after;
  if (!is_changed) return result;
  hub_.Notify(job_id);
  const bool had_ended = before != nullptr && IsTerminal(before->state);
  if (IsTerminal(after->state) && !had_ended && end_listener_) end_listener_(*after);
  return result;
}

absl::Status JobService::ExpireDue() {
  absl::Status first_error;
  for (const std::string& id : board_->Due(SteadyNow())) {
    const absl::Status status =
        EndJob(id, [&](const Job& job) -> absl::StatusOr<std::optional<JobChange>> {
          return ExpireJob(job, options_.now());
        }).status();
    // Its submit may be under way; or a newer daemon sees to it.
    if (!absl::IsNotFound(status) && !IsRecordTooNew(status)) first_error.Update(status);
  }
  return first_error;
}

absl::Status JobService::Tick() {
  absl::Status first_error = ExpireDue();
  first_error.Update(FollowOrphans());
  first_error.Update(TakeBackExpired());
  first_error.Update(ExtendLeases());
  first_error.Update(ResolveUnsure());
  const absl::Time steady = SteadyNow();
  {
    const MutexLock lock(mutex_);
    if (steady < next_prune_) return first_error;
    next_prune_ = steady + kPrunePeriod;
  }
  const absl::StatusOr<size_t> pruned =
      store_->Prune(options_.now() - options_.retention, kPruneBatch);
  if (pruned.ok() && *pruned == kPruneBatch) {
    const MutexLock lock(mutex_);
    next_prune_ = steady;
  }
  first_error.Update(pruned.status());
  return first_error;
}

// A job whose first write is under way is not there yet. Other daemons may know of it already,
// where they share the store: it was written, and the answer got lost.
bool JobService::IsHidden(const Entry& entry) const {
  return !entry.is_stored() && !store_->is_shared();
}

absl::StatusOr<JobService::JobPtr> JobService::Get(absl::string_view job_id) const {
  if (const std::shared_ptr<Entry> entry = FindEntry(job_id)) {
    if (IsHidden(*entry)) return JobNotFound(job_id);
    JobPtr job = store_->is_shared() ? nullptr : entry->Get();
    if (job != nullptr) return job;
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
    if (IsHidden(*entry)) return true;
    const JobPtr certain = store_->is_shared() ? nullptr : entry->Get();
    if (certain == nullptr || certain->revision == job.revision) return false;
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
    const JobPtr job = store_->is_shared() ? nullptr : entry->Get();
    if (job != nullptr) last_certain = job->last_seq;
    if (IsHidden(*entry)) last_certain = 0;
  }
  if (from_seq > last_certain) return std::vector<JobEvent>();
  ASSIGN_OR_RETURN(std::vector<JobEvent> events,
                   store_->ReadEvents(job_id, from_seq, max_count, max_bytes));
  while (!events.empty() && events.back().seq > last_certain) events.pop_back();
  return events;
}

std::optional<JobWait> JobService::Wait(absl::string_view job_id) const {
  return ToWait(board_->Look(job_id));
}

std::optional<JobWait> JobService::WaitOfNew(const Job& job) const {
  return ToWait(board_->LookAtNew(job.id, job.tenant));
}

std::optional<JobWait> JobService::ToWait(const std::optional<BoardView>& view) const {
  if (!view.has_value()) return std::nullopt;
  JobWait wait{.estimated_start = options_.now()};
  switch (view->place) {
    case BoardView::Place::kRuns:
      return std::nullopt;
    case BoardView::Place::kClaimed:
      return wait;
    case BoardView::Place::kFollows:
      wait.reason = JobWait::Reason::kEqualJob;
      return wait;
    case BoardView::Place::kQueue:
      break;
  }
  wait.position = view->queue.position;
  wait.estimated_start += view->queue.estimated_wait;
  if (view->queue.tenant_limited) {
    wait.reason = JobWait::Reason::kTenantLimit;
  } else if (wait.position > 0) {
    wait.reason = JobWait::Reason::kJobsAhead;
  }
  return wait;
}

std::optional<int64_t> JobService::Position(absl::string_view job_id) const {
  const std::optional<JobWait> wait = Wait(job_id);
  if (!wait.has_value()) return std::nullopt;
  return wait->position;
}

}  // namespace npuc::jobs
