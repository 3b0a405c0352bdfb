#include "tests/fault/sim_history.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace npuc {

void SimHistory::Accepted(const Request& request, const jobs::Job& job, bool already_existed,
                          absl::Time clock, absl::Time sent) {
  if (!request.id.empty()) {
    const auto [owner, is_new] = owners_.emplace(std::pair(request.tenant, request.id), job.id);
    if (!is_new && owner->second != job.id) {
      if (MayBeForgotten(owner->second, clock)) {
        owner->second = job.id;
      } else {
        Break(absl::StrCat("one job per request id: ", request.id, " of ", request.tenant,
                           " made jobs ", owner->second, " and ", job.id));
      }
    }
  } else if (already_existed) {
    Break(absl::StrCat("job ", job.id, " is said to have existed, without a request id"));
  }
  if (job.tenant != request.tenant || job.request_sha256 != request.sha256) {
    Break(absl::StrCat("job ", job.id, " is not what was asked for"));
  }
  if (job.create_time > newest_clock_) Break(absl::StrCat("job ", job.id, " is from the future"));
  // An answer that comes long after the first, failed try is about a job of that time.
  const auto refused = first_refused_.find({request.tenant, request.id});
  jobs_.emplace(job.id, JobFacts{request, std::min(clock, job.create_time),
                                 refused == first_refused_.end() ? sent : refused->second});
  Shown(job);
}

void SimHistory::Refused(const Request& request, absl::string_view reason) {
  if (request.id.empty()) return;
  const std::pair name(request.tenant, request.id);
  first_refused_.emplace(name, steady_);
  if (reason != "REQUEST_ID_REUSED") {
    refused_[name].insert(request.sha256);
    return;
  }
  const auto owner = owners_.find(name);
  if (owner == owners_.end() || jobs_.at(owner->second).request.sha256 != request.sha256) return;
  // Once the first job was forgotten, a try that seemed to fail may have made one under its id.
  std::set<std::string> others = refused_[name];
  others.erase(request.sha256);
  if (!others.empty() && MayBeForgotten(owner->second, newest_clock_)) return;
  Break(absl::StrCat("a repeat of request ", request.id, " was taken for another request"));
}

void SimHistory::Shown(const jobs::Job& job) {
  const auto [it, is_new] = shown_.emplace(job.id, std::pair(job.revision, job.state));
  if (is_new) return;
  auto& [revision, state] = it->second;
  if (job.revision < revision) {
    Break(absl::StrCat("what was told is true: job ", job.id, " was at revision ", revision,
                       " and is at ", job.revision));
  }
  if (jobs::IsTerminal(state) && job.state != state) {
    Break(absl::StrCat("one end: job ", job.id, " was ", jobs::JobStateName(state), " and is ",
                       jobs::JobStateName(job.state)));
  }
  it->second = {job.revision, job.state};
}

bool SimHistory::MayBeForgotten(const std::string& id, absl::Time clock) const {
  const auto facts = jobs_.find(id);
  return facts == jobs_.end() ||
         std::max(clock, newest_clock_) - facts->second.accepted_clock >= retention_;
}

void SimHistory::NotFound(const std::string& id, absl::Time clock) {
  if (jobs_.contains(id) && !MayBeForgotten(id, clock)) {
    Break(absl::StrCat("nothing is lost: accepted job ", id, " is not found"));
  }
}

void SimHistory::Claimed(const std::string& job_id, int daemon, absl::Time until) {
  const auto found = claims_.find(job_id);
  if (found != claims_.end() && found->second.first != daemon && found->second.second > steady_) {
    Break(absl::StrCat("a claim is one daemon's: ", job_id, " was given to ", found->second.first,
                       " and ", daemon));
  }
  claims_[job_id] = {daemon, until};
}

void SimHistory::ClaimOver(const std::string& job_id, int daemon) {
  const auto found = claims_.find(job_id);
  if (found != claims_.end() && found->second.first == daemon) claims_.erase(found);
}

void SimHistory::AllClaimsOver(int daemon) {
  std::erase_if(claims_, [&](const auto& claim) { return claim.second.first == daemon; });
}

int SimHistory::RunBegan(const jobs::Lease& lease, int key, bool shared, absl::Time steady,
                         int daemon) {
  if (damaged_.contains(lease.job_id)) {
    Break(absl::StrCat("a damaged input is no worker's death: job ", lease.job_id,
                       " is tried again"));
  }
  for (const RunFacts& run : runs_) {
    if (run.lease == lease) {
      Break(absl::StrCat("a fence is new: lease ", lease.fence, " of ", lease.job_id, " twice"));
    }
    if (shared && run.shared && run.alive && !run.may_be_over && run.key == key) {
      Break(absl::StrCat("one compile at a time: ", lease.job_id, " and ", run.lease.job_id,
                         " are equal, and both run"));
    }
  }
  runs_.push_back({.lease = lease,
                   .key = key,
                   .shared = shared,
                   .alive = true,
                   .daemon = daemon,
                   .heard = steady});
  return static_cast<int>(runs_.size()) - 1;
}

void SimHistory::RunOver(const jobs::Lease& lease) {
  for (RunFacts& run : runs_) {
    if (run.lease == lease) run.alive = false;
  }
}

void SimHistory::AllRunsOver(int daemon) {
  for (RunFacts& run : runs_) {
    if (run.daemon != daemon) continue;
    run.daemon_died = true;
    run.alive = false;
  }
}

void SimHistory::DaemonsUnheardSince(absl::Time steady) {
  for (RunFacts& run : runs_) {
    if (run.heard <= steady) run.daemon_died = run.may_be_over = true;
  }
}

void SimHistory::RunsUnheardSince(absl::Time steady, int daemon) {
  for (RunFacts& run : runs_) {
    if (run.daemon == daemon && run.heard <= steady) run.alive = false;
  }
}

std::string SimHistory::Report(int run, int key) {
  std::string name = absl::StrCat("k", key, "/r", run, ".", reports_.size());
  reports_[name] = {.run = run, .key = key, .was_alive = alive(run)};
  return name;
}

void SimHistory::Reported(const std::string& name, const absl::Status& status) {
  ReportFacts& report = reports_.at(name);
  report.answer = status;
  if (!status.ok()) RunMayBeOver(report.run);
  if (status.ok() && !report.was_alive) {
    Break(absl::StrCat("no stale result: ", name, " was taken from a run that had lost its lease"));
  }
}

void SimHistory::Watched(Watcher& watcher, const std::vector<jobs::JobEvent>& events) {
  for (const jobs::JobEvent& event : events) {
    const auto due = static_cast<int64_t>(watcher.seen.size()) + 1;
    if (event.seq != due) {
      Break(absl::StrCat("no event gap or repeat: a watcher of ", watcher.job_id, " got event ",
                         event.seq, " where ", due, " was due"));
    }
    watcher.seen.push_back(jobs::EncodeEvent(event));
  }
}

void SimHistory::CheckResultName(const std::string& job_id, const std::string& name, int key) {
  if (name == CachedName(key)) return;
  const auto report = reports_.find(name);
  if (report == reports_.end()) {
    Break(absl::StrCat("job ", job_id, " has result '", name, "', which nobody made for it"));
    return;
  }
  if (report->second.key != key) {
    Break(absl::StrCat("job ", job_id, " wants result ", key, " and has ", name));
  }
  if (!report->second.was_alive || absl::IsAborted(report->second.answer)) {
    Break(absl::StrCat("no stale result: job ", job_id, " has ", name));
  }
}

void SimHistory::CheckEnd(const jobs::Job& job, const JobFacts& facts) {
  switch (job.state) {
    case jobs::JobState::kQueued:
    case jobs::JobState::kRunning:
      Break(absl::StrCat("every job ends: ", job.id, " is ", jobs::JobStateName(job.state),
                         " for ever"));
      return;
    case jobs::JobState::kSucceeded:
      if (job.artifacts.size() != 1) {
        Break(absl::StrCat("job ", job.id, " succeeded with ", job.artifacts.size(),
                           " artifacts where one was made"));
      } else {
        CheckResultName(job.id, job.artifacts[0].sha256, facts.request.key);
      }
      return;
    case jobs::JobState::kFailed:
      if (job.failure_kind == jobs::FailureKind::kWorkerDied) {
        const bool own = job.worker_losses >= limits_.max_worker_losses ||
                         job.daemon_losses >= limits_.max_daemon_losses;
        if (!own && job.attempts > 0 && facts.request.no_cache) {
          Break(absl::StrCat("job ", job.id, " failed after ", job.worker_losses, " losses"));
        }
      } else {
        CheckResultName(job.id, job.reason, facts.request.key);
      }
      return;
    case jobs::JobState::kCancelled:
      if (!cancels_.contains(job.id)) {
        Break(absl::StrCat("a cancel harms no other: ", job.id, " is CANCELLED unasked"));
      }
      return;
    case jobs::JobState::kExpired:
      // At a restart the clock says how much of the timeout is left, and that much then passes,
      // also where the clock is put back meanwhile.
      if (steady_ + clock_lead_ < job.deadline && steady_ - facts.sent_steady < job.spec.timeout) {
        Break(absl::StrCat("job ", job.id, " is EXPIRED before its deadline"));
      }
      return;
  }
}

// The events of a job are the way of a job: QUEUED (RUNNING QUEUED)* ... one end, nothing after it.
void SimHistory::CheckStory(const jobs::Job& job, const std::vector<jobs::JobEvent>& events) {
  jobs::JobState state = jobs::JobState::kExpired;
  int32_t attempts = 0;
  int64_t seq = 0;
  int ends = 0;
  for (const jobs::JobEvent& event : events) {
    if (event.seq != ++seq) {
      Break(absl::StrCat("no event gap or repeat: job ", job.id, " has event ", event.seq,
                         " where ", seq, " was due"));
    }
    if (ends > 0) Break(absl::StrCat("one end: job ", job.id, " goes on after it"));
    const auto* change = std::get_if<jobs::StateChangedEvent>(&event.body);
    if (change == nullptr) continue;
    if (change->state == jobs::JobState::kRunning) {
      if (state != jobs::JobState::kQueued || event.attempt != ++attempts) {
        Break(absl::StrCat("job ", job.id, " runs at event ", event.seq, " as attempt ",
                           event.attempt));
      }
    } else if (change->state == jobs::JobState::kQueued) {
      if (seq != 1 && state != jobs::JobState::kRunning) {
        Break(absl::StrCat("job ", job.id, " is queued at event ", event.seq));
      }
    } else {
      ++ends;
    }
    state = change->state;
  }
  if (state != job.state || ends != 1 || seq != job.last_seq) {
    Break(absl::StrCat("job ", job.id, " is ", jobs::JobStateName(job.state), " with ",
                       job.last_seq, " events; they say ", jobs::JobStateName(state), ", ", ends,
                       " ends, ", seq));
  }
}

// A loss counts where a worker died, and not where its host did. Any run for the same result may
// have been the job's.
void SimHistory::CheckLosses(const jobs::Job& job, const JobFacts& facts) {
  const auto died = std::count_if(runs_.begin(), runs_.end(), [&](const RunFacts& run) {
    return run.key == facts.request.key && run.worker_died;
  });
  const auto left = std::count_if(runs_.begin(), runs_.end(), [&](const RunFacts& run) {
    return run.key == facts.request.key && run.daemon_died;
  });
  const auto lost = lost_leases_.find(job.id);
  if (job.daemon_losses > left + (lost == lost_leases_.end() ? 0 : lost->second)) {
    Break(absl::StrCat("a daemon's death is its own jobs' alone: job ", job.id, " has ",
                       job.daemon_losses, " losses, and ", left, " runs were left"));
  }
  if (job.worker_losses <= died) return;
  Break(absl::StrCat("the host's deaths do not count: job ", job.id, " has ", job.worker_losses,
                     " losses, and ", died, " workers died"));
}

void SimHistory::Final(const jobs::Job& job, const std::vector<jobs::JobEvent>& events) {
  Shown(job);
  const auto facts = jobs_.find(job.id);
  if (facts == jobs_.end()) return;
  CheckEnd(job, facts->second);
  CheckLosses(job, facts->second);
  CheckStory(job, events);
  if (job.worker_losses > limits_.max_worker_losses ||
      job.daemon_losses > limits_.max_daemon_losses) {
    Break(absl::StrCat("retries are bounded: job ", job.id, " was lost ", job.worker_losses,
                       " times with a worker and ", job.daemon_losses, " times with the daemon"));
  }
}

void SimHistory::FinalWatcher(const Watcher& watcher, const std::vector<jobs::JobEvent>& events) {
  for (size_t i = 0; i < watcher.seen.size(); ++i) {
    if (i >= events.size() || watcher.seen[i] != jobs::EncodeEvent(events[i])) {
      Break(absl::StrCat("an event is for ever: event ", i + 1, " of ", watcher.job_id,
                         " is not what a watcher was told"));
      return;
    }
  }
}

}  // namespace npuc
