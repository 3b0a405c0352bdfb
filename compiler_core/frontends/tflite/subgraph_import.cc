#include "compiler_core/frontends/tflite/subgraph_import.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/plugin_import.h"
#include "compiler_core/frontends/tflite/custom_options.h"
#include "compiler_core/frontends/tflite/dilation.h"

namespace npuc::tflite {

frontend::RuleTable<ImportRule> AllRules() {
  return {ElementwiseRules(), WindowRules(),    LinearRules(),   ReduceRules(),  ShapeRules(),
          SliceRules(),       RecurrentRules(), DilationRules(), SpectrumRules()};
}

frontend::RuleTable<ImportRule> CustomRules() { return {TensorListRules(), CustomWindowRules()}; }

namespace {

constexpr absl::string_view kWhile = "WHILE";
constexpr absl::string_view kIf = "IF";
constexpr absl::string_view kComposite = "STABLEHLO_COMPOSITE";

bool IsControl(const OperatorView& op) {
  return op.op == kWhile || op.op == kIf || (op.op == kComposite && !op.subgraphs.empty());
}

// Custom operators that hold a part of a model as another compiler left it, by the begin of their
// names. Nothing of the network can be read back from them.
struct ForeignCode {
  absl::string_view prefix;
  absl::string_view compiler;
};
constexpr ForeignCode kForeignCode[] = {{"NeutronGraph", "NXP's Neutron converter"},
                                        {"XC_", "XMOS's xcore optimizer"},
                                        {"edgetpu-custom-op", "Coral's Edge TPU compiler"},
                                        {"ethos-u", "Arm's Vela"},
                                        {"vsi-npu", "VeriSilicon's compiler"}};

const ForeignCode* ForeignCodeOf(const OperatorView& op) {
  for (const ForeignCode& known : kForeignCode) {
    if (op.builtin_code == kCustomOperator && absl::StartsWith(op.op, known.prefix)) return &known;
  }
  return nullptr;
}

}  // namespace

SubgraphImport::SubgraphImport(FileImport* shared, const SubgraphView& graph, std::string outer,
                               int nesting)
    : shared_(*shared),
      state_(shared->state),
      graph_(graph),
      outer_(std::move(outer)),
      nesting_(nesting),
      is_needed_(graph.operators.size(), false),
      is_wanted_(graph.tensors.size(), false) {}

NodeSource SubgraphImport::SourceOf(const OperatorView& op) const {
  return {
      op.outputs.empty() ? absl::StrCat("operator ", op.index) : graph_.tensor(op.outputs[0]).name,
      op.op};
}

void SubgraphImport::AddError(DiagnosticKind kind, const OperatorView& op, std::string message,
                              std::string fix) {
  state_.AddError(kind, SourceOf(op), std::move(message), std::move(fix));
}

void SubgraphImport::Give(int tensor, ValueRef value) {
  given_.insert(tensor);
  values_[tensor] = std::move(value);
}

void SubgraphImport::MarkNeeded(const std::vector<int>& tensors, const Variables* variables) {
  for (const int tensor : tensors) is_wanted_[static_cast<size_t>(tensor)] = true;
  // A variable that is read wants what it is assigned, which may read further ones.
  std::set<int> read;
  for (bool grows = true; grows;) {
    grows = false;
    for (size_t k = graph_.operators.size(); k-- > 0;) {
      const OperatorView& op = graph_.operators[k];
      bool is_needed = variables != nullptr && read.contains(variables->AssignedBy(op));
      for (const int result : op.outputs) {
        is_needed |= is_wanted_[static_cast<size_t>(result)] && !given_.contains(result);
      }
      is_needed_[k] = is_needed;
      if (!is_needed) continue;
      const int variable = variables == nullptr ? -1 : variables->ReadBy(op);
      if (variable >= 0) grows |= read.insert(variable).second;
      for (const int operand : op.inputs) {
        if (operand >= 0) is_wanted_[static_cast<size_t>(operand)] = true;
      }
    }
  }
}

ValueRef SubgraphImport::ConstantValue(int index) {
  ValueRef& value = shared_.constants[{&graph_, index}];
  if (value != nullptr) return value;
  const TensorView& tensor = graph_.tensor(index);
  state_.constant_bytes_left -= tensor.type.size_bytes();
  Tensor data(tensor.type, std::vector<uint8_t>(tensor.data.begin(), tensor.data.end()));
  const NodeSource source{tensor.name, "Const"};
  frontend::Emitter node(&state_, source);
  value = tensor.quant.has_value() ? node.MakeStored({std::move(data), *tensor.quant}, source)
                                   : node.MakeConstant(std::move(data));
  return value;
}

ValueRef SubgraphImport::ValueOf(int index, const OperatorView& consumer) {
  const auto it = values_.find(index);
  if (it != values_.end()) return it->second;
  const TensorView& tensor = graph_.tensor(index);
  ValueRef value;
  if (tensor.type.dtype == DType::kInvalid) {
    AddError(DiagnosticKind::kBadTensor, consumer,
             absl::StrCat("operand '", Printable(tensor.name), "' has type ",
                          ElementTypeName(tensor.element_type), ", which npuc does not compute"),
             "convert the model without it");
  } else if (tensor.data.empty() && tensor.type.element_count() > 0) {
    AddError(DiagnosticKind::kMissingProducer, consumer,
             absl::StrCat("operand '", Printable(tensor.name),
                          "' is no input, no constant and no result of an earlier operator"),
             tensor.is_variable ? "export the model with its state as inputs and outputs"
                                : "convert the model again");
  } else {
    value = ConstantValue(index);
  }
  values_.emplace(index, value);
  return value;
}

ValueRef SubgraphImport::Result(int index) {
  const auto it = values_.find(index);
  if (it != values_.end()) return it->second;
  return graph_.tensor(index).data.empty() ? nullptr : ConstantValue(index);
}

bool SubgraphImport::IsSupported(const FileImport& shared, const OperatorView& op) {
  if (shared.plugins.Find(op.op) != nullptr) return true;
  if (op.builtin_code == kCustomOperator) return shared.custom_rules.Find(op.op) != nullptr;
  return shared.rules.Find(op.op) != nullptr || Variables::IsAbout(op) || IsControl(op);
}

std::vector<std::string> SubgraphImport::Ops() {
  std::vector<std::string> ops = AllRules().Ops();
  const std::vector<std::string> custom = CustomRules().Ops();
  ops.insert(ops.end(), custom.begin(), custom.end());
  ops.insert(ops.end(), {std::string(kWhile), std::string(kIf), std::string(kComposite)});
  std::sort(ops.begin(), ops.end());
  return ops;
}

void SubgraphImport::ReportNoRule(const OperatorView& op) {
  if (const ForeignCode* const foreign = ForeignCodeOf(op); foreign != nullptr) {
    return AddError(DiagnosticKind::kUnsupportedOperator, op,
                    absl::StrCat("the operator is machine code that ", foreign->compiler,
                                 " made for another chip"),
                    "give the model as it was before that compiler");
  }
  if (op.op == kComposite) {
    return AddError(DiagnosticKind::kUnsupportedOperator, op,
                    absl::StrCat("composite '", Printable(op.composite),
                                 "' names no subgraph that computes it"),
                    "convert the model again with the composite's decomposition, or without the "
                    "composite");
  }
  AddError(DiagnosticKind::kUnsupportedOperator, op,
           absl::StrCat("the operator is not supported", frontend::Unroller::InsideOf(outer_),
                        shared_.rules.NearestText(op.op)),
           shared_.cut_advice(outer_.empty() ? graph_.tensor(op.outputs[0]).name : outer_));
}

absl::Status SubgraphImport::CheckShapeOf(const OperatorView& op, NodeImporter& node, int result) {
  const TensorView& tensor = graph_.tensor(op.outputs[static_cast<size_t>(result)]);
  const Shape& shape = node.outputs()[static_cast<size_t>(result)]->type.shape;
  // Without a binding shape in the file there is nothing to compare.
  if (!checks_shapes_ || tensor.is_dynamic() || tensor.type.shape.empty() ||
      tensor.type.dtype == DType::kInvalid || shape == tensor.type.shape) {
    return absl::OkStatus();
  }
  return node.Fail(
      DiagnosticKind::kOperandMismatch,
      absl::StrCat("result '", Printable(tensor.name), "' has shape ", ShapeToString(shape),
                   ", but the model states ", ShapeToString(tensor.type.shape)),
      "convert the model again");
}

absl::Status SubgraphImport::TakeResults(const OperatorView& op, NodeImporter& node) {
  const size_t count = std::min(op.outputs.size(), node.outputs().size());
  for (size_t i = 0; i < count; ++i) {
    const int index = op.outputs[i];
    ValueRef value = node.outputs()[i];
    if (given_.contains(index) || value == nullptr) continue;
    RETURN_IF_ERROR(CheckShapeOf(op, node, static_cast<int>(i)));
    const TensorView& tensor = graph_.tensor(index);
    if (tensor.quant.has_value() && IsFloat(value->type.dtype)) {
      frontend::Emitter quantizer(&state_, {tensor.name, op.op});
      ASSIGN_OR_RETURN(const ValueRef quantized, quantizer.Requantized(value, *tensor.quant));
      quantized->facts = value->facts;
      value = quantized;
    }
    values_[index] = std::move(value);
  }
  return absl::OkStatus();
}

void SubgraphImport::ImportVariable(const OperatorView& op, Variables& variables) {
  if (op.op == "READ_VARIABLE") {
    const ValueRef value = variables.Read(op);
    for (const int result : op.outputs) values_.emplace(result, value);
  }
  if (op.op == "ASSIGN_VARIABLE") {
    const bool has_value = variables.AssignedBy(op) >= 0;
    variables.Assign(op, has_value ? ValueOf(op.inputs[1], op) : nullptr);
  }
}

void SubgraphImport::ImportOperator(const OperatorView& op, Variables* variables) {
  const bool is_custom = op.builtin_code == kCustomOperator;
  const frontend::PluginOp* const plugin = shared_.plugins.Find(op.op);
  if (plugin == nullptr && !is_custom && IsControl(op)) return ImportControl(op);
  const ImportRule* const rule =
      is_custom ? shared_.custom_rules.Find(op.op) : shared_.rules.Find(op.op);
  if (rule == nullptr && plugin == nullptr) {
    ReportNoRule(op);
    for (const int result : op.outputs) values_.emplace(result, nullptr);
    return;
  }
  std::vector<ValueRef> inputs;
  bool is_complete = true;
  for (const int operand : op.inputs) {
    const bool is_state = operand >= 0 && graph_.tensor(operand).is_variable;
    inputs.push_back(operand < 0 || is_state ? nullptr : ValueOf(operand, op));
    is_complete = is_complete && (operand < 0 || is_state || inputs.back() != nullptr);
  }
  std::optional<std::vector<ValueRef>> operands;
  if (is_complete) operands = std::move(inputs);
  const bool is_complex = std::any_of(op.inputs.begin(), op.inputs.end(), [this](int operand) {
    return operand >= 0 && ElementTypeName(graph_.tensor(operand).element_type) == "COMPLEX64";
  });
  RunRule(op, variables, std::move(operands), [&](NodeImporter& node) {
    if (is_complex && plugin == nullptr && ReshapesComplex(op.op)) return ReshapeComplex(node);
    if (is_complex && (plugin != nullptr || !TakesComplex(op.op))) {
      return node.FailMode("an operand of complex numbers",
                           "take their sizes, real or imaginary parts first");
    }
    return plugin == nullptr ? rule->import(node)
                             : frontend::RunPluginOp(node, *plugin, CustomOptions(*op.raw));
  });
}

void SubgraphImport::ImportSubgraph(const frontend::SubgraphMatch& match) {
  const auto operator_at = [this](int index) -> const OperatorView& {
    return graph_.operators[static_cast<size_t>(index)];
  };
  const OperatorView& end = operator_at(match.end);
  std::optional<std::vector<ValueRef>> operands(std::in_place);
  for (const frontend::OperandPlace& place : match.operands) {
    const int tensor = operator_at(place.node).inputs[static_cast<size_t>(place.operand)];
    operands->push_back(ValueOf(tensor, end));
    if (operands->back() == nullptr) {
      operands.reset();
      break;
    }
  }
  RunRule(end, nullptr, std::move(operands), [&](NodeImporter& node) {
    const auto options_of = [&](int i) { return CustomOptions(*operator_at(i).raw); };
    return frontend::RunPluginSubgraph(node, match, options_of);
  });
}

void SubgraphImport::RunRule(const OperatorView& op, Variables* variables,
                             std::optional<std::vector<ValueRef>> operands, RunNode import) {
  // Results that stay without a value count as failed.
  absl::Status status = absl::OkStatus();
  if (operands.has_value()) {
    NodeImporter node(&state_, {&graph_, &op, &shared_.transposed, variables}, SourceOf(op),
                      *std::move(operands));
    status = import(node);
    if (status.ok()) status = TakeResults(op, node);
    if (!status.ok()) {
      node.ReportMismatch(status,
                          state_.diagnostics->has_errors()
                              ? "convert the model again"
                              : "check the shapes in INPUT_OPS, or convert the model again");
    }
  }
  (void)state_.ConstantsFit(SourceOf(op));
  for (const int result : op.outputs) values_.emplace(result, nullptr);
}

void SubgraphImport::Run(Variables* variables) {
  for (const OperatorView& op : graph_.operators) {
    if (!IsNeeded(op)) continue;
    if (subgraphs_ != nullptr && subgraphs_->IsInside(op.index)) continue;
    if (subgraphs_ != nullptr && subgraphs_->FindEnd(op.index) != nullptr) {
      ImportSubgraph(*subgraphs_->FindEnd(op.index));
      continue;
    }
    if (variables != nullptr && op.builtin_code != kCustomOperator && Variables::IsAbout(op)) {
      ImportVariable(op, *variables);
    } else {
      ImportOperator(op, variables);
    }
  }
}

}  // namespace npuc::tflite
