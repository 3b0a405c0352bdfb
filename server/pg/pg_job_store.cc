#include "server/pg/pg_job_store.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler_core/base/status.h"
#include "compiler_core/base/utf8.h"
#include "server/jobs/service_error.h"
#include "server/pg/content.h"

namespace npuc::pg {
namespace {

using jobs::Job;
using jobs::JobChange;

constexpr size_t kMaxBatch = 128;
constexpr size_t kMaxBatchBytes = size_t{4} << 20;
constexpr int64_t kNotEnded = -1;
// After a failed attempt to write.
constexpr absl::Duration kPause = absl::Milliseconds(50);
constexpr absl::Duration kMaxPause = absl::Seconds(1);

// A page of List looks at no more records than this; at so many with one statement.
constexpr size_t kMaxRecordsPerPage = 20000;
constexpr size_t kRecordsPerRead = 1000;
// Above every job id, which is ASCII.
constexpr char kAboveAllIds[] = "~";
constexpr int64_t kEventRecordsPerRead = 16;
constexpr int64_t kLiveJobsPerRead = 1000;
constexpr size_t kJobsPerPrune = 200;

constexpr int64_t kMade = 0, kRequestTaken = 2;

// apply_batch raises it where the lane is another one's.
constexpr char kLaneIsLost[] = "NP001";

// Text of PostgreSQL has neither NUL nor invalid UTF-8; nothing was stored under such a name.
bool IsText(absl::string_view text) {
  return text.find('\0') == absl::string_view::npos &&
         FirstInvalidUtf8(text) == absl::string_view::npos;
}

absl::Status Unavailable(const absl::Status& cause) {
  const bool is_full = absl::IsResourceExhausted(cause);
  const bool is_away = absl::IsUnavailable(cause);
  if (FaultOf(cause) == Fault::kNone && !is_away) return cause;
  jobs::ErrorDetails details{.reason = is_full ? "STORAGE_FULL" : "STORE_FAILED"};
  if (is_full || is_away) details.retry_delay = absl::Seconds(is_full ? 30 : 2);
  return jobs::ServiceError(cause.code(), absl::StrCat("job store: ", cause.message()), details);
}

}  // namespace

// A change with its stored form.
struct PgJobStore::Encoded {
  std::shared_ptr<const JobChange> change;
  absl::Status refused = absl::OkStatus();  // before anybody is asked
  std::string record = {};
  std::vector<jobs::EventRecord> events = {};
  size_t bytes = 0;
};

// The parameters of apply_batch, beside those of the lane.
struct PgJobStore::Batch {
  TextArray jobs, tenants, requests, event_jobs, input_jobs, inputs;
  OptionalTextArray flights, pins;
  IntArray states, revisions, old_seqs, last_seqs, ended, ranks, orders, dues, event_seqs, fences;
  BytesArray records, configs, events;

  void Add(const Encoded& encoded, absl::Duration ageing) {
    const JobChange& change = *encoded.change;
    const Job& job = change.job;
    jobs.push_back(job.id);
    tenants.push_back(job.tenant);
    states.push_back(static_cast<int64_t>(job.state));
    fences.push_back(static_cast<int64_t>(job.fence));
    revisions.push_back(static_cast<int64_t>(job.revision));
    old_seqs.push_back(job.last_seq - static_cast<int64_t>(change.events.size()));
    last_seqs.push_back(job.last_seq);
    ended.push_back(jobs::IsTerminal(job.state) ? ToMicros(job.end_time) : kNotEnded);
    requests.push_back(job.revision == 1 ? job.request_id : "");
    records.push_back({encoded.record});
    const bool has_config = change.config_text.has_value();
    configs.push_back({has_config ? absl::string_view(*change.config_text) : absl::string_view()});
    ranks.push_back(absl::ToUnixMicros(job.create_time) -
                    job.spec.priority * absl::ToInt64Microseconds(ageing));
    orders.push_back(static_cast<int64_t>(job.accept_order));
    dues.push_back(ToMicros(job.deadline));
    const auto optional = [](const std::string& text) {
      return text.empty() ? std::nullopt : std::optional(text);
    };
    flights.items.push_back(optional(job.flight_key()));
    pins.items.push_back(optional(job.spec.pinned_to));
    const bool is_new = job.revision == 1 && !jobs::IsTerminal(job.state);
    for (size_t i = 0; is_new && i < job.spec.inputs.size(); ++i) {
      input_jobs.push_back(job.id);
      inputs.push_back(BlobName(job.tenant, job.spec.inputs[i].sha256));
    }
    for (const jobs::EventRecord& record : encoded.events) {
      event_jobs.push_back(job.id);
      event_seqs.push_back(record.last_seq);
      events.push_back({record.body});
    }
  }
};

PgJobStore::PgJobStore(Sessions* sessions, Node* node, PgJobStoreOptions options)
    : sessions_(sessions),
      node_(node),
      options_(std::move(options)),
      changes_(std::make_unique<Changes>([this](Changes::Group group) { return Commit(group); },
                                         jobs::Answers::kApart)) {}

PgJobStore::~PgJobStore() = default;

void PgJobStore::Apply(std::shared_ptr<const JobChange> change, Done done) {
  Encoded encoded;
  const Job& job = change->job;
  // This much is known without the stored job: the events follow one another.
  Job before{.revision = job.revision - 1,
             .last_seq = job.last_seq - static_cast<int64_t>(change->events.size())};
  encoded.refused = jobs::CheckChange(*change, &before);
  const bool is_first = job.revision == 1;
  if (encoded.refused.ok() && is_first) encoded.refused = jobs::CheckChange(*change, nullptr);
  for (const std::string* text : {&job.id, &job.tenant, &job.request_id, &job.spec.pinned_to}) {
    if (!encoded.refused.ok() || IsText(*text)) continue;
    encoded.refused = absl::InvalidArgumentError("job store: a name is not text");
  }
  if (encoded.refused.ok()) {
    encoded.record = jobs::EncodeJobRecord(job);
    encoded.events = jobs::PackEvents(change->events);
    encoded.bytes = encoded.record.size() + change->config_text.value_or("").size();
    for (const jobs::EventRecord& record : encoded.events) encoded.bytes += record.body.size();
  }
  encoded.change = std::move(change);
  changes_->Put(std::move(encoded), std::move(done));
}

// One write of the first changes of a group, up to one for a job or request id that an earlier one
// is for, too.
size_t PgJobStore::Commit(Changes::Group group) {
  std::unordered_set<std::string> names;
  std::vector<size_t> members;
  size_t bytes = 0;
  size_t count = 0;
  for (; count < std::min(group.size(), kMaxBatch) && bytes < kMaxBatchBytes; ++count) {
    const Encoded& encoded = group[count].payload;
    const Job& job = encoded.change->job;
    const std::string request =
        absl::StrCat("r", job.tenant, absl::string_view("\0", 1), job.request_id);
    const bool has_request = job.revision == 1 && !job.request_id.empty();
    if (names.contains(absl::StrCat("j", job.id))) break;
    if (has_request && names.contains(request)) break;
    names.insert(absl::StrCat("j", job.id));
    if (has_request) names.insert(request);
    group[count].status = encoded.refused;
    if (!encoded.refused.ok()) continue;
    members.push_back(count);
    bytes += encoded.bytes;
  }
  if (members.empty()) return count;
  Batch batch;
  for (const size_t i : members) batch.Add(group[i].payload, options_.ageing);
  const absl::StatusOr<std::vector<int64_t>> results = Write(batch);
  if (FaultOf(results.status()) == Fault::kRefused && members.size() > 1) {
    // One of them is to blame: the others must not suffer.
    return Commit(group.first((count + 1) / 2));
  }
  std::vector<std::string> changed;
  for (size_t k = 0; k < members.size(); ++k) {
    absl::Status& status = group[members[k]].status;
    const Job& job = group[members[k]].payload.change->job;
    if (!results.ok()) {
      status = Unavailable(results.status());
    } else if ((*results)[k] == kMade) {
      changed.push_back(job.id);
    } else if ((*results)[k] == kRequestTaken) {
      status = absl::AlreadyExistsError("the request id is taken");
    } else {
      status = absl::AbortedError(absl::StrCat("job ", job.id, " is not at revision ",
                                               job.revision - 1, " and event ", batch.old_seqs[k]));
    }
  }
  if (options_.on_change && !changed.empty()) options_.on_change(changed);
  return count;
}

absl::Status PgJobStore::Connect() {
  if (lane_.connection != nullptr && lane_.connection->is_usable()) return absl::OkStatus();
  lane_.connection.reset();
  ASSIGN_OR_RETURN(lane_.connection, Connection::Open(sessions_->options()));
  return absl::OkStatus();
}

absl::Status PgJobStore::CheckLoss() const {
  const MutexLock lock(mutex_);
  return loss_;
}

// DATA_LOSS, from then on, where PostgreSQL has fewer writes of a lane than it acknowledged.
absl::Status PgJobStore::CompareNumbers(int64_t found, int64_t acknowledged) {
  if (found >= acknowledged) return absl::OkStatus();
  const MutexLock lock(mutex_);
  loss_ = absl::DataLossError(absl::StrCat(
      "job store: PostgreSQL has lost commits that it had acknowledged: it is at write ", found,
      " of this node, which was told of ", acknowledged,
      "; an asynchronous standby or an older backup took over. Start npucd again to go on with "
      "what is there"));
  return loss_;
}

void PgJobStore::SetNumber(int64_t commit_no) {
  lane_.commit_no = commit_no;
  const MutexLock lock(mutex_);
  acknowledged_ = {lane_.incarnation, commit_no};
}

// `rows`: commit number and results of the lane, as PostgreSQL has them. Where they say that the
// write after lane_.commit_no was made, its results are returned.
absl::StatusOr<std::optional<std::vector<int64_t>>> PgJobStore::Settle(const Rows& rows) {
  const int64_t found = rows.empty() ? 0 : rows.Int(0, 0);
  RETURN_IF_ERROR(CompareNumbers(found, lane_.commit_no));
  lane_.in_doubt = false;
  const bool is_made = found > lane_.commit_no;
  SetNumber(found);
  if (!is_made) return std::nullopt;
  return rows.Ints(0, 1);
}

absl::StatusOr<std::optional<std::vector<int64_t>>> PgJobStore::TakeLane() {
  ASSIGN_OR_RETURN(const Rows rows,
                   lane_.connection->Run("SELECT commit_no, results, epoch FROM take_lane($1, $2)",
                                         {lane_.incarnation, lane_.epoch}, options_.write_limit));
  if (rows.empty()) {
    // It was declared dead; or the answer of an earlier call was lost.
    ASSIGN_OR_RETURN(const Rows now, lane_.connection->Run(
                                         "SELECT l.epoch FROM lane l JOIN node n USING "
                                         "(incarnation) WHERE n.incarnation = $1 AND n.state <> 3",
                                         {lane_.incarnation}, options_.write_limit));
    if (now.empty()) {
      RETURN_IF_ERROR(node_->Beat());  // which joins anew
      return absl::UnavailableError("this node was taken for dead; it joins again");
    }
    lane_.epoch = now.Int(0, 0);
    return absl::UnavailableError("the lane changes; try again");
  }
  lane_.epoch = rows.Int(0, 2);
  return Settle(rows);
}

// The lane of this life. Another life of the node is over: its epoch was raised, so its row has
// come to rest and tells what became of a write that was sent in it.
absl::StatusOr<std::optional<std::vector<int64_t>>> PgJobStore::ChangeLane(int64_t incarnation) {
  std::optional<std::vector<int64_t>> made;
  if (lane_.incarnation != 0) {
    ASSIGN_OR_RETURN(const Rows rows,
                     lane_.connection->Run("SELECT commit_no, results FROM lane WHERE "
                                           "incarnation = $1",
                                           {lane_.incarnation}, options_.write_limit));
    ASSIGN_OR_RETURN(made, Settle(rows));
  }
  lane_ = {.incarnation = incarnation, .epoch = 1, .connection = std::move(lane_.connection)};
  // A store that was closed may have written before with this incarnation.
  lane_.in_doubt = true;
  return made;
}

// `sent`: the batch was sent before, with the lane's next number, and its fate is in doubt.
absl::StatusOr<std::vector<int64_t>> PgJobStore::WriteOnce(const Batch& batch, bool& sent) {
  RETURN_IF_ERROR(Connect());
  const int64_t incarnation = node_->incarnation();
  const bool changes = lane_.incarnation != incarnation;
  if (changes || lane_.in_doubt) {
    ASSIGN_OR_RETURN(const std::optional<std::vector<int64_t>> made,
                     changes ? ChangeLane(incarnation) : TakeLane());
    if (sent && made.has_value()) return *made;
    sent = false;
  }
  if (lane_.in_doubt) RETURN_IF_ERROR(TakeLane().status());
  const absl::StatusOr<Rows> rows = lane_.connection->Run(
      "SELECT apply_batch($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, "
      "$17, $18, $19, $20, $21, $22, $23, $24)",
      {lane_.incarnation, lane_.epoch,      lane_.commit_no + 1, batch.jobs,       batch.tenants,
       batch.states,      batch.revisions,  batch.old_seqs,      batch.last_seqs,  batch.ended,
       batch.requests,    batch.records,    batch.configs,       batch.ranks,      batch.orders,
       batch.flights,     batch.pins,       batch.dues,          batch.event_jobs, batch.event_seqs,
       batch.events,      batch.input_jobs, batch.inputs,        batch.fences},
      options_.write_limit);
  if (rows.ok()) {
    SetNumber(lane_.commit_no + 1);
    return rows->Ints(0, 0);
  }
  const Fault fault = FaultOf(rows.status());
  sent = fault == Fault::kUnknown;
  const bool lane_is_lost = SqlStateOf(rows.status()) == kLaneIsLost;
  if (lane_is_lost || fault == Fault::kUnknown || fault == Fault::kLost) lane_.in_doubt = true;
  if (lane_is_lost) {
    return absl::UnavailableError("this node may have been taken for dead");
  }
  return rows.status();
}

absl::StatusOr<std::vector<int64_t>> PgJobStore::Write(const Batch& batch) {
  RETURN_IF_ERROR(CheckLoss());
  const SteadyTime limit = SteadyTimeAfter(absl::ToChronoNanoseconds(options_.write_limit));
  absl::Duration pause = kPause;
  bool sent = false;
  while (true) {
    absl::StatusOr<std::vector<int64_t>> results = WriteOnce(batch, sent);
    const absl::Status& status = results.status();
    const bool is_final =
        status.ok() || FaultOf(status) == Fault::kRefused || absl::IsDataLoss(status);
    if (is_final || std::chrono::steady_clock::now() >= limit) return results;
    absl::SleepFor(pause);
    pause = std::min(2 * pause, kMaxPause);
  }
}

bool PgJobStore::IsNewer(absl::string_view job_id, const absl::Status& status) const {
  if (!jobs::IsRecordTooNew(status)) return false;
  if (options_.on_newer) options_.on_newer(job_id, status);
  return true;
}

absl::StatusOr<Job> PgJobStore::Read(absl::string_view job_id) const {
  RETURN_IF_ERROR(CheckLoss());
  if (!IsText(job_id)) return jobs::JobNotFound(job_id);
  const absl::StatusOr<Rows> rows =
      sessions_->Read("SELECT record FROM job WHERE job_id = $1", {job_id});
  if (!rows.ok()) return Unavailable(rows.status());
  if (rows->empty()) return jobs::JobNotFound(job_id);
  absl::StatusOr<Job> job = jobs::DecodeJobRecord(rows->Text(0, 0));
  IsNewer(job_id, job.status());
  return job;
}

absl::StatusOr<std::string> PgJobStore::ReadConfig(absl::string_view job_id) const {
  RETURN_IF_ERROR(CheckLoss());
  if (!IsText(job_id)) return jobs::JobNotFound(job_id);
  const absl::StatusOr<Rows> rows =
      sessions_->Read("SELECT body FROM job_config WHERE job_id = $1", {job_id});
  if (!rows.ok()) return Unavailable(rows.status());
  if (rows->empty()) return jobs::JobNotFound(job_id);
  return std::string(rows->Text(0, 0));
}

absl::StatusOr<std::optional<std::string>> PgJobStore::FindRequest(
    absl::string_view tenant, absl::string_view request_id) const {
  RETURN_IF_ERROR(CheckLoss());
  if (!IsText(tenant) || !IsText(request_id)) return std::nullopt;
  const absl::StatusOr<Rows> rows = sessions_->Read(
      "SELECT job_id FROM request WHERE tenant = $1 AND request_id = $2", {tenant, request_id});
  if (!rows.ok()) return Unavailable(rows.status());
  if (rows->empty()) return std::nullopt;
  return std::string(rows->Text(0, 0));
}

absl::StatusOr<jobs::JobPage> PgJobStore::List(const jobs::JobListQuery& query) const {
  RETURN_IF_ERROR(CheckLoss());
  jobs::JobPage page;
  std::string before = query.before_id.empty() ? kAboveAllIds : query.before_id;
  if (!IsText(before) || (query.tenant.has_value() && !IsText(*query.tenant))) return page;
  IntArray states;
  for (const jobs::JobState state : query.states) states.push_back(static_cast<int64_t>(state));
  const std::string tenant = query.tenant.value_or("");
  const char* const of_tenant =
      "SELECT job_id, CASE WHEN $3 = '{}' OR state = ANY ($3) THEN record END FROM job "
      "WHERE tenant = $4 AND job_id < $1 ORDER BY job_id DESC LIMIT $2";
  const char* const of_all =
      "SELECT job_id, CASE WHEN $3 = '{}' OR state = ANY ($3) THEN record END FROM job "
      "WHERE $4 = '' AND job_id < $1 ORDER BY job_id DESC LIMIT $2";
  size_t seen = 0;
  // As many as may be wanted, and the one that says that there are more.
  size_t wanted = std::min(query.limit + 1, kRecordsPerRead);
  while (true) {
    const absl::StatusOr<Rows> rows =
        sessions_->Read(query.tenant.has_value() ? of_tenant : of_all,
                        {absl::string_view(before), static_cast<int64_t>(wanted), states,
                         absl::string_view(tenant)});
    if (!rows.ok()) return Unavailable(rows.status());
    for (size_t row = 0; row < rows->size(); ++row) {
      if (page.jobs.size() == query.limit || seen == kMaxRecordsPerPage) {
        page.next_before = before;
        return page;
      }
      ++seen;
      before = std::string(rows->Text(row, 0));
      if (rows->IsNull(row, 1)) continue;
      absl::StatusOr<Job> job = jobs::DecodeJobRecord(rows->Text(row, 1));
      if (IsNewer(before, job.status())) continue;
      RETURN_IF_ERROR(job.status());
      if (!jobs::Matches(query, *job)) continue;
      job->diagnostics.clear();
      page.jobs.push_back(*std::move(job));
    }
    if (rows->size() < wanted) return page;
    wanted = kRecordsPerRead;
  }
}

absl::StatusOr<std::vector<jobs::JobEvent>> PgJobStore::ReadEvents(absl::string_view job_id,
                                                                   int64_t from_seq,
                                                                   size_t max_count,
                                                                   size_t max_bytes) const {
  RETURN_IF_ERROR(CheckLoss());
  std::vector<jobs::JobEvent> events;
  if (!IsText(job_id)) return events;
  size_t bytes = 0;
  int64_t next = std::max<int64_t>(from_seq, 1);
  while (true) {
    const absl::StatusOr<Rows> rows = sessions_->Read(
        "SELECT last_seq, body FROM job_event WHERE job_id = $1 AND last_seq >= $2 "
        "ORDER BY last_seq LIMIT $3",
        {job_id, next, kEventRecordsPerRead});
    if (!rows.ok()) return Unavailable(rows.status());
    for (size_t row = 0; row < rows->size(); ++row) {
      absl::StatusOr<std::vector<jobs::StoredEvent>> stored =
          jobs::DecodeEvents(rows->Text(row, 1));
      IsNewer(job_id, stored.status());
      RETURN_IF_ERROR(stored.status());
      for (jobs::StoredEvent& one : *stored) {
        if (one.event.seq < from_seq) continue;
        bytes += one.bytes;
        const bool is_full = events.size() >= max_count || (!events.empty() && bytes > max_bytes);
        if (is_full) return events;
        events.push_back(std::move(one.event));
      }
      next = rows->Int(row, 0) + 1;
    }
    if (rows->size() < static_cast<size_t>(kEventRecordsPerRead)) return events;
  }
}

absl::Status PgJobStore::ForEachLive(
    const std::function<absl::Status(jobs::LiveJob job)>& visit) const {
  std::string after;
  while (true) {
    const absl::StatusOr<Rows> rows = sessions_->Read(
        "SELECT job_id, record FROM job WHERE ended_us IS NULL AND job_id > $1 "
        "ORDER BY job_id LIMIT $2",
        {absl::string_view(after), kLiveJobsPerRead});
    if (!rows.ok()) return Unavailable(rows.status());
    for (size_t row = 0; row < rows->size(); ++row) {
      after = std::string(rows->Text(row, 0));
      const absl::StatusOr<Job> job = jobs::DecodeJobRecord(rows->Text(row, 1));
      if (IsNewer(after, job.status())) continue;
      RETURN_IF_ERROR(job.status());
      RETURN_IF_ERROR(visit(jobs::ToLiveJob(*job)));
    }
    if (rows->size() < static_cast<size_t>(kLiveJobsPerRead)) return absl::OkStatus();
  }
}

absl::StatusOr<size_t> PgJobStore::Prune(absl::Time ended_before, size_t max_jobs) {
  RETURN_IF_ERROR(CheckLoss());
  size_t pruned = 0;
  while (pruned < max_jobs) {
    const size_t some = std::min(kJobsPerPrune, max_jobs - pruned);
    const absl::StatusOr<Rows> rows =
        sessions_->Run(Sessions::Repeat::kRepeatable, "SELECT prune_jobs($1, $2)",
                       {ToMicros(ended_before), static_cast<int64_t>(some)});
    if (!rows.ok()) return Unavailable(rows.status());
    pruned += static_cast<size_t>(rows->Int(0, 0));
    if (rows->Int(0, 0) < static_cast<int64_t>(some)) break;
  }
  return pruned;
}

absl::Status PgJobStore::Probe() {
  RETURN_IF_ERROR(CheckLoss());
  RETURN_IF_ERROR(node_->Beat());
  // A loss is found without a write, too.
  std::pair<int64_t, int64_t> acknowledged;
  {
    const MutexLock lock(mutex_);
    acknowledged = acknowledged_;
  }
  ASSIGN_OR_RETURN(const Rows rows,
                   sessions_->Read("SELECT commit_no FROM lane WHERE incarnation = $1 "
                                   "ORDER BY commit_no DESC LIMIT 1",
                                   {acknowledged.first}));
  return CompareNumbers(rows.empty() ? 0 : rows.Int(0, 0), acknowledged.second);
}

}  // namespace npuc::pg
