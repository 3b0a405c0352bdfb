#ifndef NPUC_COMPILER_CORE_LOWERING_LOWER_H_
#define NPUC_COMPILER_CORE_LOWERING_LOWER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/float16.h"
#include "compiler_core/ir/cmd/command.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/lowering/weights.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {

// How one weight is to be stored.
struct WeightChoice {
  bool compress = false;
  std::optional<int> bits;    // LEO, compressed: in place of LowerOptions::book_bits
  std::optional<double> min;  // in place of the weight's own range
  std::optional<double> max;
};

struct LowerOptions {
  WeightChoice default_choice;                                      // of fully connected weights
  WeightChoice conv_choice;                                         // of convolution weights
  std::map<std::string, WeightChoice, std::less<>> weight_choices;  // by weight node name
  int book_bits = 0;  // LEO: bits of the codes of compressed weights; 0: GRUS's form
  BookSpacing book_spacing = BookSpacing::kLinear;
  int exponent_bits = kHalfExponentBits;  // LEO: of weights that are not compressed
  bool in_place = false;                  // CompileOptions::MemoryPlan::kInPlace
  bool plain_commands = false;            // CompileOptions::MemoryPlan::kCompatible
  std::string model_name;                 // for diagnostics
};

// What became of one weight, for the template, the listings and the report.
struct WeightRecord {
  ValueId value;        // the constant, in the graph that was lowered
  std::string name;     // source node of the constant
  std::string used_by;  // source node of its first user
  Shape shape;
  int bits = 16;   // of a stored weight, below 16 where compressed
  double min = 0;  // range in force; the weight's own where not compressed
  double max = 0;
  double step = 0;           // mean distance of the values of codes; 0 where not compressed
  double sparsity = 0;       // share of weights that become exactly 0
  double max_abs_error = 0;  // stored value against the float weight
  double rms_error = 0;
  int64_t mask_bytes = 0;
  int64_t code_bytes = 0;  // with books
  bool compressed() const { return bits < 16; }
};

struct LoweredModel {
  Program program;
  std::vector<WeightRecord> weights;  // in order of first use
};

// The names of the constants that can carry a WeightChoice: the constant operands of MatMul and
// Conv2D, in order of first use. A weight of both counts as fully connected where a MatMul is
// first.
struct WeightName {
  std::string name;
  bool is_convolution = false;
};
std::vector<WeightName> WeightNames(const Graph& graph);

// Commands for a legal graph. All refusals go to diagnostics, with node and reason; the status is
// the first. Output buffers of kind kData are not placed yet (memplan does that).
absl::StatusOr<LoweredModel> Lower(const Graph& graph, const CoreSpec& core,
                                   const LowerOptions& options, Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_LOWERING_LOWER_H_
