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

namespace npuc::jobs {

// The part of a live job (QUEUED or RUNNING) that decides between jobs.
struct BoardJob {
  QueuedJob place;
  std::string flight_key = {};  // empty: it shares no run
  std::string pinned_to = {};   // the only daemon that may run it; empty: any
  absl::Time due = absl::InfiniteFuture();
};

// The right of one daemon to run one job. When the run is passed on, the claim stands for the next
// job.
using ClaimId = uint64_t;
struct BoardClaim {
  ClaimId id = 0;
  std::string owner = {};  // the daemon
  std::string job_id = {};
  uint64_t fence = 0;  // of the job's lease; 0: it has none yet

  friend bool operator==(const BoardClaim&, const BoardClaim&) = default;
};

// The standing of a live job.
struct BoardView {
  enum class Place : uint8_t { kQueue, kClaimed, kFollows, kRuns };
  Place place = Place::kQueue;
  QueueView queue = {};  // where kQueue
};

// Decides between jobs and between daemons: the order of the jobs that wait, quotas, which daemon
// runs which job and until when, and which jobs follow the run of an equal one. The job store has
// the truth about each job. The board may be wrong about a job for a while; a daemon that claims
// such a job finds that out in the store, and corrects the board.
//
// `owner` is a daemon's name. `now` never falls, and is one clock for all users of a board.
// Thread-safe; no call blocks on a disk.
class JobBoard {
 public:
  virtual ~JobBoard() = default;

  // True: a daemon that starts puts on the board what the store has and the board lacks.
  virtual bool NeedsFill() const = 0;
  // The number of a new job: above the numbers of all jobs that are or were here.
  virtual uint64_t NextOrder() = 0;

  // A place for a job about to be accepted, as JobQueue's. Each success is followed by one Accept
  // or one Release.
  virtual absl::Status Reserve(absl::string_view tenant) = 0;
  virtual void Release(absl::string_view tenant) = 0;
  // The job waits from now on, or follows the run of an equal job. A job that does so already, or
  // is claimed, stays as it is, and its reservation is released.
  virtual void Accept(const BoardJob& job, bool reserved) = 0;
  // The job has ended.
  virtual void Forget(absl::string_view job_id) = 0;
  virtual bool Has(absl::string_view job_id) const = 0;

  // Takes the next job that the owner may start; equal jobs that wait follow it. nullopt: there is
  // none.
  virtual std::optional<BoardClaim> Claim(absl::string_view owner, absl::Time now) = 0;
  // The daemon cannot read the job, others may: Claim does not give it for a while.
  virtual void Avoid(absl::string_view /*job_id*/) {}
  // Puts the claim behind a stored lease on the board, which is held until then. A job that is
  // claimed already, or follows a run, stays as it is.
  virtual void Restore(const BoardJob& job, absl::string_view owner, uint64_t fence,
                       absl::Time held_until) = 0;
  // The claim's job has a lease. False: the claim is over.
  virtual bool Start(ClaimId claim, uint64_t fence, absl::Time now) = 0;
  // The owner is alive. False: the claim is over.
  virtual bool Renew(ClaimId claim, absl::Time now) = 0;
  // The claim's job runs no more. The claim stands for its eldest follower now. nullopt: there is
  // no follower, or the claim is over. A job that was passed over without having ended returns to
  // its place with the next Start or End.
  virtual std::optional<BoardClaim> PassOn(ClaimId claim, absl::Time now) = 0;
  // The run has a result: its slot is free, and equal jobs that come now do not follow it. Returns
  // its followers; they wait for their result until Forget or End.
  virtual std::vector<std::string> Close(ClaimId claim, absl::Time now) = 0;
  // The claim is over. Its job and its followers return to their places, if they have not ended.
  virtual void End(ClaimId claim, absl::Time now) = 0;

  // The owner's claims that were not renewed for the board's time.
  virtual std::vector<BoardClaim> Expired(absl::string_view owner, absl::Time now) const = 0;
  // Takes over the claims of other owners that were not renewed for twice the board's time: an
  // owner that lives sees to its own expired claims first. A taken claim is over for its old owner,
  // as the answer to its next call says. If the job has no lease, the job returns to its place. If
  // it has one, the new owner gets a claim of its own, stores that the lease is lost, and ends the
  // claim. That claim has expired already: if the owner fails, each daemon tries again.
  virtual std::vector<BoardClaim> TakeExpired(absl::string_view owner, absl::Time now) = 0;
  // Takes over the owner's own claims in the same way: it had them before it was started again.
  virtual std::vector<BoardClaim> TakeOwn(absl::string_view owner, absl::Time now) = 0;
  // The owner's claims whose job was ended by another daemon.
  virtual std::vector<BoardClaim> Orphaned(absl::string_view owner) const = 0;
  // Jobs past their deadline.
  virtual std::vector<std::string> Due(absl::Time now) const = 0;

  // nullopt: the job is not here.
  virtual std::optional<BoardView> Look(absl::string_view job_id) const = 0;
  // A look at a job that was just accepted here. It waits for nobody, so it is an estimate where
  // the board is not in memory.
  virtual std::optional<BoardView> LookAtNew(absl::string_view job_id,
                                             absl::string_view /*tenant*/) const {
    return Look(job_id);
  }
  struct Counts {
    int64_t queued = 0;
    int64_t running = 0;
  };
  virtual Counts GetCounts() const = 0;
  // `wake` is called when Claim may give a job that it did not give before, on any thread; it must
  // not call back. The returned function ends the subscription.
  using Unsubscribe = std::function<void()>;
  virtual Unsubscribe Subscribe(std::function<void()> wake) = 0;
};

}  // namespace npuc::jobs

#endif  // NPUC_SERVER_JOBS_JOB_BOARD_H_
