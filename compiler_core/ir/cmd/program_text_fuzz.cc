// Any text that parses as a command program prints to a text that parses and prints the same; what
// other readers of programs do with it ends well, too.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/cmd/text.h"
#include "compiler_core/ir/cmd/verify.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  npuc::ProgramParseOptions options;
  options.max_weight_bytes = 1 << 20;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<npuc::Program> program = npuc::ParseProgram(text, options);
  if (!program.ok()) return 0;
  const std::string printed = npuc::PrintProgram(*program);
  const absl::StatusOr<npuc::Program> again = npuc::ParseProgram(printed, options);
  NPUC_CHECK(again.ok());
  NPUC_CHECK(npuc::PrintProgram(*again) == printed);
  NPUC_CHECK(again->commands == program->commands);
  const absl::Status status = npuc::VerifyProgram(*program);
  NPUC_CHECK(status.ok() || !status.message().empty());
  return 0;
}
