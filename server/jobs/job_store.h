#ifndef NPUC_SERVER_JOBS_JOB_STORE_H_
#define NPUC_SERVER_JOBS_JOB_STORE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/jobs/job.h"

namespace npuc::jobs {

// One change of one job.
struct JobChange {
  Job job;                            // the whole record after the change
  std::vector<JobEvent> events = {};  // appended; numbered on from the record before
  // With the first change of a job (job.revision == 1) only.
  std::optional<std::string> config_text = {};
};

struct JobListQuery {
  std::vector<JobState> states = {};  // empty: all
  std::string before_id = {};         // only ids less than this; empty: from the newest on
  size_t limit = 50;
  std::optional<std::string> tenant = {};  // unset: of all tenants
};

struct JobPage {
  std::vector<Job> jobs = {};    // descending ids, without diagnostics
  std::string next_before = {};  // for the next page; empty: no more
};

// Where jobs, their events and request ids are kept. One conformance suite
// (job_store_conformance_test_util.h) holds for every implementation. Everything that decides
// between jobs or callers (uniqueness of request ids, who changed a job first) is decided here, so
// that several daemons may one day share a store.
//
// Thread-safe; calls may block on disk or network. Errors besides those below: INTERNAL for I/O
// errors, DATA_LOSS for a damaged record. After such an error of Apply its change may or may not be
// seen by reads, and may or may not be there after a restart. The OK of a later Apply makes certain
// of all that reads showed before it.
class JobStore {
 public:
  virtual ~JobStore() = default;

  // Makes one change, wholly or not at all, and calls `done` with OK once it survives a crash of
  // the machine. job.revision must be one more than the stored one (1: the job must not be there
  // yet), and the events' numbers must follow the stored last_seq up to job.last_seq; else ABORTED,
  // nothing changed. ALREADY_EXISTS: revision 1 and the tenant's request id is taken by another
  // job. Calls that come while a write is under way share the next one.
  //
  // `done` is called once, on this thread before the call returns or on the store's own. It must
  // wait neither for another write nor for a lock that somebody holds over one. Of two changes with
  // one request id, that of the one that is written comes first. The change must stay as it is
  // until then.
  using Done = absl::AnyInvocable<void(absl::Status)>;
  virtual void Apply(std::shared_ptr<const JobChange> change, Done done) = 0;
  // The same, and waits. Not to be called by a `done`.
  absl::Status ApplyAndWait(std::shared_ptr<const JobChange> change);
  absl::Status ApplyAndWait(JobChange change) {
    return ApplyAndWait(std::make_shared<const JobChange>(std::move(change)));
  }

  // Whether other daemons write to it, too. Then what a read shows is certain: nobody shows what a
  // failed write may have left.
  virtual bool is_shared() const { return false; }

  // NOT_FOUND.
  virtual absl::StatusOr<Job> Read(absl::string_view job_id) const = 0;
  // The config's text. NOT_FOUND.
  virtual absl::StatusOr<std::string> ReadConfig(absl::string_view job_id) const = 0;
  // The job that a tenant's request id made; nullopt where there is none.
  virtual absl::StatusOr<std::optional<std::string>> FindRequest(
      absl::string_view tenant, absl::string_view request_id) const = 0;
  // Looks at a bounded number of records, so a page may be shorter than limit and still have a
  // next one.
  virtual absl::StatusOr<JobPage> List(const JobListQuery& query) const = 0;
  // Events numbered from_seq on, ascending: at most max_count, and no more after max_bytes of
  // stored form (but at least one where there is one). Empty where there is none.
  virtual absl::StatusOr<std::vector<JobEvent>> ReadEvents(absl::string_view job_id,
                                                           int64_t from_seq, size_t max_count,
                                                           size_t max_bytes) const = 0;
  // Calls `visit` with each job that has not ended, in no certain order, until it returns an
  // error, which is returned. Not to be called beside Apply.
  virtual absl::Status ForEachLive(const std::function<absl::Status(LiveJob job)>& visit) const = 0;

  // Forgets jobs that ended before a time, with their events and request ids: the oldest first, at
  // most max_jobs. Returns how many; fewer than max_jobs where no more are due.
  virtual absl::StatusOr<size_t> Prune(absl::Time ended_before, size_t max_jobs) = 0;
};

// The rule of Apply about revision and event numbers, for implementations. `stored` is null where
// the job is not there.
absl::Status CheckChange(const JobChange& change, const Job* stored);

// Events of one change lie together in records of a bounded size, each EncodeEvent, one behind the
// other: to write many records costs more than to read past some events.
struct EventRecord {
  int64_t last_seq = 0;  // of its last event
  std::string body;
};
std::vector<EventRecord> PackEvents(const std::vector<JobEvent>& events);

// Whether List shows a job; id and limit aside.
bool Matches(const JobListQuery& query, const Job& job);

}  // namespace npuc::jobs

#endif  // NPUC_SERVER_JOBS_JOB_STORE_H_
