#include "tests/fault/sim_store.h"

#include <utility>

#include "compiler_core/base/status.h"

namespace npuc {

const char* PlantName(Plant plant) {
  static constexpr const char* kNames[kPlants] = {
      "none",           "lost-synced-write", "event-gap",       "event-repeat",
      "end-twice",      "forget-request-id", "early-prune",     "ignore-fence",
      "cancel-flight",  "drop-from-queue",   "no-bounds",       "no-single-flight",
      "mix-results",    "unbounded-retries", "no-lease-expiry", "expire-early",
      "no-weights",     "one-queue",         "cut-log",         "damage-is-death",
      "fail-unstarted", "count-host-deaths", "mix-tries",       "recover-others",
      "no-take-over",   "keep-expired",      "claim-twice",     "trust-entries",
      "blind-writes"};
  return kNames[static_cast<size_t>(plant)];
}

absl::Status SimStore::Dead() const {
  const bool is_dead = dead_ || IsDead(writer_);
  return is_dead ? absl::InternalError("the simulated daemon is dead") : absl::OkStatus();
}

absl::Status SimStore::Die() {
  if (shared_) {
    dead_writers_.insert(writer_);
  } else {
    dead_ = true;
  }
  return Dead();
}

// As a database does: the answer may be lost, a write that was made is not.
absl::Status SimStore::ApplyShared(const jobs::JobChange& change) {
  if (random_.Percent(faults_.crash_before)) return Die();
  if (plant_ == Plant::kBlindWrites && change.job.revision > 1) {
    jobs::JobChange blind = change;
    const absl::StatusOr<jobs::Job> stored = base_->Read(change.job.id);
    if (stored.ok()) {
      blind.job.revision = stored->revision + 1;
      blind.job.last_seq = stored->last_seq;
      for (jobs::JobEvent& event : blind.events) event.seq = ++blind.job.last_seq;
    }
    RETURN_IF_ERROR(Write(blind));
  } else {
    RETURN_IF_ERROR(Write(change));
  }
  const bool dies = random_.Percent(faults_.crash_after);
  if (!dies && !random_.Percent(faults_.fail_visible + faults_.fail_hidden)) {
    return absl::OkStatus();
  }
  hooks_.unanswered(change);
  return dies ? Die() : absl::InternalError("injected: written, and the answer is lost");
}

void SimStore::KeepForCrash() {
  if (synced_ == nullptr) synced_ = base_->Clone();
}

void SimStore::Restart() {
  if (synced_ != nullptr && (lose_for_certain_ || random_.Percent(50))) {
    base_ = std::move(synced_);
  } else if (hidden_.has_value() && random_.Percent(50)) {
    // A write that was refused as not the next one would have been refused before, too.
    base_->ApplyNow(*hidden_).IgnoreError();
  }
  if (cut_ != nullptr) base_ = std::move(cut_);
  synced_.reset();
  hidden_.reset();
  lose_for_certain_ = broken_ = dead_ = false;
  dead_writers_.clear();
}

absl::Status SimStore::Write(const jobs::JobChange& change) {
  if (plant_ == Plant::kForgetRequestId && change.job.revision == 1) {
    jobs::JobChange without = change;
    without.job.request_id.clear();
    return base_->ApplyNow(without);
  }
  return base_->ApplyNow(change);
}

absl::Status SimStore::ApplyNow(const jobs::JobChange& change) {
  RETURN_IF_ERROR(Dead());
  const int writer = writer_;
  if (random_.Percent(faults_.slow)) hooks_.wait();
  if (random_.Percent(faults_.nested)) hooks_.between(change.job.revision == 1);
  writer_ = writer;
  RETURN_IF_ERROR(Dead());
  if (broken_) return absl::InternalError("injected: the store takes no writes");
  if (random_.Percent(faults_.fail_clean)) return absl::InternalError("injected: nothing written");
  if (shared_) return ApplyShared(change);
  if (random_.Percent(faults_.fail_hidden)) {
    broken_ = true;
    hidden_ = change;
    return absl::InternalError("injected: written to the log perhaps");
  }
  if (random_.Percent(faults_.crash_before)) return Die();
  if (random_.Percent(faults_.fail_visible)) {
    KeepForCrash();
    RETURN_IF_ERROR(Write(change));
    return absl::InternalError("injected: written, not synced");
  }
  if (plant_ == Plant::kLostSyncedWrite && random_.Percent(10)) {
    KeepForCrash();
    lose_for_certain_ = true;
    return Write(change);
  }
  if (plant_ == Plant::kCutLog && random_.Percent(10)) cut_ = base_->Clone();
  RETURN_IF_ERROR(Write(change));
  if (!lose_for_certain_) synced_.reset();
  return random_.Percent(faults_.crash_after) ? Die() : Dead();
}

absl::StatusOr<jobs::Job> SimStore::Read(absl::string_view job_id) const {
  RETURN_IF_ERROR(Dead());
  return base_->Read(job_id);
}

absl::StatusOr<std::string> SimStore::ReadConfig(absl::string_view job_id) const {
  RETURN_IF_ERROR(Dead());
  return base_->ReadConfig(job_id);
}

absl::StatusOr<std::optional<std::string>> SimStore::FindRequest(
    absl::string_view tenant, absl::string_view request_id) const {
  RETURN_IF_ERROR(Dead());
  return base_->FindRequest(tenant, request_id);
}

absl::StatusOr<jobs::JobPage> SimStore::List(const jobs::JobListQuery& query) const {
  RETURN_IF_ERROR(Dead());
  return base_->List(query);
}

absl::StatusOr<std::vector<jobs::JobEvent>> SimStore::ReadEvents(absl::string_view job_id,
                                                                 int64_t from_seq, size_t max_count,
                                                                 size_t max_bytes) const {
  RETURN_IF_ERROR(Dead());
  if (plant_ == Plant::kEventRepeat && from_seq > 1) --from_seq;
  ASSIGN_OR_RETURN(std::vector<jobs::JobEvent> events,
                   base_->ReadEvents(job_id, from_seq, max_count, max_bytes));
  if (plant_ == Plant::kEventGap) {
    std::erase_if(events, [](const jobs::JobEvent& event) { return event.seq == 3; });
  }
  if (plant_ == Plant::kEndTwice && !events.empty()) {
    const auto* state = std::get_if<jobs::StateChangedEvent>(&events.back().body);
    if (state != nullptr && jobs::IsTerminal(state->state)) {
      events.push_back(events.back());
      ++events.back().seq;
    }
  }
  return events;
}

absl::Status SimStore::ForEachLive(
    const std::function<absl::Status(jobs::LiveJob job)>& visit) const {
  RETURN_IF_ERROR(Dead());
  return base_->ForEachLive(visit);
}

absl::StatusOr<size_t> SimStore::Prune(absl::Time ended_before, size_t max_jobs) {
  RETURN_IF_ERROR(Dead());
  return base_->Prune(ended_before, max_jobs);
}

}  // namespace npuc
