#ifndef NPUC_SERVER_JOBS_JOB_BOARD_H_
#define NPUC_SERVER_JOBS_JOB_BOARD_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/jobs/job_queue.h"
#include "server/jobs/transitions.h"

namespace npuc {

// A job that has not ended, as far as the board needs to know it.
struct BoardJob {
  QueuedJob place;
  std::string flight_key = {};  // empty: it shares no run
  std::string pinned_to = {};   // the only daemon that may run it; empty: any
  absl::Time due = absl::InfiniteFuture();
};

// The right of one daemon to run one job, and those after it that the run is passed on to.
using ClaimId = uint64_t;
struct BoardClaim {
  ClaimId id = 0;
  std::string owner = {};  // the daemon
  std::string job_id = {};
  uint64_t fence = 0;  // of the job's lease; 0: it has none yet

  friend bool operator==(const BoardClaim&, const BoardClaim&) = default;
};

// How a job that has not ended stands.
struct BoardView {
  enum class Place : uint8_t { kQueue, kClaimed, kFollows, kRuns };
  Place place = Place::kQueue;
  QueueView queue = {};  // where kQueue
};

// What is decided between jobs, and between daemons: the order of the jobs that wait, quotas, who
// runs which job until when, and which jobs follow the run of an equal one. The job store has the
// truth about each job; the board may be wrong about a job for a while, and a daemon that claims
// such a job finds that out there.
//
// `owner` is a daemon's name. `now` never falls, and is one clock for all users of a board.
// Thread-safe; nothing blocks on a disk.
class JobBoard {
 public:
  virtual ~JobBoard() = default;

  // Whether a daemon that starts has to put on the board what the store has and the board lacks.
  virtual bool NeedsFill() const = 0;
  // The number of a job that comes now: ascending, and above those of all that are or were here.
  virtual uint64_t NextOrder() = 0;

  // A place for a job about to be accepted; as JobQueue's. Each success is followed by one Accept
  // or one Release.
  virtual absl::Status Reserve(absl::string_view tenant) = 0;
  virtual void Release(absl::string_view tenant) = 0;
  // The job waits from now on, or follows the run of an equal one. A job that does so already, or
  // is claimed, stays as it is, and gives its reservation back.
  virtual void Accept(const BoardJob& job, bool reserved) = 0;
  // The job has ended.
  virtual void Forget(absl::string_view job_id) = 0;
  virtual bool Has(absl::string_view job_id) const = 0;

  // Takes the next job that the owner may start; the equal ones follow it. nullopt: there is none.
  virtual std::optional<BoardClaim> Claim(absl::string_view owner, absl::Time now) = 0;
  // Puts a claim on the board that was found in the store, with the job's lease, held until then. A
  // job that is claimed already stays as it is.
  virtual void Restore(const BoardJob& job, absl::string_view owner, uint64_t fence,
                       absl::Time held_until) = 0;
  // The claim's job has a lease. False: the claim is over.
  virtual bool Start(ClaimId claim, uint64_t fence, absl::Time now) = 0;
  // The owner is alive. False: the claim is over.
  virtual bool Renew(ClaimId claim, absl::Time now) = 0;
  // The claim's job runs no more, and the run goes on for the eldest follower. nullopt: there is
  // none, or the claim is over.
  virtual std::optional<BoardClaim> PassOn(ClaimId claim, absl::Time now) = 0;
  // The run has a result: nobody follows it any more, and the slot is free. Returns those that did;
  // they wait for their result until Forget or End.
  virtual std::vector<std::string> Close(ClaimId claim, absl::Time now) = 0;
  // The claim is over. Its followers go back to their places, and its job where that is said.
  virtual void End(ClaimId claim, bool job_returns, absl::Time now) = 0;

  // Claims that were not renewed for the board's time; those of others for twice that, since the
  // owner of a worker that hangs sees to it first.
  virtual std::vector<BoardClaim> Expired(absl::string_view owner, absl::Time now) const = 0;
  virtual std::vector<BoardClaim> ClaimsOf(absl::string_view owner) const = 0;
  // Claims of an owner whose job was ended by another daemon.
  virtual std::vector<BoardClaim> Orphaned(absl::string_view owner) const = 0;
  // Jobs past their deadline.
  virtual std::vector<std::string> Due(absl::Time now) const = 0;

  // nullopt: it is not here.
  virtual std::optional<BoardView> Look(absl::string_view job_id) const = 0;
  struct Counts {
    int64_t queued = 0;
    int64_t running = 0;
  };
  virtual Counts GetCounts() const = 0;
  // `wake` is called where Claim may give a job that it did not give before, on any thread; it must
  // not call back. Returns what ends that.
  using Unsubscribe = std::function<void()>;
  virtual Unsubscribe Subscribe(std::function<void()> wake) = 0;
};

}  // namespace npuc

#endif  // NPUC_SERVER_JOBS_JOB_BOARD_H_
