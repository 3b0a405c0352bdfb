#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_IMPORT_STATE_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_IMPORT_STATE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/common/stored_integers.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/ops/graph_builder.h"

namespace npuc::frontend {

// What an importer knows of one tensor: its type, and either its value (then it may have no node in
// our graph yet) or the node output that computes it. A constant of stored integers is neither: it
// becomes a Dequantize of them once a node uses it, and `constant` stays empty.
struct ImportValue {
  // What one front end alone knows of its values; each reads no other's.
  struct Facts {
    virtual ~Facts() = default;
  };
  TensorType type;
  std::optional<Tensor> constant;
  ValueId id = {};         // invalid for a constant that no node of our graph uses yet
  NodeSource source = {};  // who made it
  std::optional<StoredIntegers> stored = {};
  std::shared_ptr<const Facts> facts = {};
  // Set where the value is not in the graph yet and may never be: computes it, or reports why not.
  std::function<absl::StatusOr<std::shared_ptr<ImportValue>>()> compute = {};
};
using ValueRef = std::shared_ptr<ImportValue>;  // null: an optional operand that is left out

ValueRef ConstantValue(Tensor tensor, NodeSource source);
inline int64_t RankOf(const ValueRef& value) {
  return static_cast<int64_t>(value->type.shape.size());
}
// Whether the value is known now, as itself or as stored integers.
bool IsKnown(const ValueRef& value);
// The results of a node of our graph.
std::vector<ValueRef> ResultValues(const GraphBuilder& builder, absl::Span<const ValueId> ids,
                                   const NodeSource& source);
// What a graph output is made of: a constant of another type than float as float32 (it is known at
// compile time, so its type is only a matter of how it is written down), all else as it is.
ValueRef WrittenAsFloat(ValueRef value);

// All constants of a model together may take this much, as may any one that is computed.
inline constexpr int64_t kMaxConstantBytes = int64_t{1} << 28;
// Multiply-adds or moves that may be spent on computing one constant; all together may take twice
// that. A product of two matrices of 512 x 512 takes as many. Models store larger constants as
// weights, and a hostile model must not hold a worker for long.
inline constexpr int64_t kMaxFoldWork = int64_t{1} << 27;
// Nodes of our graph that one model may become, steps of loops and of recurrent layers unrolled,
// and operands of all of them together.
inline constexpr int kMaxGraphNodes = 1 << 18;
inline constexpr int64_t kMaxGraphOperands = int64_t{1} << 22;
// Integers in a list that an operand states.
inline constexpr int64_t kMaxListEntries = 1 << 12;

// What all nodes of one import share.
struct ImportState {
  // `constant_fix`: what a diagnostic tells to do where an operand must be known while compiling.
  ImportState(Graph* graph, Diagnostics* diagnostics, const CompileOptions& options,
              std::string constant_fix)
      : builder(graph),
        diagnostics(diagnostics),
        file(options.model_name),
        constant_fix(std::move(constant_fix)),
        keep_states(options.keep_states),
        degrades_resizes(options.quant.has_value() && options.quant->resize_degrade_to_nearest) {}

  // An error of a node, or of no single one ({}).
  void AddError(DiagnosticKind kind, NodeSource source, std::string message, std::string fix);
  ValueRef AddInput(const std::string& name, const TensorType& type, std::string op = "");
  // Known integers are written as floats; a value that cannot be placed is reported.
  void AddOutput(std::string name, ValueRef value, bool fp16);

  // A state that goes from call to call: an input NAME_WHAT of the model, and an output
  // NAME_WHAT_out, which AddStateOutputs() adds in the order of the inputs.
  ValueRef StateBefore(const std::string& name, absl::string_view what, const TensorType& type);
  // Nothing where the name has no such state.
  void SetStateAfter(const std::string& name, absl::string_view what, ValueRef value);
  // The state that a layer begins with, given what the model says: where KEEP_STATES names the
  // layer and the model's state is a constant, an input.
  ValueRef KeptState(const std::string& layer, absl::string_view what, const ValueRef& initial);
  // To be called once, before other outputs are added; reports names of KEEP_STATES that no layer
  // has.
  void AddStateOutputs();

  // Says once of each node that resize_degrade_to_nearest changed its method.
  void NoteDegradedResize(const NodeSource& source, absl::string_view method);

  // False, and reported at the node that went too far: the model's constants are too large.
  bool ConstantsFit(NodeSource source);
  // False: one more node of so many operands goes beyond a limit. All further ones do, too.
  bool TakeNode(size_t operands);
  bool is_exhausted() const { return operands_left < 0; }

  GraphBuilder builder;
  Diagnostics* diagnostics;
  std::string file;
  std::string constant_fix;
  std::vector<std::string> keep_states;  // KEEP_STATES
  bool degrades_resizes;                 // resize_degrade_to_nearest of QUANT
  int64_t constant_bytes_left = kMaxConstantBytes;
  int64_t fold_work_left = 2 * kMaxFoldWork;
  int64_t operands_left = kMaxGraphOperands;  // negative: nodes or operands are too many

 private:
  struct State {
    std::string name;  // of the input
    ValueRef after;
  };
  std::vector<State> states_;
  std::set<std::string> recurrent_;  // layers that begin with constant states
  std::set<std::string> degraded_;   // nodes that NoteDegradedResize() has named
};

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_IMPORT_STATE_H_
