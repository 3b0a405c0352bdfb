#include "server/pg/change_feed.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

namespace npuc::pg {
namespace {

constexpr char kChannel[] = "npuc";
// A look reads so many writes of one lane; a statement so many records.
constexpr int64_t kWritesPerLook = 64;
constexpr size_t kJobsPerRead = 500;
// A hint that comes wakes the listener; so long it waits at most, so that it can be stopped.
constexpr absl::Duration kWait = absl::Milliseconds(200);

}  // namespace

ChangeFeed::ChangeFeed(Sessions* sessions, Node* node, ChangeFeedOptions options)
    : sessions_(sessions),
      node_(node),
      options_(options),
      hints_(WithoutSync(sessions->options()), /*max_open=*/1) {}

ChangeFeed::~ChangeFeed() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  stop_.NotifyAll();
  for (std::thread* thread : {&announcer_, &listener_}) {
    if (thread->joinable()) thread->join();
  }
}

bool ChangeFeed::stopping() const {
  const MutexLock lock(mutex_);
  return stopping_;
}

absl::Status ChangeFeed::Begin() {
  ASSIGN_OR_RETURN(const Rows rows, sessions_->Read("SELECT incarnation, commit_no FROM lane", {}));
  known_.clear();
  for (size_t row = 0; row < rows.size(); ++row) known_[rows.Int(row, 0)] = rows.Int(row, 1);
  return absl::OkStatus();
}

void ChangeFeed::Start(Listener listener) {
  announcer_ = std::thread([this] { AnnounceLoop(); });
  listener_ = std::thread([this, listener = std::move(listener)] {
    options_.has_hints ? ListenLoop(listener) : PollLoop(listener);
  });
}

void ChangeFeed::Announce() {
  if (!options_.has_hints) return;
  {
    const MutexLock lock(mutex_);
    has_written_ = true;
  }
  changed_.NotifyAll();
}

// Or until it is stopped. A write does not wake it.
void ChangeFeed::WaitUntil(SteadyTime time) {
  const MutexLock lock(mutex_);
  while (!stopping_ && stop_.WaitUntil(mutex_, time)) {
  }
}

void ChangeFeed::AnnounceLoop() {
  while (true) {
    {
      const MutexLock lock(mutex_);
      while (!has_written_ && !stopping_) changed_.Wait(mutex_);
      if (stopping_) return;
      has_written_ = false;
    }
    hints_
        .Run(Sessions::Repeat::kRepeatable, "SELECT pg_notify($1, $2)",
             {absl::string_view(kChannel), absl::string_view(absl::StrCat(node_->incarnation()))})
        .status()
        .IgnoreError();
    WaitUntil(SteadyTimeAfter(absl::ToChronoNanoseconds(options_.hint_period)));
  }
}

void ChangeFeed::ListenLoop(const Listener& listener) {
  std::unique_ptr<Connection> connection;
  SteadyTime next_poll = SteadyTime::min();
  while (!stopping()) {
    bool is_hinted = false;
    if (connection == nullptr || !connection->is_usable()) {
      absl::StatusOr<std::unique_ptr<Connection>> opened = Connection::Open(sessions_->options());
      const bool listens =
          opened.ok() && (*opened)->RunScript(absl::StrCat("LISTEN ", kChannel), kWait * 10).ok();
      connection = listens ? *std::move(opened) : nullptr;
      is_hinted = true;  // hints may have been missed
    }
    if (connection == nullptr) {
      WaitUntil(SteadyTimeAfter(absl::ToChronoNanoseconds(kWait)));
    } else {
      const auto hints = connection->WaitForNotifications(kWait);
      const std::string own = absl::StrCat(node_->incarnation());
      is_hinted = is_hinted || (hints.ok() && std::any_of(hints->begin(), hints->end(),
                                                          [&](const Notification& hint) {
                                                            return hint.payload != own;
                                                          }));
    }
    if (!is_hinted && std::chrono::steady_clock::now() < next_poll) continue;
    const SteadyTime next_look = SteadyTimeAfter(absl::ToChronoNanoseconds(options_.hint_period));
    LookOrReport(listener);
    next_poll = SteadyTimeAfter(absl::ToChronoNanoseconds(options_.poll_period));
    WaitUntil(next_look);
  }
}

// The next look makes up for one that fails.
void ChangeFeed::LookOrReport(const Listener& listener) {
  constexpr int kReported = 2;
  failures_ = Look(listener).ok() ? 0 : failures_ + 1;
  if (failures_ == kReported && listener.on_failure != nullptr) listener.on_failure();
}

void ChangeFeed::PollLoop(const Listener& listener) {
  while (!stopping()) {
    LookOrReport(listener);
    WaitUntil(SteadyTimeAfter(absl::ToChronoNanoseconds(options_.poll_period)));
  }
}

absl::Status ChangeFeed::TellJobs(const std::set<std::string>& ids,
                                  const Listener& listener) const {
  for (auto next = ids.begin(); next != ids.end();) {
    TextArray some;
    for (; next != ids.end() && some.size() < kJobsPerRead; ++next) some.push_back(*next);
    ASSIGN_OR_RETURN(const Rows records,
                     sessions_->Read("SELECT record FROM job WHERE job_id = ANY ($1)", {some}));
    std::vector<jobs::Job> jobs;
    for (size_t row = 0; row < records.size(); ++row) {
      absl::StatusOr<jobs::Job> job = jobs::DecodeJobRecord(records.Text(row, 0));
      if (job.ok()) jobs.push_back(*std::move(job));
    }
    if (!jobs.empty()) listener.on_jobs(jobs);
  }
  return absl::OkStatus();
}

absl::Status ChangeFeed::Look(const Listener& listener) {
  bool has_more = true;
  while (has_more) {
    IntArray lanes, numbers;
    for (const auto& [lane, number] : known_) {
      lanes.push_back(lane);
      numbers.push_back(number);
    }
    ASSIGN_OR_RETURN(
        const Rows rows,
        sessions_->Read("SELECT lane, number, job_id FROM changes_since($1, $2, $3, $4)",
                        {node_->incarnation(), lanes, numbers, kWritesPerLook}));
    std::map<int64_t, int64_t> known = known_;
    std::set<std::string> ids;
    bool is_gap = false;
    has_more = false;
    for (size_t row = 0; row < rows.size(); ++row) {
      const int64_t lane = rows.Int(row, 0);
      const int64_t number = rows.Int(row, 1);
      is_gap = is_gap || number > known[lane] + 1;
      known[lane] = number;
      has_more = has_more || number - known_[lane] >= kWritesPerLook;
      if (!rows.IsNull(row, 2)) ids.insert(std::string(rows.Text(row, 2)));
    }
    if (is_gap) listener.on_gap();
    RETURN_IF_ERROR(TellJobs(ids, listener));
    // Only now: after an error the next look reports the same writes.
    known_ = std::move(known);
  }
  return absl::OkStatus();
}

}  // namespace npuc::pg
