#ifndef NPUC_COMPILER_CORE_SIM_ENGINE_H_
#define NPUC_COMPILER_CORE_SIM_ENGINE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "compiler_core/sim/simulator.h"

namespace npuc {

// What runs the frames of one model, one kind for each command set. The simulator's own header.
class FrameEngine {
 public:
  virtual ~FrameEngine() = default;
  // input.size() is input_bytes; output has output_bytes and is written whole.
  virtual void Run(absl::Span<const uint8_t> input, absl::Span<uint8_t> output) = 0;

  std::vector<PortTensor> inputs;
  std::vector<PortTensor> outputs;
  int64_t input_bytes = 0;
  int64_t output_bytes = 0;
  std::vector<Simulator::CommandInfo> infos;
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_SIM_ENGINE_H_
