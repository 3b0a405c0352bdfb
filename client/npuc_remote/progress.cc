#include "client/npuc_remote/progress.h"

#include <utility>

#include "compiler_core/base/diagnostic.h"

namespace npuc::remote {

void ProgressLine::Show(absl::string_view phase, absl::string_view detail) {
  if (is_hidden_) return;
  std::string shown_phase = Printable(phase);
  std::string shown_detail = Printable(detail);
  const bool new_phase = shown_phase != phase_;
  if (!new_phase && shown_detail == detail_) return;
  phase_ = std::move(shown_phase);
  detail_ = std::move(shown_detail);
  if (is_terminal_) {
    Draw();
  } else if (new_phase) {
    err_ << phase_ << std::endl;
  }
}

void ProgressLine::Print(std::ostream& stream, absl::string_view line) {
  const bool redraw = drawn_;
  Clear();
  stream << line << std::endl;
  if (redraw) Draw();
}

void ProgressLine::Draw() {
  // Carriage return, erase to the end of the line.
  err_ << "\r\x1b[K" << phase_ << (detail_.empty() ? "" : "  ") << detail_ << std::flush;
  drawn_ = true;
}

void ProgressLine::Clear() {
  if (!drawn_) return;
  err_ << "\r\x1b[K" << std::flush;
  drawn_ = false;
}

}  // namespace npuc::remote
