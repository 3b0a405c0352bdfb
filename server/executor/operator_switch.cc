#include "server/executor/operator_switch.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"

namespace npuc::executor {
namespace {

constexpr size_t kMaxShownBytes = 4096;

// The text is there while the switch is on: microseconds since 1970, identity, reason, a line each.
std::string Format(const OperatorSwitch::State& state) {
  if (!state.on) return "";
  return absl::StrCat(absl::ToUnixMicros(state.since), "\n", state.by, "\n", state.reason, "\n");
}

absl::StatusOr<OperatorSwitch::State> Parse(const std::string& name, absl::string_view text) {
  if (text.empty()) return OperatorSwitch::State();
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  int64_t micros = 0;
  if (lines.size() < 3 || !absl::SimpleAtoi(lines[0], &micros)) {
    return absl::FailedPreconditionError(
        absl::StrCat(name, " is damaged; delete it, and set it again if it was on"));
  }
  return OperatorSwitch::State{
      .on = true, .reason = lines[2], .by = lines[1], .since = absl::FromUnixMicros(micros)};
}

}  // namespace

OperatorSwitch::OperatorSwitch(const std::string& name, std::function<void(bool on)> apply)
    : apply_(std::move(apply)),
      state_(Format, [name](absl::string_view text) { return Parse(name, text); }) {}

absl::StatusOr<std::unique_ptr<OperatorSwitch>> OperatorSwitch::Open(
    const std::string& name, base::KeptText* text, std::function<void(bool on)> apply) {
  auto made = std::unique_ptr<OperatorSwitch>(new OperatorSwitch(name, std::move(apply)));
  {
    const MutexLock lock(made->mutex_);
    RETURN_IF_ERROR(made->state_.Attach(text));
  }
  made->apply_(made->Get().on);
  return made;
}

absl::StatusOr<bool> OperatorSwitch::Refresh() {
  const MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(const bool is_new, state_.Read());
  if (is_new) apply_(state_.Get().on);
  return is_new;
}

absl::Status OperatorSwitch::Set(State state) {
  state.reason = Printable(state.reason, kMaxShownBytes);
  state.by = Printable(state.by, kMaxShownBytes);
  if (!state.on) state = State();
  const MutexLock lock(mutex_);
  // Where another node's word came between, the last one holds.
  RETURN_IF_ERROR(state_.Change([&](State& kept) {
    kept = state;
    return absl::OkStatus();
  }));
  apply_(state.on);
  return absl::OkStatus();
}

OperatorSwitch::State OperatorSwitch::Get() {
  const MutexLock lock(mutex_);
  return state_.Get();
}

}  // namespace npuc::executor
