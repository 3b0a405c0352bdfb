#ifndef NPUC_TESTS_FAULT_SIM_HISTORY_H_
#define NPUC_TESTS_FAULT_SIM_HISTORY_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/jobs/job_service.h"

namespace npuc {

// What the clients, watchers and workers of a simulation were told, and the rules that all of it
// together must keep. Knows nothing of how the service works. The first broken rule is kept, in
// words.
class SimHistory {
 public:
  SimHistory(jobs::RetryLimits limits, absl::Duration retention)
      : limits_(limits), retention_(retention) {}

  // One try of a client to submit a job.
  struct Request {
    std::string tenant = {};
    std::string id = {};      // may be empty
    std::string sha256 = {};  // of its content
    int key = 0;              // which result it wants
    bool no_cache = false;
  };
  // An answer with a job. `clock` is the daemon's; `sent`: when it was asked, steady.
  void Accepted(const Request& request, const jobs::Job& job, bool already_existed,
                absl::Time clock, absl::Time sent);
  // An answer that no job was made.
  void Refused(const Request& request, absl::string_view reason);

  // A job as it was shown.
  void Shown(const jobs::Job& job);
  // A known job was not found.
  void NotFound(const std::string& id, absl::Time clock);
  // Somebody asked for the end of a job, whether that was answered or not.
  void CancelAsked(const std::string& id) { cancels_.insert(id); }
  // Moves the newest time that the daemon's clock has shown, and the time that has really passed.
  void SawClock(absl::Time clock, absl::Time steady) {
    newest_clock_ = std::max(newest_clock_, clock);
    steady_ = std::max(steady_, steady);
    clock_lead_ = std::max(clock_lead_, clock - steady);
  }

  // A run began. Returns its number.
  int RunBegan(const jobs::Lease& lease, int key, bool shared, absl::Time steady, int daemon = 0);
  // A daemon has a job to start, until ClaimOver.
  void Claimed(const std::string& job_id, int daemon, absl::Time until);
  void ClaimOver(const std::string& job_id, int daemon);
  void AllClaimsOver(int daemon);
  // A run found the input of its job damaged, and that was stored: the job is not tried again.
  void SawDamage(const std::string& job_id) { damaged_.insert(job_id); }
  // The holder of a run heard from the service, or a call for it failed.
  void RunHeard(int run, absl::Time steady) { runs_.at(static_cast<size_t>(run)).heard = steady; }
  // The run is over for certain: nothing that it makes may be used from now on.
  void RunOver(int run) { runs_.at(static_cast<size_t>(run)).alive = false; }
  void RunOver(const jobs::Lease& lease);
  // The end of a run was reported, and how the service took it is not known.
  void RunMayBeOver(int run) { runs_.at(static_cast<size_t>(run)).may_be_over = true; }
  // The worker of a run died or hung, perhaps by its job's doing.
  void WorkerDied(int run) { runs_.at(static_cast<size_t>(run)).worker_died = true; }
  // A daemon died, and all that it ran.
  void AllRunsOver(int daemon = 0);
  // The lease of a job may be stored, and was given to nobody.
  void LeaseLost(const std::string& job_id) { ++lost_leases_[job_id]; }
  // Runs that were not heard of since `steady` may be taken from their daemons.
  void DaemonsUnheardSince(absl::Time steady);
  // Leases that were not renewed since `steady` are over.
  void RunsUnheardSince(absl::Time steady, int daemon);
  bool alive(int run) const { return runs_.at(static_cast<size_t>(run)).alive; }

  // A result that a run is about to report: the name under which it will be found again.
  std::string Report(int run, int key);
  // How that call was answered.
  void Reported(const std::string& name, const absl::Status& status);
  // The name of the result that is in the cache for a key.
  static std::string CachedName(int key) { return absl::StrCat("k", key, "/cache"); }

  // One watcher of one job was given events from `next_seq` on.
  struct Watcher {
    std::string job_id;
    std::vector<std::string> seen = {};  // stored form
  };
  void Watched(Watcher& watcher, const std::vector<jobs::JobEvent>& events);

  // The end of the simulation, when all has come to rest: what the service says of a job, and all
  // its events. Every accepted job and every watched one must be passed.
  void Final(const jobs::Job& job, const std::vector<jobs::JobEvent>& events);
  void FinalWatcher(const Watcher& watcher, const std::vector<jobs::JobEvent>& events);

  void Break(std::string rule) {
    if (!violation_.has_value()) violation_ = std::move(rule);
  }
  const std::optional<std::string>& violation() const { return violation_; }

  struct JobFacts {
    Request request;
    absl::Time accepted_clock;
    absl::Time sent_steady;  // when it was first sent
  };
  const std::map<std::string, JobFacts>& jobs() const { return jobs_; }
  bool MayBeForgotten(const std::string& id, absl::Time clock) const;

 private:
  struct RunFacts {
    jobs::Lease lease;
    int key = 0;
    bool shared = false;
    bool alive = true;
    bool may_be_over = false;
    bool worker_died = false;
    int daemon = 0;
    bool daemon_died = false;  // or was not heard of
    absl::Time heard;
  };
  struct ReportFacts {
    int run = 0;
    int key = 0;
    bool was_alive = false;
    absl::Status answer = absl::UnknownError("none yet");
  };

  void CheckEnd(const jobs::Job& job, const JobFacts& facts);
  void CheckResultName(const std::string& job_id, const std::string& name, int key);
  void CheckLosses(const jobs::Job& job, const JobFacts& facts);
  void CheckStory(const jobs::Job& job, const std::vector<jobs::JobEvent>& events);

  const jobs::RetryLimits limits_;
  const absl::Duration retention_;
  std::optional<std::string> violation_;
  std::map<std::string, JobFacts> jobs_;                               // accepted, by id
  std::map<std::pair<std::string, std::string>, std::string> owners_;  // tenant, request id -> job
  // Contents that were sent under a request id, and not accepted for all that is known.
  std::map<std::pair<std::string, std::string>, std::set<std::string>> refused_;
  std::map<std::pair<std::string, std::string>, absl::Time> first_refused_;  // steady, by both
  std::map<std::string, std::pair<uint64_t, jobs::JobState>> shown_;  // newest revision and state
  std::set<std::string> cancels_;
  std::set<std::string> damaged_;  // jobs
  std::vector<RunFacts> runs_;
  std::map<std::string, std::pair<int, absl::Time>> claims_;  // job -> daemon, and until when
  std::map<std::string, int> lost_leases_;
  std::map<std::string, ReportFacts> reports_;
  absl::Time newest_clock_ = absl::InfinitePast();
  absl::Time steady_ = absl::InfinitePast();
  absl::Duration clock_lead_ = -absl::InfiniteDuration();  // the most that the clock was ahead
};

}  // namespace npuc

#endif  // NPUC_TESTS_FAULT_SIM_HISTORY_H_
