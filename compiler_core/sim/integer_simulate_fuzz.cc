// An integer model's command stream and constants, byte by byte hostile: loading and running must
// never touch memory outside the slots, and must end; what decodes encodes to the same bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/emit/disassemble.h"
#include "compiler_core/emit/integer_codec.h"
#include "compiler_core/ir/integer/fields.h"
#include "compiler_core/sim/simulator.h"
#include "compiler_core/target/core_spec.h"

namespace {

// A stream of well-formed framing, whose opcodes and fields the input says: most fields are small
// numbers, so that a search need not find the ranges first. A choice byte, then a byte a word; 0
// leaves the word at its usual value. has_cores: bits 3 to 5 of the choice byte are a core and a
// barrier, and with bit 6 a convolve has a byte for d_pixel behind its words.
std::vector<uint8_t> Framed(const uint8_t* data, size_t size, bool has_cores) {
  constexpr uint8_t kWords[] = {32, 26, 39, 28, 6, 10, 17, 31};
  std::vector<uint8_t> stream;
  bool last = false;
  while (size > 0 && !last) {
    const uint8_t choice = *data++;
    --size;
    const size_t kind = (choice & 0x7f) % npuc::integer::kOpcodes.size();
    last = (choice & 0x80) != 0 || size <= kWords[kind];
    std::vector<uint8_t> masks(4 * ((kWords[kind] + 31u) / 32));
    std::vector<uint8_t> words;
    for (uint8_t word = 0; word < kWords[kind]; ++word) {
      const uint8_t value = size > 0 ? *data : 0;
      if (size > 0) {
        ++data;
        --size;
      }
      // 0x40..0x7f: an operand in slot 1, 3, 4 or 6; from 0xe0 on a negative number.
      constexpr uint8_t kSlots[] = {0x10, 0x30, 0x40, 0x60};
      const bool place = value >= 0x40 && value < 0x80;
      const uint8_t high = value >= 0xe0 ? 0xff : 0;
      if (value == 0) continue;
      masks[word / 8] = static_cast<uint8_t>(masks[word / 8] | 1 << (word % 8));
      words.insert(words.end(), {static_cast<uint8_t>(place ? (value & 15) * 4 : value), high, high,
                                 place ? kSlots[value >> 4 & 3] : high});
    }
    uint8_t flags = last ? 1 : 0;
    if (has_cores) flags = static_cast<uint8_t>(flags | (choice & 0x18) >> 1 | (choice & 0x20));
    if (has_cores && kind == 0 && (choice & 0x40) != 0 && size > 0 && *data != 0) {
      flags |= 0x40;
      words.insert(words.end(), {*data++, 0, 0, 0});
      --size;
    }
    stream.insert(stream.end(), {npuc::integer::kOpcodes[kind].code, flags,
                                 static_cast<uint8_t>((masks.size() + words.size()) / 4), 0});
    stream.insert(stream.end(), masks.begin(), masks.end());
    stream.insert(stream.end(), words.begin(), words.end());
  }
  return stream;
}

void RunModel(const npuc::CompiledModel& model) {
  const npuc::Disassembly listing = npuc::DisassembleIntegerCommands(model.cmd_content, true);
  npuc::Diagnostics diagnostics;
  npuc::Simulator::Limits limits;
  limits.max_work = 1 << 18;
  limits.max_weight_values = 1 << 16;
  auto simulator = npuc::Simulator::Load(model, "fuzz", diagnostics, limits);
  NPUC_CHECK(simulator.ok() != diagnostics.has_errors());
  if (!simulator.ok()) return;
  NPUC_CHECK(listing.complete);
  std::vector<uint8_t> input(static_cast<size_t>((*simulator)->input_bytes()), 0x9c);
  std::vector<uint8_t> first;
  std::vector<uint8_t> second;
  NPUC_CHECK((*simulator)->Run(input, first).ok());
  NPUC_CHECK((*simulator)->Run(input, second).ok());
  NPUC_CHECK(first == second);
}

}  // namespace

// Layout: u8 data/4, u8 inputs, u8 outputs, u8 command bytes/4, commands, weights.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kHead = 4;
  if (size < kHead) return 0;
  npuc::CompiledModel model;
  model.command_set = npuc::CommandSet::kInteger;
  model.data_bytes = 4 * int64_t{data[0]};
  model.inputs = {{"x", {data[1]}, npuc::DType::kInt8, 0, -1, 0.5, 3}};
  model.outputs = {{"y", {data[2]}, npuc::DType::kUint8, 0, -1, 0.5, 3}};
  const size_t command_bytes = std::min<size_t>(4 * size_t{data[3]}, size - kHead);
  const uint8_t* const commands = data + kHead;
  model.weight_content.assign(commands + command_bytes, data + size);
  model.cmd_content.assign(commands, commands + command_bytes);
  RunModel(model);
  for (const char* core : {"X2_1204", "X2_1204MP3"}) {
    model.core = core;
    model.cmd_content = Framed(commands, command_bytes, npuc::CoresOf(core) > 1);
    RunModel(model);
  }
  return 0;
}
