#ifndef NPUC_COMPILER_CORE_BASE_FRAMEWORK_H_
#define NPUC_COMPILER_CORE_BASE_FRAMEWORK_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace npuc {

// The formats of models that have a front end, as data. The rows stand in frameworks.inc.
// Immutable; everything here is thread-safe.
enum class Framework : uint8_t {
#define NPUC_FRONT_END(constant, ...) k##constant,
#include "compiler_core/base/frameworks.inc"
};

// The second file of a model: its constants, or the net that a file of constants belongs to.
enum class DataFile : uint8_t {
  kNone,
  kNamed,     // read where a config names it
  kAlways,    // where a config does not name it, it is MODEL_FILE with another ending
  kRequired,  // a config has to name it
};

struct FrameworkInfo {
  Framework framework;
  const char* name;              // FRAMEWORK of a config: "TF"
  absl::string_view cfg_word;    // model_type of a .cfg: "TensorFlow"; empty: a .cfg cannot name it
  absl::string_view format;      // what a file is: "TensorFlow GraphDef"
  absl::string_view a_model;     // the same in a sentence: "a frozen TensorFlow GraphDef"
  absl::string_view endings;     // of file names, ".pt|.pth": a guess where the bytes do not tell
  bool needs_input_ops = false;  // the file does not state its inputs
  bool needs_output_ops = false;   // the file does not state its outputs
  bool has_port_names = true;      // false: a config counts inputs and outputs from 0
  bool has_const_inputs = false;   // CONST_INPUTS is honoured
  bool has_dim_names = false;      // DIMS is honoured
  bool has_kept_states = false;    // KEEP_STATES is honoured
  bool has_turned_inputs = false;  // INPUT_NCX_TO_NXC is honoured
  DataFile data_file = DataFile::kNone;
  absl::string_view data_key = {};     // key of a config that names it: "MODEL_BIN"
  absl::string_view data_ending = {};  // its ending where no key names it: ".bin"
};

absl::Span<const FrameworkInfo> AllFrameworks();
const FrameworkInfo& InfoOf(Framework framework);
inline const char* FrameworkName(Framework framework) { return InfoOf(framework).name; }
// "TF, PT", of all rows, with such a separator.
std::string FrameworkNames(absl::string_view separator = ", ");
// "a TFLite model, an ONNX model or a Compass IR", of all rows.
std::string ModelsThatAreRead();
// nullopt where no front end has the name. Case counts.
std::optional<Framework> FrameworkNamed(absl::string_view name);

// The names of the rows whose `fact` is not its type's first value: "TF|PT".
template <typename Fact>
std::string FrameworksWith(Fact FrameworkInfo::*fact) {
  std::string names;
  for (const FrameworkInfo& info : AllFrameworks()) {
    if (info.*fact != Fact()) absl::StrAppend(&names, names.empty() ? "" : "|", info.name);
  }
  return names;
}

// The names of the rows whose data file such a key names, "ONNX|COMPASS"; with `kind`, those of
// these rows that have such a data file.
std::string FrameworksWithDataKey(absl::string_view key, std::optional<DataFile> kind = {});

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_FRAMEWORK_H_
