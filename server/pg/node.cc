#include "server/pg/node.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

namespace npuc::pg {
namespace {

constexpr size_t kOffsets = 5;
// Where most nodes are silent at once it is probably the database, or this node: it waits longer.
constexpr int kPatience = 3;

}  // namespace

absl::StatusOr<std::unique_ptr<Node>> Node::Join(Sessions* sessions, NodeOptions options) {
  std::unique_ptr<Node> node(new Node(sessions, std::move(options)));
  RETURN_IF_ERROR(node->JoinAnew());
  RETURN_IF_ERROR(node->Beat());
  return node;
}

Node::~Node() { StopBeating(); }

void Node::StopBeating() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  stop_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

absl::Status Node::Leave() {
  StopBeating();
  return sessions_->Run(Sessions::Repeat::kRepeatable, "SELECT leave_node($1)", {incarnation()})
      .status();
}

absl::Status Node::ForgetDead() {
  return sessions_->Run(Sessions::Repeat::kRepeatable, "SELECT forget_dead_nodes()", {}).status();
}

absl::Status Node::JoinAnew() {
  ASSIGN_OR_RETURN(
      const Rows rows,
      sessions_->Run(
          Sessions::Repeat::kRepeatable, "SELECT join_node($1, $2, $3, $4, $5)",
          {absl::string_view(options_.name), absl::string_view(options_.build_id),
           absl::string_view(options_.address), int64_t{options_.slots}, options_.feature_level}));
  const int64_t joined = rows.Int(0, 0);
  if (joined < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("NODE_TOO_OLD: the cluster is at feature level ", -joined,
                     ", and this npucd (build ", options_.build_id, ") knows levels up to ",
                     options_.feature_level, "; start a newer npucd, since the level never falls"));
  }
  const MutexLock lock(mutex_);
  incarnation_ = joined;
  return absl::OkStatus();
}

int64_t Node::incarnation() const {
  const MutexLock lock(mutex_);
  return incarnation_;
}

int64_t Node::feature_level() const {
  const MutexLock lock(mutex_);
  return feature_level_;
}

scheduler::ClusterSize Node::size() const {
  const MutexLock lock(mutex_);
  return size_;
}

bool Node::IsHeard() const {
  const absl::Time now = options_.steady_now();
  const MutexLock lock(mutex_);
  return now - heard_ < options_.ttl - options_.beat_period;
}

// The answer was made at some time between the two.
void Node::SetTime(absl::Time before, absl::Time after, int64_t cluster_us) {
  offsets_.push_back(absl::FromUnixMicros(cluster_us) - (before + (after - before) / 2));
  if (offsets_.size() > kOffsets) offsets_.pop_front();
}

absl::Time Node::ClusterNow() const {
  const absl::Time steady = options_.steady_now();
  const MutexLock lock(mutex_);
  std::vector<absl::Duration> offsets(offsets_.begin(), offsets_.end());
  const auto middle = offsets.begin() + static_cast<ptrdiff_t>(offsets.size() / 2);
  std::nth_element(offsets.begin(), middle, offsets.end());
  last_now_ = std::max(last_now_, steady + *middle);
  return last_now_;
}

absl::Status Node::Beat() {
  {
    const MutexLock lock(mutex_);
    if (stopping_) return absl::UnavailableError("this node leaves");
  }
  const absl::Time before = options_.steady_now();
  ASSIGN_OR_RETURN(
      const Rows rows,
      sessions_->Run(Sessions::Repeat::kRepeatable, "SELECT raise_feature_level($1), beat_node($2)",
                     {absl::ToInt64Microseconds(options_.feature_wait), incarnation()},
                     options_.ttl));
  if (rows.IsNull(0, 1)) {
    RETURN_IF_ERROR(JoinAnew());
    return Beat();
  }
  const absl::Time after = options_.steady_now();
  const MutexLock lock(mutex_);
  heard_ = before;
  SetTime(before, after, rows.Int(0, 1));
  feature_level_ = std::max(feature_level_, rows.Int(0, 0));
  return absl::OkStatus();
}

absl::Status Node::Observe() {
  const MutexLock lock(observe_mutex_);
  const absl::StatusOr<Rows> rows =
      sessions_->Read("SELECT incarnation, beat, slots FROM node WHERE state <> 3", {});
  if (!rows.ok()) {
    // A node that cannot read judges nobody.
    seen_.clear();
    return rows.status();
  }
  const absl::Time now = options_.steady_now();
  const int64_t self = incarnation();
  scheduler::ClusterSize size{.nodes = std::max<int64_t>(1, static_cast<int64_t>(rows->size())),
                              .slots = 0};
  std::map<int64_t, Seen> seen;
  std::vector<std::pair<int64_t, Seen>> silent;
  for (size_t row = 0; row < rows->size(); ++row) {
    const int64_t other = rows->Int(row, 0);
    const int64_t beat = rows->Int(row, 1);
    size.slots += rows->Int(row, 2);
    if (other == self) continue;
    const auto before = seen_.find(other);
    const bool is_still = before != seen_.end() && before->second.beat == beat;
    seen[other] = is_still ? before->second : Seen{.beat = beat, .since = now};
    if (now - seen[other].since >= options_.ttl) silent.emplace_back(other, seen[other]);
  }
  seen_ = std::move(seen);
  {
    const MutexLock size_lock(mutex_);
    size_ = size;
  }
  const bool most = 2 * silent.size() > rows->size();
  absl::Status first_error;
  for (const auto& [other, last] : silent) {
    if (most && now - last.since < kPatience * options_.ttl) continue;
    first_error.Update(
        sessions_
            ->Run(Sessions::Repeat::kRepeatable, "SELECT declare_dead($1, $2)", {other, last.beat})
            .status());
  }
  return first_error;
}

absl::Status Node::Drain() {
  return sessions_
      ->Run(Sessions::Repeat::kRepeatable,
            "UPDATE node SET state = 2 WHERE incarnation = $1 AND state = 1", {incarnation()})
      .status();
}

absl::StatusOr<std::vector<Node::Peer>> Node::Peers() const {
  ASSIGN_OR_RETURN(
      const Rows rows,
      sessions_->Read("SELECT incarnation, name, build_id, address, slots, state, feature_level "
                      "FROM node WHERE state <> 3 ORDER BY name",
                      {}));
  std::vector<Peer> peers;
  for (size_t row = 0; row < rows.size(); ++row) {
    peers.push_back({.incarnation = rows.Int(row, 0),
                     .name = std::string(rows.Text(row, 1)),
                     .build_id = std::string(rows.Text(row, 2)),
                     .address = std::string(rows.Text(row, 3)),
                     .slots = static_cast<int>(rows.Int(row, 4)),
                     .feature_level = rows.Int(row, 6),
                     .draining = rows.Int(row, 5) == 2});
  }
  return peers;
}

void Node::StartBeating() {
  thread_ = std::thread([this] { Loop(); });
}

void Node::Loop() {
  while (true) {
    {
      const MutexLock lock(mutex_);
      const SteadyTime next = SteadyTimeAfter(absl::ToChronoNanoseconds(options_.beat_period));
      while (!stopping_ && stop_.WaitUntil(mutex_, next)) {
      }
      if (stopping_) return;
    }
    // The next beat tries again; calls that need the database report what is wrong.
    if (Beat().ok()) Observe().IgnoreError();
  }
}

}  // namespace npuc::pg
