#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/op.h"

namespace npuc {

// A listed operator without its folder is a link error that names it.
#define NPUC_OP(name) const OpDef& Get##name##OpDef();
#include "compiler_core/ir/graph/op_list.inc"
#undef NPUC_OP

namespace {

absl::Span<const OpDef* const> Definitions() {
  static const OpDef* const kTable[] = {
#define NPUC_OP(name) &Get##name##OpDef(),
#include "compiler_core/ir/graph/op_list.inc"
#undef NPUC_OP
  };
  return kTable;
}

// An OpView and what it looks at.
struct NodeView {
  NodeView(const Graph& graph, const Node& node) : node(node) {
    inputs.reserve(node.inputs.size());
    constants.reserve(node.inputs.size());
    for (const ValueId input : node.inputs) {
      inputs.push_back(graph.type(input));
      constants.push_back(graph.ConstantOf(input));
    }
    for (const ValueId output : node.outputs) outputs.push_back(graph.type(output));
  }
  OpView view() const { return {node, inputs, constants, outputs}; }

  const Node& node;
  std::vector<TensorType> inputs;
  std::vector<const Tensor*> constants;
  std::vector<TensorType> outputs;
};

std::string DescribeNode(int index, const Node& node) {
  return absl::StrCat("node ", index, " '", Printable(node.source.name), "' (", NameOf(node.op),
                      ")");
}

std::string TypesToString(absl::Span<const TensorType> types) {
  return absl::StrJoin(types, ", ", [](std::string* out, const TensorType& type) {
    absl::StrAppend(out, TypeToString(type));
  });
}

int64_t WorkOf(const OpDef& def, const OpView& view, absl::Span<const TensorType> outputs) {
  if (def.work != nullptr) return def.work(view, outputs);
  int64_t work = 0;
  for (const TensorType& type : view.inputs) work += type.element_count();
  for (const TensorType& type : outputs) work += type.element_count();
  return work;
}

// Takes what the node needs from the budget, or returns false and leaves it.
bool TakeBudget(int64_t work, absl::Span<const TensorType> outputs, FoldBudget& budget) {
  if (work == 0) return true;
  int64_t elements = 0;
  for (const TensorType& type : outputs) {
    if (type.element_count() > budget.elements_per_value) return false;
    elements += type.element_count();
  }
  if (elements > budget.elements || work > budget.work) return false;
  budget.elements -= elements;
  budget.work -= work;
  return true;
}

}  // namespace

absl::Status OpView::CheckInputCount(int lo, int hi) const {
  const int count = static_cast<int>(inputs.size());
  if (count >= lo && count <= hi) return absl::OkStatus();
  const std::string allowed = lo == hi ? absl::StrCat(lo) : absl::StrCat(lo, " to ", hi);
  return absl::InvalidArgumentError(
      absl::StrCat(NameOf(node.op), " has ", count, " operands; it takes ", allowed));
}

absl::Span<const OpDef* const> AllOps() { return Definitions(); }

const OpDef& DefOf(Op op) { return *Definitions()[static_cast<size_t>(op)]; }

absl::StatusOr<std::vector<TensorType>> InferNode(const Graph& graph, const Node& node) {
  const NodeView view(graph, node);
  ASSIGN_OR_RETURN(std::vector<TensorType> types, DefOf(node.op).infer(view.view()));
  for (const TensorType& type : types) RETURN_IF_ERROR(CheckShape(type.shape));
  return types;
}

void CollectFacts(const Graph& graph, const Node& node, FactMap& facts) {
  const NodeView view(graph, node);
  if (!view.inputs.empty()) facts["rank"] = static_cast<int64_t>(view.inputs[0].shape.size());
  DefOf(node.op).facts(view.view(), facts);
  // What a front end knew of the framework's operator and the node alone does not show.
  for (const auto& [name, attr] : node.attrs) {
    if (!absl::StartsWith(name, kFactPrefix)) continue;
    const std::string fact = name.substr(kFactPrefix.size());
    if (const auto* flag = std::get_if<bool>(&attr)) facts[fact] = *flag;
    if (const auto* integer = std::get_if<int64_t>(&attr)) facts[fact] = *integer;
  }
}

absl::Status VerifyGraph(const Graph& graph) {
  RETURN_IF_ERROR(VerifyStructure(graph));
  for (int i = 0; i < graph.node_count(); ++i) {
    const Node& node = graph.nodes()[i];
    const absl::StatusOr<std::vector<TensorType>> inferred = InferNode(graph, node);
    if (!inferred.ok()) {
      return absl::InternalError(
          absl::StrCat(DescribeNode(i, node), ": ", inferred.status().message()));
    }
    std::vector<TensorType> recorded;
    for (const ValueId output : node.outputs) recorded.push_back(graph.type(output));
    if (recorded != *inferred) {
      return absl::InternalError(absl::StrCat(DescribeNode(i, node), ": recorded types ",
                                              TypesToString(recorded), ", inferred ",
                                              TypesToString(*inferred)));
    }
  }
  return absl::OkStatus();
}

std::optional<std::vector<Tensor>> FoldNode(const Graph& graph, const Node& node,
                                            absl::Span<const TensorType> outputs,
                                            FoldBudget& budget) {
  const OpDef& def = DefOf(node.op);
  if (!def.folds || node.inputs.empty()) return std::nullopt;
  for (const ValueId input : node.inputs) {
    if (graph.ConstantOf(input) == nullptr) return std::nullopt;
  }
  const NodeView view(graph, node);
  if (!TakeBudget(WorkOf(def, view.view(), outputs), outputs, budget)) return std::nullopt;
  std::vector<Tensor> operands;
  operands.reserve(view.constants.size());
  for (const Tensor* constant : view.constants) operands.push_back(*constant);
  absl::StatusOr<std::vector<Tensor>> results = def.reference(node, operands);
  if (!results.ok()) return std::nullopt;
  return *std::move(results);
}

const NodeSource& FoldedSource(const Graph& graph, const Node& node) {
  const bool moves =
      node.op == Op::kIdentity || node.op == Op::kReshape || node.op == Op::kTranspose;
  if (!moves || node.inputs.size() != 1) return node.source;
  const NodeSource& operand = graph.def(node.inputs[0]).source;
  return operand.name.empty() ? node.source : operand;
}

absl::StatusOr<std::vector<Tensor>> RunReference(const Graph& graph,
                                                 absl::Span<const Tensor> inputs) {
  if (inputs.size() != graph.inputs().size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the graph has ", graph.inputs().size(), " inputs; given ", inputs.size()));
  }
  std::vector<Tensor> values(graph.value_count());
  std::vector<int> uses_left = graph.UseCounts();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ValueId id = graph.inputs()[i];
    if (inputs[i].type() != graph.type(id)) {
      return absl::InvalidArgumentError(
          absl::StrCat("input '", Printable(graph.def(id).source.name), "' is ",
                       TypeToString(graph.type(id)), "; given ", TypeToString(inputs[i].type())));
    }
    values[id.value()] = inputs[i];
  }
  for (int i = 0; i < graph.node_count(); ++i) {
    const Node& node = graph.nodes()[i];
    if (node.op == Op::kPlaceholder) continue;
    std::vector<Tensor> operands;
    for (const ValueId input : node.inputs) operands.push_back(values[input.value()]);
    // A value's bytes go when its last use has them.
    for (const ValueId input : node.inputs) {
      if (--uses_left[input.value()] == 0) values[input.value()] = Tensor();
    }
    absl::StatusOr<std::vector<Tensor>> results = DefOf(node.op).reference(node, operands);
    if (!results.ok()) {
      return absl::Status(results.status().code(),
                          absl::StrCat(DescribeNode(i, node), ": ", results.status().message()));
    }
    NPUC_CHECK(results->size() == node.outputs.size());
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      NPUC_CHECK((*results)[k].type() == graph.type(node.outputs[k]));
      if (uses_left[node.outputs[k].value()] > 0) {
        values[node.outputs[k].value()] = std::move((*results)[k]);
      }
    }
  }
  std::vector<Tensor> outputs;
  for (const GraphOutput& output : graph.outputs()) outputs.push_back(values[output.value.value()]);
  return outputs;
}

}  // namespace npuc
