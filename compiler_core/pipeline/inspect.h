#ifndef NPUC_COMPILER_CORE_PIPELINE_INSPECT_H_
#define NPUC_COMPILER_CORE_PIPELINE_INSPECT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/config/starter_config.h"
#include "compiler_core/frontends/common/outline.h"
#include "compiler_core/pipeline/compile.h"
#include "compiler_core/pipeline/summary.h"

namespace npuc {

// Which front end reads a model: by its bytes, and where these do not tell by the ending of its
// name. nullopt: none.
std::optional<Framework> FrameworkOfModel(absl::string_view bytes, absl::string_view name);

// Errors of one kind that one operator is refused for.
struct RefusalReason {
  std::string id;       // "NPUC1110"
  std::string op;       // empty: of no operator
  std::string message;  // of the first node
  std::string fix;
  std::string node;  // the first
  int64_t nodes = 0;
};

// Cores that take the same models.
struct CoreFamily {
  std::string name;                     // "GRUS", "integer cores"
  std::vector<std::string> cores = {};  // the first of them stands for all
};
std::vector<CoreFamily> CoreFamilies();

struct CoreVerdict {
  enum class Kind : uint8_t { kCompiles, kNeedsCalibration, kNeedsShapes, kRefused };
  CoreFamily family;
  Kind kind = Kind::kRefused;
  std::vector<RefusalReason> reasons = {};  // kRefused: distinct ones
  bool wants_samples = false;               // a float model, and the family computes in integers
  bool quantizes_anew = false;              // a model that quantizes a part of its values
  size_t warnings = 0;                      // kCompiles
  CompileSummary summary = {};              // kCompiles
};
absl::string_view NameOf(CoreVerdict::Kind kind);  // "compiles", "needs calibration data" ...

struct InspectRequest {
  absl::string_view model_bytes;
  std::string model_name;  // base name
  std::map<std::string, CompileRequest::SideInput> side_inputs = {};
  // The second file of the model as a config beside the model names it, where a config has to.
  // Empty: the base name of the side input.
  std::string data_in_config = {};
  StatedFacts stated = {};
};
struct ModelInspection {
  ModelOutline outline;  // outputs with the shapes that the import found
  // Multiply-adds of convolutions and matrix products, where the model could be imported.
  std::optional<int64_t> macs;
  std::vector<CoreVerdict> verdicts;  // in the order of CoreFamilies()
};

// Reads what the files state of themselves, by the model's front end. Problems go to `diagnostics`.
absl::StatusOr<ModelOutline> OutlineModel(const InspectRequest& request, Diagnostics& diagnostics);

// The outline, and the verdict of Compile() on the config that WriteStarterConfig gives for each
// family. A float model on an integer core is compiled with random samples in place of calibration
// data, to see whether it would. Pure. Errors: where the file cannot be read as a model, or
// a stated shape names no input; they are in `diagnostics`.
absl::StatusOr<ModelInspection> InspectModel(const InspectRequest& request,
                                             Diagnostics& diagnostics);

// The family that a config is best made for: one that compiles, before those that need calibration
// data, and these before those that need shapes. Of several that compile, one whose memory holds
// the model, then one that computes with a quantized model's own integers; the first of equal ones.
// Null: none takes the model.
const CoreVerdict* BestVerdict(const ModelInspection& inspection);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PIPELINE_INSPECT_H_
