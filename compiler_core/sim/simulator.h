#ifndef NPUC_COMPILER_CORE_SIM_SIMULATOR_H_
#define NPUC_COMPILER_CORE_SIM_SIMULATOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/emit/artifact.h"
#include "compiler_core/ir/cmd/load.h"

namespace npuc {

class FrameEngine;  // engine.h, the simulator's own

// Runs command streams: GRUS's in fp16, as compiler_core/target/ISA.md defines them, and those of
// the integer cores, as INTEGER_ISA.md there does. Not verified on silicon. Not thread-safe;
// several simulators of one model may run side by side. Numerics of GRUS: every stored result is
// rounded to fp16 once, to nearest even; sums are float32 in a fixed order, so results are the same
// bits on every machine (functions of one fp16 value come from libm in double, rounded once: as
// equal as libm's are). NaN and infinities follow IEEE 754.
class Simulator {
 public:
  struct Limits {
    int64_t max_work = int64_t{1} << 36;            // elements and multiply-adds of a frame
    int64_t max_weight_values = int64_t{1} << 26;   // decompressed weights, 4 bytes each
    int64_t max_memory_bytes = 3 * kSlotSpanBytes;  // of data, input and output together
  };

  // What a command is and costs; for profiles.
  struct CommandInfo {
    int64_t offset_bytes = 0;  // in cmd_content
    std::string kind;          // "fully_connected", "tensor_vector" ...
    CommandLoad load;
    int64_t cycles = 0;  // estimate; 0 where the model's core has no cycle model
    int32_t core = 0;    // that runs it
    int64_t phase = 0;   // of the frame (ir/integer/phases.h)
  };

  // Decodes the commands, checks every operand against its slot, so that nothing outside is ever
  // touched, and decompresses the weights. Refusals name the command's byte offset.
  static absl::StatusOr<std::unique_ptr<Simulator>> Load(const CompiledModel& model,
                                                         absl::string_view file_name,
                                                         Diagnostics& diagnostics,
                                                         const Limits& limits);
  static absl::StatusOr<std::unique_ptr<Simulator>> Load(const CompiledModel& model,
                                                         absl::string_view file_name,
                                                         Diagnostics& diagnostics) {
    return Load(model, file_name, diagnostics, Limits());
  }
  ~Simulator();

  // One frame: the bytes of struct input to the bytes of struct output. data_content starts as
  // zeros in every frame. Errors: INVALID_ARGUMENT where input has another size.
  absl::Status Run(absl::Span<const uint8_t> input, std::vector<uint8_t>& output);

  const std::vector<CommandInfo>& commands() const;
  const std::vector<PortTensor>& inputs() const;
  const std::vector<PortTensor>& outputs() const;
  int64_t input_bytes() const;
  int64_t output_bytes() const;

 private:
  explicit Simulator(std::unique_ptr<FrameEngine> engine);
  std::unique_ptr<FrameEngine> engine_;
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_SIM_SIMULATOR_H_
