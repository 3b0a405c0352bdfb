#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_OUTLINE_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_OUTLINE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/ir/graph/types.h"

namespace npuc {

// The facts that a model file states of itself, read without importing its operators: what a person
// needs to write a config. Each front end fills it with its own reader, within the limits of its
// importer.
struct ModelOutline {
  // A tensor that the model takes or gives.
  struct Port {
    std::string key;   // how INPUT_OPS or OUTPUT_OPS names it
    std::string name;  // what the model calls it
    std::string type =
        {};  // "float32"; the format's word where the IR lacks the type; empty: unknown
    // -1: an unknown dimension. Empty optional: not even the number of dimensions is known.
    std::optional<std::vector<int64_t>> dims = {};
    bool may_be_left_out = false;
    std::vector<std::string> dim_names = {};  // as DIMS names them; empty strings: no name
    // Its value as CONST_INPUTS has it, "16000"; empty: it is an input. A user states it.
    std::string constant = {};
    bool is_tensor = true;  // false: `type` says what it is
  };

  Framework framework = Framework::kTensorFlow;
  std::string producer = {};  // "pytorch 1.13, operator set 13"; empty: not stated
  std::vector<Port> inputs = {};
  std::vector<Port> outputs = {};                 // empty: the file does not tell
  std::map<std::string, int64_t> operators = {};  // nodes by operator, constants aside
  std::string operators_are = "nodes";            // what was counted: "calls in the code"
  int64_t weights = 0;                            // elements of constants
  int64_t weight_bytes = 0;                       // as they are read
  std::string data_file = {};                     // beside the model, of its constants; or empty
  // Lengths of the rows that its input may have where the model states no shape of it: the columns
  // of its matrices in the file's order, then their rows, each once.
  std::vector<int64_t> matrix_columns = {};
  std::vector<std::string> notes = {};  // sentences without a full stop
};

// "float32", "int8", "bool".
std::string OutlineTypeName(DType dtype);
// "[1,?,40]"; "of unknown shape".
std::string OutlineShape(const std::optional<std::vector<int64_t>>& dims);
// The shape as a line of INPUT_OPS takes it, "[1, 40, ?]": a first dimension that alone is unknown
// is the number of items, which is 1. "[...]" where nothing is known.
std::string ShapeToWrite(const std::optional<std::vector<int64_t>>& dims);
// True where the first dimension is unknown and no other one is.
bool OnlyBatchIsUnknown(absl::Span<const int64_t> dims);
// Adds a constant of such dimensions to the weights; one that overflows is left out.
void CountWeight(absl::Span<const int64_t> dims, int64_t bytes_per_element, ModelOutline& outline);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_OUTLINE_H_
