#ifndef NPUC_SERVER_BASE_KEPT_STATE_H_
#define NPUC_SERVER_BASE_KEPT_STATE_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/status.h"
#include "server/base/kept_text.h"

namespace npuc::base {

// A state that a text keeps. Nodes of a cluster that share the text have the same state, each since
// it last read. Not thread-safe: the owner's mutex guards it, also while the text is read.
template <typename State>
class KeptState {
 public:
  using Format = std::function<std::string(const State& state)>;
  // FAILED_PRECONDITION: the text is damaged.
  using Parse = std::function<absl::StatusOr<State>(absl::string_view text)>;

  // The state of an empty text, until Attach.
  KeptState(Format format, Parse parse) : format_(std::move(format)), parse_(std::move(parse)) {}

  // Reads the text, which must outlive this.
  absl::Status Attach(KeptText* text) {
    text_ = text;
    return Read().status();
  }

  const State& Get() const { return state_; }

  // Takes what the text has now. True: it is another than before. Without a text it is none.
  absl::StatusOr<bool> Read() {
    if (text_ == nullptr) return false;
    ASSIGN_OR_RETURN(std::string text, text_->Read());
    if (text == kept_) return false;
    ASSIGN_OR_RETURN(state_, parse_(text));
    kept_ = std::move(text);
    return true;
  }

  // Does `change` to what the text has, and keeps the result. `change` runs again where another
  // node came between. An error, also of `change`: all is as the text has it. ABORTED: another
  // node came between each time. FAILED_PRECONDITION: there is no text.
  absl::Status Change(const std::function<absl::Status(State& state)>& change) {
    if (text_ == nullptr) return absl::FailedPreconditionError("there is nowhere to keep it");
    for (int tries = 1;; ++tries) {
      RETURN_IF_ERROR(Read().status());
      State state = state_;
      RETURN_IF_ERROR(change(state));
      std::string text = format_(state);
      if (text == kept_) return absl::OkStatus();
      const absl::Status kept = text_->Replace(kept_, text);
      if (absl::IsAborted(kept) && tries < kMaxTries) continue;
      RETURN_IF_ERROR(kept);
      kept_ = std::move(text);
      state_ = std::move(state);
      return absl::OkStatus();
    }
  }

 private:
  static constexpr int kMaxTries = 4;

  const Format format_;
  const Parse parse_;
  KeptText* text_ = nullptr;
  std::string kept_;  // as text_ has it
  State state_ = {};
};

}  // namespace npuc::base

#endif  // NPUC_SERVER_BASE_KEPT_STATE_H_
