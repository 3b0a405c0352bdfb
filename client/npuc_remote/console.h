#ifndef NPUC_CLIENT_NPUC_REMOTE_CONSOLE_H_
#define NPUC_CLIENT_NPUC_REMOTE_CONSOLE_H_

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/npuc_remote/exit_codes.h"
#include "client/npuc_remote/progress.h"
#include "compiler_core/base/diagnostic_text.h"
#include "npuc/v1/compile.pb.h"

namespace npuc::remote {

// Where a command writes. Not thread-safe.
class Console {
 public:
  // The streams must outlive this. `is_interrupted`: whether Ctrl-C was pressed; may be empty.
  // `colours`: of what goes to standard error; for terminals.
  Console(std::ostream& out, std::ostream& err, bool err_is_terminal,
          std::function<bool()> is_interrupted, bool colours = false)
      : out_(out),
        err_(err),
        is_interrupted_(std::move(is_interrupted)),
        colours_(colours),
        progress_(err, err_is_terminal) {}

  std::ostream& out() { return out_; }
  std::ostream& err() { return err_; }
  ProgressLine& progress() { return progress_; }
  // From now on hints and progress are left out; what has a tone is not.
  void SetQuiet(bool quiet);
  bool is_quiet() const { return quiet_; }
  bool IsInterrupted() const { return is_interrupted_ && is_interrupted_(); }

  enum class Tone { kPlain, kGood, kWarning, kBad };
  // Whatever a server or a file put into a line: characters that steer a terminal or turn text
  // around are shown as escapes. Line ends stay.
  void Out(absl::string_view line);
  void Err(absl::string_view line) { Err(Tone::kPlain, line); }
  // Writes the line in a colour: green for a success, yellow for a warning, red for an error.
  void Err(Tone tone, absl::string_view line);
  // A line of diagnostics on standard error, in its severity's colour.
  void Err(const DiagnosticLine& line);

  // The last words of a command that failed, on standard error; with `json` also an object on
  // standard output. Returns its exit code.
  ExitCode Fail(const absl::Status& status, bool json,
                const std::vector<v1::Diagnostic>& diagnostics = {});

 private:
  std::ostream& out_;
  std::ostream& err_;
  std::function<bool()> is_interrupted_;
  const bool colours_;
  bool quiet_ = false;
  ProgressLine progress_;
};

}  // namespace npuc::remote

#endif  // NPUC_CLIENT_NPUC_REMOTE_CONSOLE_H_
