#ifndef NPUC_CLIENT_NPUC_REMOTE_PROGRESS_H_
#define NPUC_CLIENT_NPUC_REMOTE_PROGRESS_H_

#include <ostream>
#include <string>

#include "absl/strings/string_view.h"

namespace npuc::remote {

// What goes on, on standard error: on a terminal one line that is drawn over, elsewhere a plain
// line for each new phase. Not thread-safe.
class ProgressLine {
 public:
  // `err` must outlive this.
  ProgressLine(std::ostream& err, bool is_terminal) : err_(err), is_terminal_(is_terminal) {}
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // phase: what is done now, "compiling: lower"; detail: how far it is, "40 %", for terminals only.
  void Show(absl::string_view phase, absl::string_view detail = "");
  // A line that stays, to `stream`, with the progress line out of its way.
  void Print(std::ostream& stream, absl::string_view line);
  // Takes the progress line away.
  void Clear();
  // From now on nothing is shown.
  void SetHidden(bool hidden) { is_hidden_ = hidden; }

 private:
  void Draw();

  std::ostream& err_;
  const bool is_terminal_;
  std::string phase_;
  std::string detail_;
  bool drawn_ = false;
  bool is_hidden_ = false;
};

}  // namespace npuc::remote

#endif  // NPUC_CLIENT_NPUC_REMOTE_PROGRESS_H_
