#ifndef NPUC_COMPILER_CORE_OPS_OP_H_
#define NPUC_COMPILER_CORE_OPS_OP_H_

#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/ir/graph/types.h"
#include "compiler_core/ops/op_traits.h"

namespace npuc {

class CommandBuilder;  // ir/cmd/builder.h
class LowerContext;    // ops/lower_context.h

// What an operator's functions see of a node: the node, the types of its operands, and those
// operands that are constants (null where not). Views; valid during the call.
struct OpView {
  const Node& node;
  absl::Span<const TensorType> inputs;
  absl::Span<const Tensor* const> constants;
  // The recorded types of the node's results; empty while the node is being built.
  absl::Span<const TensorType> outputs = {};

  // INVALID_ARGUMENT where the count of operands is not in lo..hi.
  absl::Status CheckInputCount(int lo, int hi) const;
};

// A property of a node that a core's rules may speak about: kernel_h, stride_w, in_channels,
// padding ("SAME"/"VALID"), layout, input ranks ... Names are those of target/cores/*.yaml.
using Fact = std::variant<int64_t, bool, std::string>;
using FactMap = std::map<std::string, Fact, std::less<>>;

// One operator of the IR. Operators follow TensorFlow's semantics in NHWC; front ends map their
// framework's operators onto them. All functions are pure and thread-safe.
struct OpDef {
  Op op;
  OpTraits traits;
  // Operand types and attributes -> output types. INVALID_ARGUMENT says what does not fit.
  absl::StatusOr<std::vector<TensorType>> (*infer)(const OpView& view);
  // Adds the properties that core rules may ask for. The node has passed infer.
  void (*facts)(const OpView& view, FactMap& facts);
  // Operand values -> output values, by naive loops: floats accumulate in double and round once.
  // Inputs have passed infer. UNIMPLEMENTED for a dtype that the operator has no kernel for.
  absl::StatusOr<std::vector<Tensor>> (*reference)(const Node& node,
                                                   absl::Span<const Tensor> inputs);
  // Emits the commands that compute the node. Null: the operator never reaches lowering (it is
  // rewritten or folded before). The node has passed infer and the core's rules.
  absl::Status (*lower)(const OpView& view, LowerContext& context);
  // Basic steps that reference takes, about; 0: the result shares the operand's bytes. Null: as
  // many as operands and results have elements. Bounds constant folding.
  int64_t (*work)(const OpView& view, absl::Span<const TensorType> outputs) = nullptr;
  // Whether a node of constant operands may be computed while compiling.
  bool folds = true;
};

// What an operator's struct must define; a missing function is a compile error that names it.
template <typename T>
concept Operator = requires(const OpView& view, const Node& node, FactMap& facts,
                            absl::Span<const Tensor> inputs, LowerContext& context) {
  { T::kTraits } -> std::convertible_to<OpTraits>;
  { T::InferShapes(view) } -> std::same_as<absl::StatusOr<std::vector<TensorType>>>;
  { T::Facts(view, facts) } -> std::same_as<void>;
  { T::Reference(node, inputs) } -> std::same_as<absl::StatusOr<std::vector<Tensor>>>;
};
template <typename T>
concept LowerableOperator = Operator<T> && requires(const OpView& view, LowerContext& context) {
  { T::Lower(view, context) } -> std::same_as<absl::Status>;
};

template <Operator T>
constexpr OpDef MakeOpDef(Op op) {
  OpDef def{op, T::kTraits, &T::InferShapes, &T::Facts, &T::Reference, nullptr, nullptr};
  if constexpr (LowerableOperator<T>) def.lower = &T::Lower;
  if constexpr (requires { &T::Work; }) def.work = &T::Work;
  if constexpr (requires { T::kFolds; }) def.folds = T::kFolds;
  return def;
}

// In ops/<name>/<name>.cc, at namespace scope: NPUC_DEFINE_OP(Softmax) after `struct Softmax`.
#define NPUC_DEFINE_OP(name)                                                            \
  const ::npuc::OpDef& Get##name##OpDef() {                                             \
    static constexpr ::npuc::OpDef kDef = ::npuc::MakeOpDef<name>(::npuc::Op::k##name); \
    return kDef;                                                                        \
  }

const OpDef& DefOf(Op op);
inline const OpTraits& TraitsOf(Op op) { return DefOf(op).traits; }
absl::Span<const OpDef* const> AllOps();  // in op_list.inc's order

// Calls def.infer on a node given its graph, and checks the results' shapes against the limits of
// ir/graph/types.h.
absl::StatusOr<std::vector<TensorType>> InferNode(const Graph& graph, const Node& node);
// Attributes whose names begin so carry facts (a bool or an integer) that only the front end knew,
// such as fact_scale_h of an upsampling that became copies; operators ignore them.
inline constexpr absl::string_view kFactPrefix = "fact_";
// On a Cast to integers: true where the floats are whole numbers already, since the framework has
// integers there.
inline constexpr char kWholeFact[] = "fact_whole";
// Adds "rank" (of operand 0), what the operator's own facts are, and the front end's.
void CollectFacts(const Graph& graph, const Node& node, FactMap& facts);

// Runs every operator's rules over the graph: inferred types equal the recorded
// ones, VerifyStructure. INTERNAL names the node.
absl::Status VerifyGraph(const Graph& graph);

// Computes a node from constant operands, within the budget, or gives null where an operand is not
// constant, the budget does not suffice or the values have no result (an integer divided by 0).
// Results that share an operand's bytes cost nothing.
struct FoldBudget {
  int64_t elements_per_value = int64_t{1} << 24;
  int64_t elements = int64_t{1} << 26;
  int64_t work = int64_t{1} << 29;
};
std::optional<std::vector<Tensor>> FoldNode(const Graph& graph, const Node& node,
                                            absl::Span<const TensorType> outputs,
                                            FoldBudget& budget);
// The name that a folded node's constant gets: the node's own, or, where the node only moves a
// constant's values (Identity, Reshape, Transpose), the constant's, which is what users call the
// weight.
const NodeSource& FoldedSource(const Graph& graph, const Node& node);

// Runs the whole graph by the operators' reference functions: one tensor per graph input, in
// order -> one per graph output. Used by `npuc reference` and by tests.
absl::StatusOr<std::vector<Tensor>> RunReference(const Graph& graph,
                                                 absl::Span<const Tensor> inputs);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_OPS_OP_H_
