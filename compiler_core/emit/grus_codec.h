#ifndef NPUC_COMPILER_CORE_EMIT_GRUS_CODEC_H_
#define NPUC_COMPILER_CORE_EMIT_GRUS_CODEC_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler_core/ir/cmd/command.h"

namespace npuc {

// The GRUS command encoding (compiler_core/target/ISA.md; source: the arrays of published headers).
// Pure functions.

// Link word behind the last command: signal completion.
inline constexpr uint32_t kEndLink = 0x70000000u;
// The longest command, with its link; and the longest stream that is decoded: that of the longest
// program.
inline constexpr int64_t kLongestCommandBytes = 64;
inline constexpr int64_t kMaxCommandBytes =
    static_cast<int64_t>(kMaxCommands) * kLongestCommandBytes;

// The stream of `program`. Errors: INTERNAL where a buffer has no offset, a field does not fit its
// bits, an operand is at ops+0 (its encoding, zero, means "none"), or the last command is not a
// VectorCommand (only opcode 0x01 is known to end a stream).
absl::StatusOr<std::vector<uint8_t>> EncodeCommands(const Program& program);

// One command at `offset` of a stream.
struct DecodedCommand {
  Command command;  // operands name buffer i = slot i, see SlotBuffers
  int64_t offset_bytes = 0;
  int64_t size_bytes = 0;
  bool last = false;
};
// Strict: whatever EncodeCommands would not write back bit for bit is an error. Errors:
// INVALID_ARGUMENT naming the byte offset, what is there and what is known.
absl::StatusOr<DecodedCommand> DecodeCommand(absl::Span<const uint8_t> bytes, int64_t offset_bytes);

// Bytes of the command at `offset`, link included, judged by its header word alone; 0 where the
// opcode is unknown or the stream is too short. For listings of streams that do not decode.
int64_t CommandSizeAt(absl::Span<const uint8_t> bytes, int64_t offset_bytes);

// The whole stream; it must end at the last byte. The program has SlotBuffers and no ports,
// weights or data. `offsets`, where given, gets each command's byte offset.
absl::StatusOr<Program> DecodeCommands(absl::Span<const uint8_t> bytes,
                                       std::vector<int64_t>* offsets = nullptr);

// One buffer for each slot 0..7, all of kSlotSpanBytes at offset 0.
std::vector<Buffer> SlotBuffers();

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_EMIT_GRUS_CODEC_H_
