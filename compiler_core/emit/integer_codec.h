#ifndef NPUC_COMPILER_CORE_EMIT_INTEGER_CODEC_H_
#define NPUC_COMPILER_CORE_EMIT_INTEGER_CODEC_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler_core/ir/integer/command.h"

namespace npuc::integer {

// The command stream of the integer cores: little-endian words. A command is a header word (bits
// 0-7 opcode, bit 8 set on the last command, bit 9 where it takes its steps in descending order,
// bits 10-12 the core, bit 13 set where it waits for all commands before it, bit 14 where d_pixel
// of a convolve follows as the last word, bits 16-31 words that follow, others zero), then mask
// words with a bit for each word of the fields in the order of ir/integer/fields.h, then those
// words whose bit is set. A word whose bit is not set has the value that its field has in a new
// body; only words with other values have bits. An operand is its slot in bits 28-31 and a byte
// offset in bits 0-27; 0 stands for none. Types: 1 i8, 2 u8, 3 i16, 4 u16.

// The little-endian word at an offset; all of it must lie in `bytes`.
uint32_t WordAt(absl::Span<const uint8_t> bytes, int64_t offset);

// INVALID_ARGUMENT where a field does not fit; buffers must have been placed.
absl::StatusOr<std::vector<uint8_t>> EncodeCommands(const Program& program);

struct DecodedCommand {
  Body body;  // buffer ids are slots
  bool last = false;
  bool descending = false;
  int32_t core = 0;
  bool barrier = false;
  int64_t size_bytes = 0;
};
// Strict: what it accepts encodes to the same bytes. INVALID_ARGUMENT names the byte offset.
absl::StatusOr<DecodedCommand> DecodeCommand(absl::Span<const uint8_t> bytes, int64_t offset);

}  // namespace npuc::integer

#endif  // NPUC_COMPILER_CORE_EMIT_INTEGER_CODEC_H_
