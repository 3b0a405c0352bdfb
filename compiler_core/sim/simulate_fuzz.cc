// A model file's command stream and weights, byte by byte hostile: loading and running must never
// touch memory outside the slots, and must end.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/emit/disassemble.h"
#include "compiler_core/emit/grus_codec.h"
#include "compiler_core/sim/simulator.h"

// Layout: u8 data/16, u8 inputs/2, u8 outputs/4, u16 command bytes, commands, weights.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kHead = 5;
  if (size < kHead) return 0;
  npuc::CompiledModel model;
  model.core = "LEO";  // has every form of weights
  model.data_bytes = 16 * int64_t{data[0]};
  model.inputs = {{"x", {data[1]}, npuc::DType::kFloat16, 0, -1}};
  model.outputs = {{"y", {data[2]}, npuc::DType::kFloat32, 0, -1}};
  const size_t command_bytes = std::min<size_t>(data[3] | data[4] << 8, size - kHead);
  model.cmd_content.assign(data + kHead, data + kHead + command_bytes);
  model.weight_content.assign(data + kHead + command_bytes, data + size);

  const npuc::Disassembly listing = npuc::DisassembleCommands(model.cmd_content);
  const absl::StatusOr<npuc::Program> program = npuc::DecodeCommands(model.cmd_content);
  NPUC_CHECK(program.ok() || !listing.complete || listing.command_count > 0);
  if (program.ok()) {
    const absl::StatusOr<std::vector<uint8_t>> back = npuc::EncodeCommands(*program);
    NPUC_CHECK(back.ok() && *back == model.cmd_content);
  }
  npuc::Diagnostics diagnostics;
  npuc::Simulator::Limits limits;
  limits.max_work = 1 << 20;
  limits.max_weight_values = 1 << 18;
  auto simulator = npuc::Simulator::Load(model, "fuzz", diagnostics, limits);
  NPUC_CHECK(simulator.ok() != diagnostics.has_errors());
  if (!simulator.ok()) return 0;
  std::vector<uint8_t> input(static_cast<size_t>((*simulator)->input_bytes()), 0x3c);
  std::vector<uint8_t> first;
  std::vector<uint8_t> second;
  NPUC_CHECK((*simulator)->Run(input, first).ok());
  NPUC_CHECK((*simulator)->Run(input, second).ok());
  NPUC_CHECK(first == second);
  return 0;
}
