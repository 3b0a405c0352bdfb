#ifndef NPUC_COMPILER_CORE_IR_CMD_TEXT_H_
#define NPUC_COMPILER_CORE_IR_CMD_TEXT_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/ir/cmd/command.h"

namespace npuc {

// The textual form, one buffer, port or command a line:
//   program {
//     data 40
//     weights "0012..."                                   (hex; may stand on several lines)
//     input "input_x" f16 [1,784] @0
//     output "result" f32 [1,10] @0 state -1
//     %0 input 1568 @0 "input_x"                          (buffer: slot, bytes, offset, name)
//     fully_connected a=%0+0x0 codes=%1+0xc80 mask=%1+0x0 d=%2+0x0 n=10 k=784 min=0xb9ba ...
//     tensor_tensor op=add a=%2+0x0 b=%1+0x22e0 d=%3+0x0 ext=1x1x10 a_stride=10,10 ...
//   }
// Fields that are absent, zero or usual are left out.
struct CommandPrintOptions {
  bool weights = true;  // false: `weights 8948 elided`
};
std::string PrintProgram(const Program& program, const CommandPrintOptions& options = {});

struct ProgramParseOptions {
  int64_t max_text_bytes = int64_t{1} << 31;
  int64_t max_weight_bytes = int64_t{1} << 30;
};
// Parse(Print(p)) prints the same text. INVALID_ARGUMENT with line and column; bounded input size
// and counts. Strict: the order of the lines above, every field known and given once, buffers
// numbered from 0, operands of buffers that there are; what is printed of a raw command beside its
// words must be what they say. White space and comments (#) are free. Whether the commands make
// sense is VerifyProgram's.
absl::StatusOr<Program> ParseProgram(absl::string_view text,
                                     const ProgramParseOptions& options = {});

// One command on one line, without line end; `operand_text` names operands ("data+0x20").
std::string PrintCommand(const Command& command,
                         const std::function<std::string(const Operand&)>& operand_text);

// The fields of an opcode 0x41, 0x42 or 0x43, where its words are all understood (" rows=2
// columns=3"); else false and nothing.
bool AppendRawForm(const RawCommand& command, std::string& out);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_IR_CMD_TEXT_H_
