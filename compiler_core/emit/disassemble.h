#ifndef NPUC_COMPILER_CORE_EMIT_DISASSEMBLE_H_
#define NPUC_COMPILER_CORE_EMIT_DISASSEMBLE_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "compiler_core/emit/artifact.h"

namespace npuc {

struct Disassembly {
  std::string text;  // one command a line: offset, header word, command
  int64_t command_count = 0;
  int64_t end_bytes = 0;  // where the stream ends, or where decoding had to stop
  // Every command is known, the last one may end a stream (opcode 0x01), and it ends at the last
  // byte.
  bool complete = false;
};

// Lists a command stream. Never fails: a command of a known opcode with unknown fields is listed
// as raw words with the reason; from an unknown opcode on, the rest is listed as raw words.
Disassembly DisassembleCommands(absl::Span<const uint8_t> bytes);

// Disassembles a stream of integer commands in the same way; behind a command that does not decode,
// the rest is listed as raw words. has_cores: each line says which core runs the command.
Disassembly DisassembleIntegerCommands(absl::Span<const uint8_t> bytes, bool has_cores);

// The same with the model's description as comment lines before it.
Disassembly DisassembleModel(const CompiledModel& model);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_EMIT_DISASSEMBLE_H_
