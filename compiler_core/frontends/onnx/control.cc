// Loops, branches and calls of local functions. Loop runs its body as many turns as its count and
// its condition say, Scan as many as its operands have elements; all must be known while compiling.
// If runs the branch that its condition chooses; both where the condition is computed at run time,
// which then chooses between their results.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/branches.h"
#include "compiler_core/frontends/onnx/graph_import.h"

namespace npuc::onnx {
namespace {

constexpr absl::string_view kAgain = "export the model again";
constexpr absl::string_view kCheckShapes =
    "check the shapes in INPUT_OPS against those that the model was trained with";

// A result of a loop that grows by an element a turn.
struct Stack {
  const TensorInfo* info;  // what the body states of an element
  int64_t axis = 0;        // of the stacked tensor; negative ones count from its end
  bool is_reversed = false;
  std::vector<ValueRef> elements = {};
};

// The tensor that no turn gave anything to.
absl::StatusOr<ValueRef> EmptyStack(NodeImporter& node, const TensorInfo& info) {
  const DType dtype = DTypeFromWire(info.data_type);
  const bool is_known =
      info.dims.has_value() && dtype != DType::kInvalid &&
      std::none_of(info.dims->begin(), info.dims->end(), [](int64_t dim) { return dim < 0; });
  if (!is_known) {
    return node.FailMode(absl::StrCat("a loop of no turns, whose result '", Printable(info.name),
                                      "' has a shape that the model does not state"),
                         "remove the loop from the model, or give it a turn");
  }
  Shape shape = *info.dims;
  shape.insert(shape.begin(), 0);
  RETURN_IF_ERROR(CheckShape(shape));
  return node.MakeConstant(CastTensor(Tensor::FromFloats(std::move(shape), {}), dtype));
}

absl::StatusOr<ValueRef> Stacked(NodeImporter& node, Stack stack) {
  if (stack.elements.empty()) return EmptyStack(node, *stack.info);
  const int64_t rank = static_cast<int64_t>(stack.elements[0]->type.shape.size());
  ASSIGN_OR_RETURN(const int64_t axis, node.Axis(stack.axis, rank + 1));
  if (stack.is_reversed) std::reverse(stack.elements.begin(), stack.elements.end());
  for (ValueRef& element : stack.elements) {
    Shape shape = element->type.shape;
    if (static_cast<int64_t>(shape.size()) != rank) {
      return absl::InvalidArgumentError("the turns give tensors of unlike ranks");
    }
    shape.insert(shape.begin() + axis, 1);
    ASSIGN_OR_RETURN(element, node.Reshaped(element, std::move(shape)));
  }
  return node.Joined(stack.elements, axis);
}

// The states behind the last turn, then the stacks.
absl::StatusOr<std::vector<ValueRef>> WithStacks(NodeImporter& node, std::vector<ValueRef> states,
                                                 std::vector<Stack> stacks) {
  for (Stack& stack : stacks) {
    const int result = static_cast<int>(states.size());
    states.emplace_back();
    if (!node.WantsOutput(result)) continue;
    ASSIGN_OR_RETURN(states.back(), Stacked(node, std::move(stack)));
  }
  return states;
}

// A Scan's operands: states, and tensors that are taken apart along an axis, an element a turn.
struct ScanOperands {
  std::vector<ValueRef> states = {};
  std::vector<std::vector<ValueRef>> elements = {};  // by operand, then by turn
  std::vector<Stack> stacks = {};
  int64_t turns = 0;
};

// Up to operator set 8 the first operand counts elements and all others have a batch in front.
absl::StatusOr<std::vector<ValueRef>> WithoutBatch(NodeImporter& node) {
  std::vector<ValueRef> operands;
  if (node.has(0)) {
    return node.FailMode("sequences of unlike lengths (sequence_lens)",
                         "export the model with operator set 9 or later");
  }
  for (int i = 1; i < node.input_count(); ++i) {
    if (node.rank(i) < 1 || node.shape(i)[0] != 1) {
      return node.FailMode(
          absl::StrCat("a batch that is not 1: operand ", i, " is ", TypeToString(node.type(i))),
          "export the model with operator set 9 or later");
    }
    ASSIGN_OR_RETURN(
        operands.emplace_back(),
        node.Reshaped(node.input(i), {node.shape(i).begin() + 1, node.shape(i).end()}));
  }
  return operands;
}

absl::Status TakeApart(NodeImporter& node, const ValueRef& operand, int64_t axis, bool is_reversed,
                       ScanOperands& scan) {
  const Shape& shape = operand->type.shape;
  ASSIGN_OR_RETURN(axis, node.Axis(axis, static_cast<int64_t>(shape.size())));
  const int64_t turns = shape[static_cast<size_t>(axis)];
  if (!scan.elements.empty() && turns != scan.turns) {
    return absl::InvalidArgumentError(
        absl::StrCat("one operand has ", scan.turns, " elements, another one ", turns));
  }
  scan.turns = turns;
  Shape element = shape;
  element.erase(element.begin() + axis);
  std::vector<ValueRef>& elements = scan.elements.emplace_back();
  for (int64_t i = 0; i < std::min<int64_t>(turns, frontend::kMaxTurns); ++i) {
    ASSIGN_OR_RETURN(const ValueRef slice, node.Sliced(operand, axis, i, 1));
    ASSIGN_OR_RETURN(elements.emplace_back(), node.Reshaped(slice, element));
  }
  if (is_reversed) std::reverse(elements.begin(), elements.end());
  return absl::OkStatus();
}

absl::StatusOr<ScanOperands> ReadScan(NodeImporter& node, const GraphView& body) {
  ASSIGN_OR_RETURN(const int64_t scanned, node.RequiredInt("num_scan_inputs"));
  const bool is_old = node.opset() < 9;
  std::vector<ValueRef> operands;
  for (int i = 0; i < node.input_count(); ++i) operands.push_back(node.input(i));
  if (is_old) {
    ASSIGN_OR_RETURN(operands, WithoutBatch(node));
  }
  const int64_t count = static_cast<int64_t>(operands.size());
  if (scanned < 1 || scanned > count || body.inputs().size() != operands.size() ||
      static_cast<int64_t>(body.outputs().size()) < count - scanned ||
      std::find(operands.begin(), operands.end(), nullptr) != operands.end()) {
    return node.Fail(DiagnosticKind::kMalformedNode,
                     absl::StrCat("num_scan_inputs is ", scanned, "; the node has ", count,
                                  " operands, the graph inside of it takes ", body.inputs().size(),
                                  " tensors and gives ", body.outputs().size()),
                     std::string(kAgain));
  }
  const size_t states = static_cast<size_t>(count - scanned);
  ASSIGN_OR_RETURN(std::vector<int64_t> axes, node.IntsOr("scan_input_axes", {}));
  ASSIGN_OR_RETURN(std::vector<int64_t> reversed,
                   node.IntsOr(is_old ? "directions" : "scan_input_directions", {}));
  ASSIGN_OR_RETURN(std::vector<int64_t> out_axes, node.IntsOr("scan_output_axes", {}));
  ASSIGN_OR_RETURN(std::vector<int64_t> out_reversed, node.IntsOr("scan_output_directions", {}));
  axes.resize(static_cast<size_t>(scanned));
  reversed.resize(axes.size());
  out_axes.resize(body.outputs().size() - states);
  out_reversed.resize(out_axes.size());
  ScanOperands scan{
      .states = {operands.begin(), operands.begin() + static_cast<ptrdiff_t>(states)}};
  for (size_t i = 0; i < axes.size(); ++i) {
    RETURN_IF_ERROR(TakeApart(node, operands[states + i], axes[i], reversed[i] != 0, scan));
  }
  for (size_t i = 0; i < out_axes.size(); ++i) {
    scan.stacks.push_back({.info = &body.outputs()[states + i],
                           .axis = out_axes[i],
                           .is_reversed = out_reversed[i] != 0});
  }
  return scan;
}

absl::StatusOr<std::vector<ValueRef>> WithBatch(NodeImporter& node, std::vector<ValueRef> values) {
  for (ValueRef& value : values) {
    if (value == nullptr) continue;
    Shape shape = value->type.shape;
    shape.insert(shape.begin(), 1);
    ASSIGN_OR_RETURN(value, node.Reshaped(value, std::move(shape)));
  }
  return values;
}

// The values; nullopt where the status, which is reported, says why there are none.
std::optional<std::vector<ValueRef>> Reported(NodeImporter& node,
                                              absl::StatusOr<std::vector<ValueRef>> values) {
  if (values.ok()) return *std::move(values);
  node.ReportMismatch(values.status(), std::string(kCheckShapes));
  return std::nullopt;
}

}  // namespace

bool GraphImport::IsControl(const NodeView& node) {
  return node.domain().empty() && (node.op() == "If" || node.op() == "Loop" || node.op() == "Scan");
}

std::vector<std::string> GraphImport::Ops() {
  std::vector<std::string> ops = AllRules().Ops();
  ops.insert(ops.end(), {"If", "Loop", "Scan"});
  std::sort(ops.begin(), ops.end());
  return ops;
}

const GraphView* GraphImport::GraphOf(const NodeView& node, absl::string_view attribute) {
  const auto graph = node.GraphOf(attribute);
  if (graph.ok()) return &shared_.file.Of(*graph);
  AddError(DiagnosticKind::kBadAttribute, node, std::string(graph.status().message()),
           std::string(kAgain));
  return nullptr;
}

bool GraphImport::HasCounts(const NodeView& node, const GraphView& graph, size_t inputs,
                            size_t outputs) {
  if (graph.inputs().size() == inputs && graph.outputs().size() == outputs) return true;
  AddError(
      DiagnosticKind::kMalformedNode, node,
      absl::StrCat("the graph inside of it takes ", graph.inputs().size(), " tensors and gives ",
                   graph.outputs().size(), "; the node passes ", inputs, " and wants ", outputs),
      std::string(kAgain));
  return false;
}

// True: none of the values, which are to be stacked or chosen from, is a sequence; else that is
// reported.
bool GraphImport::AreTensors(const NodeView& node, absl::Span<const ValueRef> values) {
  if (std::none_of(values.begin(), values.end(), &IsSequence)) return true;
  AddError(DiagnosticKind::kUnsupportedOperatorMode, node,
           "the graph gives a sequence of tensors in the place of a tensor",
           "take one tensor of it by SequenceAt, or all by ConcatFromSequence");
  return false;
}

GraphImport::Results GraphImport::RunGraph(const NodeView& node, const GraphView& graph,
                                           absl::Span<const ValueRef> inputs) {
  if (!shared_.unroller.TakeOperators(node.source(), graph.node_count() + 1)) return std::nullopt;
  const bool is_function = shared_.file.FunctionOf(node) == &graph;
  GraphImport import(&shared_, graph, is_function ? nullptr : this,
                     outer_.empty() ? std::string(node.output(0)) : outer_);
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const std::string& name = graph.inputs()[i].name;
    if (i < inputs.size() && inputs[i] != nullptr) {
      import.Give(name, inputs[i]);
    } else {
      import.LeaveOut(name);
    }
  }
  std::vector<absl::string_view> wanted;
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    // A loop's graph gives more than its node; a function's results are the node's.
    const bool is_left_out = is_function && (static_cast<int>(i) >= node.output_count() ||
                                             node.output(static_cast<int>(i)).empty());
    wanted.push_back(is_left_out ? absl::string_view() : graph.outputs()[i].name);
  }
  import.Run(import.Ordered(wanted));
  std::vector<ValueRef> results;
  for (const absl::string_view name : wanted) {
    results.emplace_back();
    if (name.empty()) continue;
    const bool is_inside = graph.FindProducer(name).node >= 0;
    results.back() = is_inside ? import.Result(name) : import.ValueOf(name, node.source());
    if (results.back() != nullptr) continue;
    if (!state_.diagnostics->has_errors()) {
      AddError(DiagnosticKind::kUnsupportedOperatorMode, node,
               absl::StrCat("result '", Printable(name), "' inside of it is not supported"),
               CutAdvice(node));
    }
    return std::nullopt;
  }
  return results;
}

GraphImport::Results GraphImport::ImportControl(const NodeView& node,
                                                const std::vector<ValueRef>& operands) {
  if (node.op() == "If" && operands.size() == 1 && operands[0] != nullptr) {
    return ImportIf(node, operands[0]);
  }
  const bool has_states = operands.size() >= 2 && std::find(operands.begin() + 2, operands.end(),
                                                            nullptr) == operands.end();
  if (node.op() == "Loop" && has_states) return ImportLoop(node, operands);
  if (node.op() == "Scan") return ImportScan(node, operands);
  AddError(DiagnosticKind::kOperandCount, node,
           absl::StrCat("the node has ", operands.size(), " operands; ", node.op(), " takes ",
                        node.op() == "If" ? "1" : "2 or more"),
           std::string(kAgain));
  return std::nullopt;
}

int GraphImport::Decided(const NodeView& node, absl::string_view what, const ValueRef& value) {
  return shared_.unroller.Decided(node.source(), what, value, [&] { return state_.constant_fix; });
}

GraphImport::Results GraphImport::ImportIf(const NodeView& node, const ValueRef& condition) {
  const auto run = [&](bool choice) -> Results {
    const GraphView* const branch = GraphOf(node, choice ? "then_branch" : "else_branch");
    if (branch == nullptr ||
        !HasCounts(node, *branch, 0, static_cast<size_t>(node.output_count()))) {
      return std::nullopt;
    }
    return RunGraph(node, *branch, {});
  };
  if (condition->constant.has_value()) {
    const int choice = Decided(node, "condition", condition);
    return choice < 0 ? std::nullopt : run(choice == 1);
  }
  const Results if_true = run(true);
  if (!if_true.has_value() || !AreTensors(node, *if_true)) return std::nullopt;
  const Results if_false = run(false);
  if (!if_false.has_value() || !AreTensors(node, *if_false)) return std::nullopt;
  NodeImporter importer(&state_, &node, {condition});
  return Reported(importer, frontend::ChosenResults(importer, condition, *if_true, *if_false));
}

// Operands: the count and the condition, each of which may be left out, then the states. The body
// takes the turn's number, the condition and the states, and gives the condition, the states, and
// what is stacked turn by turn.
GraphImport::Results GraphImport::ImportLoop(const NodeView& node,
                                             const std::vector<ValueRef>& operands) {
  const GraphView* const body = GraphOf(node, "body");
  const size_t states = operands.size() - 2;
  if (body == nullptr ||
      !HasCounts(node, *body, 2 + states, std::max(body->outputs().size(), 1 + states))) {
    return std::nullopt;
  }
  int64_t count = frontend::kMaxTurns + 1;
  if (operands[0] != nullptr) {
    if (Decided(node, "count", operands[0]) < 0) return std::nullopt;
    count = static_cast<int64_t>(
        std::clamp<double>(operands[0]->constant->at(0), 0, frontend::kMaxTurns + 1));
  }
  ValueRef condition = operands[1];
  if (condition == nullptr) {
    condition =
        frontend::ConstantValue(CastTensor(Tensor::FromInts({}, {1}), DType::kBool), node.source());
  }
  std::vector<ValueRef> values(operands.begin() + 2, operands.end());
  std::vector<Stack> stacks;
  for (size_t i = 1 + states; i < body->outputs().size(); ++i) {
    stacks.push_back({.info = &body->outputs()[i]});
  }
  const auto goes_on = [&](int turn) {
    return turn >= count ? 0 : Decided(node, "condition", condition);
  };
  const auto run = [&](int turn) {
    std::vector<ValueRef> inputs = {
        frontend::ConstantValue(Tensor::FromInts({}, {turn}), node.source()), condition};
    inputs.insert(inputs.end(), values.begin(), values.end());
    const Results results = RunGraph(node, *body, inputs);
    if (!results.has_value()) return false;
    if (!AreTensors(node, absl::MakeSpan(*results).subspan(1 + states))) return false;
    condition = (*results)[0];
    for (size_t i = 0; i < states; ++i) values[i] = (*results)[1 + i];
    for (size_t i = 0; i < stacks.size(); ++i) {
      stacks[i].elements.push_back((*results)[1 + states + i]);
    }
    return true;
  };
  if (!shared_.unroller.Repeat(node.source(), goes_on, run)) return std::nullopt;
  NodeImporter importer(&state_, &node, operands);
  return Reported(importer, WithStacks(importer, std::move(values), std::move(stacks)));
}

GraphImport::Results GraphImport::ImportScan(const NodeView& node,
                                             const std::vector<ValueRef>& operands) {
  const GraphView* const body = GraphOf(node, "body");
  if (body == nullptr) return std::nullopt;
  state_.opset = graph_.opset();
  const bool is_old = graph_.opset() < 9;
  NodeImporter importer(&state_, &node, operands);
  absl::StatusOr<ScanOperands> scan = ReadScan(importer, *body);
  if (!scan.ok()) {
    importer.ReportMismatch(scan.status(), std::string(kCheckShapes));
    return std::nullopt;
  }
  std::vector<ValueRef> values = scan->states;
  const auto run = [&](int turn) {
    std::vector<ValueRef> inputs = values;
    for (const auto& elements : scan->elements)
      inputs.push_back(elements[static_cast<size_t>(turn)]);
    const Results results = RunGraph(node, *body, inputs);
    if (!results.has_value()) return false;
    if (!AreTensors(node, *results)) return false;
    const auto behind_states = results->begin() + static_cast<ptrdiff_t>(values.size());
    values.assign(results->begin(), behind_states);
    for (size_t i = 0; i < scan->stacks.size(); ++i) {
      scan->stacks[i].elements.push_back(behind_states[static_cast<ptrdiff_t>(i)]);
    }
    return true;
  };
  const auto goes_on = [&](int turn) { return turn < scan->turns ? 1 : 0; };
  if (!shared_.unroller.Repeat(node.source(), goes_on, run)) return std::nullopt;
  Results results =
      Reported(importer, WithStacks(importer, std::move(values), std::move(scan->stacks)));
  if (!is_old || !results.has_value()) return results;
  return Reported(importer, WithBatch(importer, *std::move(results)));
}

GraphImport::Results GraphImport::ImportCall(const NodeView& node, const GraphView& function,
                                             const std::vector<ValueRef>& operands) {
  if (operands.size() > function.inputs().size() ||
      node.output_count() > static_cast<int>(function.outputs().size())) {
    AddError(DiagnosticKind::kMalformedNode, node,
             absl::StrCat("the function takes ", function.inputs().size(), " tensors and gives ",
                          function.outputs().size(), "; the node passes ", operands.size(),
                          " and wants ", node.output_count()),
             std::string(kAgain));
    return std::nullopt;
  }
  return RunGraph(node, function, operands);
}

}  // namespace npuc::onnx
