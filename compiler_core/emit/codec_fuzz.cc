// Any bytes as a command stream, and any payloads in well-formed framing: what decodes encodes to
// the same bytes, and the listing of a stream is complete just where it decodes.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/emit/disassemble.h"
#include "compiler_core/emit/grus_codec.h"

namespace {

void RoundTrip(const std::vector<uint8_t>& stream) {
  const npuc::Disassembly listing = npuc::DisassembleCommands(stream);
  const absl::StatusOr<npuc::Program> program = npuc::DecodeCommands(stream);
  NPUC_CHECK(program.ok() == listing.complete);
  if (!program.ok()) return;
  NPUC_CHECK(static_cast<int64_t>(program->commands.size()) == listing.command_count);
  NPUC_CHECK(listing.end_bytes == static_cast<int64_t>(stream.size()));
  const absl::StatusOr<std::vector<uint8_t>> back = npuc::EncodeCommands(*program);
  NPUC_CHECK(back.ok() && *back == stream);
}

void PutWord(std::vector<uint8_t>& stream, uint32_t word) {
  for (int shift = 0; shift < 32; shift += 8) {
    stream.push_back(static_cast<uint8_t>(word >> shift & 0xff));
  }
}

// Commands whose opcodes and payloads the input says, each followed by the next, and one of opcode
// 0x01 that ends them: so that a search need not find the framing first.
std::vector<uint8_t> Framed(const uint8_t* data, size_t size) {
  constexpr std::array<std::pair<uint32_t, size_t>, 5> kPayloadBytes = {
      {{0x01, 40}, {0x40, 44}, {0x41, 56}, {0x42, 44}, {0x43, 20}}};
  constexpr uint32_t kNextFollows = 1u << 17;
  std::vector<uint8_t> stream;
  bool last = false;
  while (size > 0 && !last) {
    const uint8_t choice = *data++;
    --size;
    last = (choice & 0x80) != 0;
    const auto [opcode, bytes] = kPayloadBytes[last ? 0 : (choice & 7) % kPayloadBytes.size()];
    const uint32_t waits = (choice & 0x40) != 0 ? 0x100 : 0;
    PutWord(stream, opcode | waits | (last ? 0 : kNextFollows));
    if (last) PutWord(stream, npuc::kEndLink);
    const size_t given = std::min(bytes, size);
    stream.insert(stream.end(), data, data + given);
    stream.resize(stream.size() + bytes - given, 0);
    data += given;
    size -= given;
  }
  return stream;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  RoundTrip(std::vector<uint8_t>(data, data + size));
  RoundTrip(Framed(data, size));
  return 0;
}
