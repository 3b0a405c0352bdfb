#ifndef NPUC_SERVER_JOBS_JOB_H_
#define NPUC_SERVER_JOBS_JOB_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/base/input_file.h"
#include "server/base/job_diagnostic.h"
#include "server/base/trace_context.h"

namespace npuc::jobs {

// A compile job and its events, as they are stored. Plain data; no wire types. The numbers of the
// enumerators are stored: never change or reuse them.

enum class JobState : uint8_t {
  kQueued = 1,
  kRunning = 2,
  kSucceeded = 3,
  kFailed = 4,
  kCancelled = 5,
  kExpired = 6,
};

// "QUEUED" ...
absl::string_view JobStateName(JobState state);
inline bool IsTerminal(JobState state) { return state >= JobState::kSucceeded; }

enum class FailureKind : uint8_t {
  kNone = 0,
  kInvalidInput = 1,
  kLimitExceeded = 2,
  kWorkerDied = 3,
  kInternal = 4,
  kInputLost = 5,
};

// "INVALID_INPUT" ...
absl::string_view FailureKindName(FailureKind kind);

struct JobArtifact {
  std::string name = {};
  uint64_t size_bytes = 0;
  std::string sha256 = {};

  friend bool operator==(const JobArtifact&, const JobArtifact&) = default;
};

// What was asked for. Never changes after acceptance. The config's text is stored apart from the
// record (JobStore::ReadConfig), since it is large and read once a run.
struct JobSpec {
  std::string config_name = {};
  std::vector<base::InputFile> inputs = {};  // MODEL_FILE first
  int32_t priority = 0;
  std::map<std::string, std::string> labels = {};
  absl::Duration timeout = absl::ZeroDuration();
  bool no_cache = false;
  std::optional<int64_t> model_info_time_seconds = {};  // since 1970
  // The request's, or one that was made at its acceptance; the span is the client's. Log lines have
  // the trace's id, and where it is sampled, the job's spans are recorded.
  base::TraceContext trace = {};
  std::string pinned_to = {};  // the only daemon that may run it; empty: any
  // Lists show them; empty where an older build stored the job.
  std::string core = {};            // of the config, by canonical name: "GRUS"
  std::string framework = {};       // "TF"
  std::string submitter = {};       // the identity
  std::string unknown_fields = {};  // what a newer build stored with it; kept as it is

  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};

struct Job {
  std::string id = {};
  std::string tenant = {};  // whose it is; empty while there is one tenant
  uint64_t revision = 0;    // 1 when created, one more with every stored change
  std::string request_id = {};
  std::string request_sha256 = {};  // of the whole request: tells a repeat from a reuse of the id
  JobSpec spec = {};
  std::string output_file = {};  // the config's OUTPUT_FILE
  std::string cache_key = {};    // CacheKey::ToString() of the result

  JobState state = JobState::kQueued;
  uint64_t accept_order = 0;  // ascending with acceptance; its place in the queue
  uint64_t fence = 0;         // number of the newest lease; results with another are stale
  std::string owner = {};     // kRunning: the daemon that has the lease ...
  absl::Time lease_until = absl::InfinitePast();  // ... and until when, if nobody hears of it
  int32_t attempts = 0;                           // leases given
  int32_t worker_losses = 0;                      // leases lost with a worker
  int32_t daemon_losses = 0;                      // leases lost with a daemon
  bool cache_hit = false;
  std::string stage = {};  // of the attempt under way
  double fraction = 0.0;   // of the attempt under way
  FailureKind failure_kind = FailureKind::kNone;
  // kFailed: why. kCancelled: the canceller's reason. kQueued: why it waits again.
  std::string reason = {};
  std::optional<JobState> expired_in = {};  // kExpired: the state in which the deadline found it
  std::vector<JobArtifact> artifacts = {};
  std::vector<base::JobDiagnostic> diagnostics = {};
  absl::Time create_time = absl::InfinitePast();
  absl::Time start_time = absl::InfinitePast();  // of the last attempt; InfinitePast: none yet
  absl::Time end_time = absl::InfinitePast();    // InfinitePast: not ended
  absl::Time deadline = absl::InfiniteFuture();
  int64_t last_seq = 0;             // of its newest event
  std::string unknown_fields = {};  // what a newer build stored with it; kept as it is

  const base::InputFile& model() const { return spec.inputs.front(); }
  // Jobs with the same non-empty key make the same result, so that one compile does for all of them
  // that are under way at once.
  const std::string& flight_key() const {
    static const std::string kNone;
    return spec.no_cache ? kNone : cache_key;
  }
};

// What the daemon must know of each job that has not ended, to put it in its place again: a small
// part of Job, so that a start with very many of them is quick.
struct LiveJob {
  std::string id = {};
  std::string tenant = {};
  JobState state = JobState::kQueued;
  int32_t priority = 0;
  uint64_t accept_order = 0;
  std::string flight_key = {};
  std::string pinned_to = {};
  absl::Time create_time = absl::InfinitePast();
  absl::Time deadline = absl::InfiniteFuture();
  std::vector<std::string> input_sha256s = {};

  friend bool operator==(const LiveJob&, const LiveJob&) = default;
};
LiveJob ToLiveJob(const Job& job);

struct StateChangedEvent {
  JobState state = JobState::kQueued;
  std::string reason = {};
  FailureKind failure_kind = FailureKind::kNone;
  bool cache_hit = false;
  friend bool operator==(const StateChangedEvent&, const StateChangedEvent&) = default;
};
struct ProgressEvent {
  std::string stage = {};
  double fraction = 0.0;
  friend bool operator==(const ProgressEvent&, const ProgressEvent&) = default;
};
struct LogEvent {
  std::string text = {};
  friend bool operator==(const LogEvent&, const LogEvent&) = default;
};
struct ArtifactEvent {
  JobArtifact artifact;
  friend bool operator==(const ArtifactEvent&, const ArtifactEvent&) = default;
};
struct DiagnosticEvent {
  base::JobDiagnostic diagnostic;
  friend bool operator==(const DiagnosticEvent&, const DiagnosticEvent&) = default;
};
using EventBody =
    std::variant<StateChangedEvent, ProgressEvent, LogEvent, ArtifactEvent, DiagnosticEvent>;

struct JobEvent {
  int64_t seq = 0;  // 1, 2, 3 ... in each job, without a gap
  absl::Time time = absl::InfinitePast();
  int32_t attempt = 0;
  EventBody body;

  friend bool operator==(const JobEvent&, const JobEvent&) = default;
};

// Stored form (proto/npuc/store/v1). Decode: DATA_LOSS where the bytes are not such a record;
// RecordTooNew (service_error.h) for an enumerator of a newer build. Times are kept to the
// microsecond.
std::string EncodeJobRecord(const Job& job);
absl::StatusOr<Job> DecodeJobRecord(absl::string_view bytes);
// The id is not part of it.
std::string EncodeLiveJob(const LiveJob& job);
absl::StatusOr<LiveJob> DecodeLiveJob(absl::string_view id, absl::string_view bytes);
// A record of events. Records put one behind the other are one record again.
std::string EncodeEvent(const JobEvent& event);
struct StoredEvent {
  JobEvent event;
  size_t bytes = 0;  // as stored
};
absl::StatusOr<std::vector<StoredEvent>> DecodeEvents(absl::string_view bytes);
// The warnings and notes that the artifact cache keeps beside the files of a result.
std::string EncodeResultMetadata(const std::vector<base::JobDiagnostic>& diagnostics);
absl::StatusOr<std::vector<base::JobDiagnostic>> DecodeResultMetadata(absl::string_view bytes);

// 27 bytes: "j" and 26 Crockford base-32 digits, the first 10 of them the time in milliseconds, the
// other 16 from `random_high` and `random_low` (40 bits of each).
std::string MakeJobId(absl::Time time, uint64_t random_high, uint64_t random_low);
bool IsValidJobId(absl::string_view id);
// The time that a valid id was made with.
absl::Time TimeOfJobId(absl::string_view id);

}  // namespace npuc::jobs

#endif  // NPUC_SERVER_JOBS_JOB_H_
