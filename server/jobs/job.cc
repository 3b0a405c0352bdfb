#include "server/jobs/job.h"

#include <algorithm>

namespace npuc::jobs {
namespace {

// Crockford's base 32: no I, L, O, U.
constexpr char kDigits[] = "0123456789abcdefghjkmnpqrstvwxyz";

void AppendBase32(uint64_t value, int digits, std::string& out) {
  for (int shift = 5 * (digits - 1); shift >= 0; shift -= 5) {
    out.push_back(kDigits[(value >> shift) & 31]);
  }
}

}  // namespace

absl::string_view JobStateName(JobState state) {
  switch (state) {
    case JobState::kQueued:
      return "QUEUED";
    case JobState::kRunning:
      return "RUNNING";
    case JobState::kSucceeded:
      return "SUCCEEDED";
    case JobState::kFailed:
      return "FAILED";
    case JobState::kCancelled:
      return "CANCELLED";
    case JobState::kExpired:
      return "EXPIRED";
  }
  return "UNKNOWN";
}

absl::string_view FailureKindName(FailureKind kind) {
  switch (kind) {
    case FailureKind::kNone:
      return "NONE";
    case FailureKind::kInvalidInput:
      return "INVALID_INPUT";
    case FailureKind::kLimitExceeded:
      return "LIMIT_EXCEEDED";
    case FailureKind::kWorkerDied:
      return "WORKER_DIED";
    case FailureKind::kInternal:
      return "INTERNAL";
    case FailureKind::kInputLost:
      return "INPUT_LOST";
  }
  return "UNKNOWN";
}

std::string MakeJobId(absl::Time time, uint64_t random_high, uint64_t random_low) {
  std::string id = "j";
  const int64_t milliseconds = std::max<int64_t>(0, absl::ToUnixMillis(time));
  AppendBase32(static_cast<uint64_t>(milliseconds), 10, id);
  AppendBase32(random_high, 8, id);
  AppendBase32(random_low, 8, id);
  return id;
}

absl::Time TimeOfJobId(absl::string_view id) {
  const absl::string_view digits(kDigits, 32);
  uint64_t milliseconds = 0;
  for (const char c : id.substr(std::min<size_t>(1, id.size()), 10)) {
    const size_t digit = digits.find(c);
    milliseconds = milliseconds * 32 + (digit == absl::string_view::npos ? 0 : digit);
  }
  return absl::FromUnixMillis(static_cast<int64_t>(milliseconds));
}

bool IsValidJobId(absl::string_view id) {
  if (id.size() != 27 || id.front() != 'j') return false;
  const absl::string_view digits(kDigits, 32);
  return std::all_of(id.begin() + 1, id.end(),
                     [&](char c) { return digits.find(c) != absl::string_view::npos; });
}

}  // namespace npuc::jobs
