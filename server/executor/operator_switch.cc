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

absl::StatusOr<OperatorSwitch::State> Parse(const std::string& name, const std::string& text) {
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

absl::StatusOr<std::unique_ptr<OperatorSwitch>> OperatorSwitch::Open(
    std::string name, base::KeptText* text, std::function<void(bool on)> apply) {
  auto made =
      std::unique_ptr<OperatorSwitch>(new OperatorSwitch(std::move(name), text, std::move(apply)));
  RETURN_IF_ERROR(made->Refresh().status());
  made->apply_(made->Get().on);
  return made;
}

absl::StatusOr<bool> OperatorSwitch::Refresh() {
  const MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(std::string text, text_.Read());
  if (text == kept_) return false;
  ASSIGN_OR_RETURN(State state, Parse(name_, text));
  kept_ = std::move(text);
  apply_(state.on);
  state_ = std::move(state);
  return true;
}

absl::Status OperatorSwitch::Set(State state) {
  state.reason = Printable(state.reason, kMaxShownBytes);
  state.by = Printable(state.by, kMaxShownBytes);
  if (!state.on) state = State();
  const std::string text = Format(state);
  const MutexLock lock(mutex_);
  absl::Status kept = text_.Replace(kept_, text);
  if (absl::IsAborted(kept)) {
    // Another node's word came between; the last one holds.
    ASSIGN_OR_RETURN(kept_, text_.Read());
    kept = text_.Replace(kept_, text);
  }
  RETURN_IF_ERROR(kept);
  kept_ = text;
  apply_(state.on);
  state_ = std::move(state);
  return absl::OkStatus();
}

OperatorSwitch::State OperatorSwitch::Get() {
  const MutexLock lock(mutex_);
  return state_;
}

}  // namespace npuc::executor
