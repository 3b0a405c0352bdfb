#ifndef NPUC_COMPILER_CORE_EMIT_ARTIFACT_H_
#define NPUC_COMPILER_CORE_EMIT_ARTIFACT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/cmd/command.h"

namespace npuc {

// Which commands cmd_content holds.
enum class CommandSet : uint8_t {
  kGrus,     // target/ISA.md
  kInteger,  // target/INTEGER_ISA.md
};

// A compiled model in its final bytes: what a C header or a .npuc model file holds, and what the
// simulator runs. Addresses are inside cmd_content (slot + offset), so nothing needs relocation.
struct CompiledModel {
  std::string version;     // of the compiler that made it
  std::string model_md5;   // hex MD5 of the model file's bytes ("pb_md5")
  std::string npu_unit;    // "NPU32"
  std::string model_info;  // "(YYYYMMDDhhmmss)" and the config's MODEL_INFO text
  std::string core;        // "GRUS"
  CommandSet command_set = CommandSet::kGrus;
  std::vector<PortTensor> inputs;
  std::vector<PortTensor> outputs;  // state outputs first where the config has them so
  std::vector<uint8_t> cmd_content;
  std::vector<uint8_t> weight_content;
  std::vector<uint8_t> ops_content;
  int64_t data_bytes = 0;
  // Where struct input and struct output lie in data_content; both -1: in memory of their own.
  int64_t input_offset = -1;
  int64_t output_offset = -1;
  bool ports_in_data() const { return input_offset >= 0; }

  // cmd + weight + ops + data
  int64_t npu_size() const;
  // Bytes of the packed struct input / output: the ports laid one after the other.
  int64_t input_struct_bytes() const;
  int64_t output_struct_bytes() const;
  // As these, but 0 where the struct lies in data_content.
  int64_t own_input_bytes() const { return ports_in_data() ? 0 : input_struct_bytes(); }
  int64_t own_output_bytes() const { return ports_in_data() ? 0 : output_struct_bytes(); }
  // npu_size + the structs outside data_content (true of every published header).
  int64_t total_size() const;
};

// INVALID_ARGUMENT where a struct that lies in data_content does not lie whole within it, or one
// does and the other does not.
absl::Status CheckPortPlaces(const CompiledModel& model);

// INVALID_ARGUMENT where a state output names no input, or one of another type.
absl::Status CheckStates(const CompiledModel& model);

// Limits of an artifact, the same where one is written and where one is read. Those of its commands
// are in ir/cmd/command.h.
inline constexpr size_t kMaxPorts = 4096;                       // inputs, and outputs
inline constexpr int64_t kMaxArtifactBytes = int64_t{1} << 30;  // a header's text, a model file
inline constexpr int kLargestQ = 96;  // of a fixed-point port: 2^-Q stays far from a double's ends

// Whether a model whose commands are not encoded yet keeps the limits, its slots' size among them;
// each that it breaks becomes a diagnostic of `model_name`.
absl::Status CheckArtifactLimits(const CompiledModel& model, absl::string_view model_name,
                                 Diagnostics& diagnostics);

// Fixes of diagnostics: of an artifact that is not as a compile wrote it; of a file that is none.
inline constexpr char kFixOfDamage[] = "compile the model again, or copy the whole file again";
inline constexpr char kFixOfNoArtifact[] =
    "name the OUTPUT_FILE of a compile, or the .npuc file beside it";

// A model as its file was parsed, within the limits. A refusal of the parse is reported: the file
// is not a sound `form` ("model file").
absl::StatusOr<CompiledModel> CheckedModel(absl::StatusOr<CompiledModel> parsed,
                                           absl::string_view form, absl::string_view file_name,
                                           Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_EMIT_ARTIFACT_H_
