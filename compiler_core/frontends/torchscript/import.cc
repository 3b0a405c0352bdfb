#include "compiler_core/frontends/torchscript/import.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/const_inputs.h"
#include "compiler_core/frontends/common/run_import.h"
#include "compiler_core/frontends/torchscript/archive.h"
#include "compiler_core/frontends/torchscript/executor.h"
#include "compiler_core/frontends/torchscript/op_call.h"
#include "compiler_core/frontends/torchscript/parameter_type.h"

namespace npuc {
namespace pt {
namespace {

constexpr size_t kMaxOutputs = 256;
constexpr int kMaxOutputDepth = 16;

// Words that a member of the header's structs must not be called.
bool IsCKeyword(absl::string_view name) {
  constexpr absl::string_view kWords[] = {
      "auto",   "break",  "case",      "char",     "const",   "continue", "default",  "do",
      "double", "else",   "enum",      "extern",   "float",   "for",      "goto",     "if",
      "inline", "int",    "long",      "register", "return",  "short",    "signed",   "sizeof",
      "static", "struct", "switch",    "typedef",  "union",   "unsigned", "void",     "volatile",
      "while",  "class",  "delete",    "new",      "this",    "template", "operator", "private",
      "public", "bool",   "namespace", "using",    "virtual", "friend",   "catch",    "throw",
  };
  return std::find(std::begin(kWords), std::end(kWords), name) != std::end(kWords);
}

// One import: resolves inputs, runs forward, flattens its result. Used once.
class TorchImporter {
 public:
  TorchImporter(const TorchArchive* archive, const CompileOptions& options, Graph* graph,
                Diagnostics* diagnostics)
      : options_(options),
        graph_(graph),
        diagnostics_(diagnostics),
        state_(graph, diagnostics, options.model_name),
        executor_(archive, &state_) {
    state_.core = FindCore(options.core);
  }

  void Run() {
    const ScriptValue root = executor_.Root();
    if (!root.Is(ScriptKind::kObject)) return;
    const ScriptFunction* forward = executor_.FindMethod(root.object, "forward");
    if (forward == nullptr) {
      if (!diagnostics_->has_errors()) {
        AddError(
            DiagnosticKind::kTorchNameUnknown,
            absl::StrCat("class ", Printable(root.object->class_name), " has no method forward"),
            "save a module with torch.jit.save(torch.jit.script(module), file)");
      }
      return;
    }
    std::vector<ScriptValue> arguments;
    if (!ResolveInputs(*forward, arguments)) return;
    const ScriptValue result = executor_.Call(*forward, arguments);
    if (result.Is(ScriptKind::kPoison)) {
      // Where the run was broken off, what went wrong before is of interest, too.
      if (result.integer >= 0) state_.Flush(result.integer);
      if (result.integer < 0) state_.FlushAll();
      if (!diagnostics_->has_errors()) {
        AddError(DiagnosticKind::kInternalError, "the run ended without a result", "report it");
      }
      return;
    }
    Flatten(result, 0);
    AddOutputs();
    WarnAboutUnusedInputs();
  }

 private:
  void AddError(DiagnosticKind kind, std::string message, std::string fix) {
    diagnostics_->Add({.kind = kind,
                       .message = std::move(message),
                       .file = options_.model_name,
                       .fix = std::move(fix)});
  }

  bool ResolveInputs(const ScriptFunction& forward, std::vector<ScriptValue>& arguments) {
    const std::vector<Parameter>& parameters = forward.def->parameters;
    const size_t count = parameters.empty() ? 0 : parameters.size() - 1;  // without self
    std::vector<const InputDecl*> declared(count, nullptr);
    inputs_.assign(count, ScriptValue::None());
    bool ok = true;
    for (const InputDecl& input : options_.inputs) {
      size_t index = 0;
      if (!absl::SimpleAtoi(input.name, &index) || index >= count) {
        AddError(DiagnosticKind::kInputNotInModel,
                 absl::StrCat("INPUT_OPS names input ", Printable(input.name), "; forward takes ",
                              count, " inputs", count == 0 ? "" : ", counted from 0"),
                 "name inputs by their index");
        ok = false;
        continue;
      }
      if (declared[index] != nullptr) {
        AddError(DiagnosticKind::kDuplicateEndpoint,
                 absl::StrCat("INPUT_OPS names input ", index, " twice"), "keep one of the two");
        ok = false;
        continue;
      }
      declared[index] = &input;
      if (!AddInput(parameters[index + 1], index, input)) ok = false;
    }
    std::vector<bool> is_fixed(count, false);
    for (const ConstInput& input : options_.const_inputs) {
      size_t index = 0;
      if (!absl::SimpleAtoi(input.name, &index) || index >= count) {
        AddError(
            DiagnosticKind::kInputNotInModel,
            absl::StrCat("CONST_INPUTS names input ", Printable(input.name), "; forward takes ",
                         count, " inputs", count == 0 ? "" : ", counted from 0"),
            "name inputs by their index");
        ok = false;
      } else if (declared[index] != nullptr || is_fixed[index]) {
        AddError(DiagnosticKind::kDuplicateEndpoint,
                 absl::StrCat("CONST_INPUTS names input ", index,
                              ", which INPUT_OPS or CONST_INPUTS has already"),
                 "keep one of the two");
        ok = false;
      } else {
        is_fixed[index] = true;
        if (!AddConstInput(parameters[index + 1], index, input)) ok = false;
      }
    }
    for (size_t i = 0; i < count; ++i) {
      const Parameter& parameter = parameters[i + 1];
      if (declared[i] == nullptr && !is_fixed[i]) {
        if (parameter.fallback == nullptr) {
          ok = false;
          ReportUndeclared(parameter, i);
        } else {
          inputs_[i] = executor_.DefaultOf(forward, parameter);
        }
      }
      arguments.push_back(inputs_[i]);
    }
    return ok && CheckNcxInputs(declared);
  }

  // A number of Python where forward takes one; else a tensor, of i64 where all numbers are whole.
  bool AddConstInput(const Parameter& parameter, size_t index, const ConstInput& input) {
    const absl::string_view type = TypeNameOf(parameter);
    const double first = input.values[0];
    if (type == "Tensor") {
      const DType dtype = input.is_whole ? DType::kInt64 : DType::kFloat32;
      ValueRef value = frontend::ConstInputValue(state_, input, dtype, std::nullopt);
      if (value == nullptr) return false;
      inputs_[index] = state_.heap.Tensor(std::move(value));
      return true;
    }
    const bool is_flag = type == "bool" && input.is_whole && (first == 0 || first == 1);
    if (!input.is_list && is_flag) {
      inputs_[index] = ScriptValue::Bool(first != 0);
    } else if (!input.is_list && type == "int" && input.is_whole) {
      inputs_[index] = ScriptValue::Int(static_cast<int64_t>(first));
    } else if (!input.is_list && type == "float") {
      inputs_[index] = ScriptValue::Float(first);
    } else {
      AddError(DiagnosticKind::kInputShapeConflict,
               absl::StrCat("the value of input ", index, ", '", Printable(parameter.name),
                            "', in CONST_INPUTS does not fit its type ", Printable(type)),
               "write a number for an int or a float, true or false for a bool");
      return false;
    }
    return true;
  }

  void ReportUndeclared(const Parameter& parameter, size_t index) {
    const absl::string_view type = TypeNameOf(parameter);
    const std::string what = absl::StrCat("input ", index, ", '", Printable(parameter.name), "', ");
    if (type == "Tensor") {
      AddError(DiagnosticKind::kTorchInputNotTensor,
               absl::StrCat(what, "has no default and is not in INPUT_OPS"),
               absl::StrCat("add it with its shape, as in INPUT_OPS: {", index, ": [1, 16]}"));
    } else {
      ReportType(what, type);
    }
  }
  void ReportType(const std::string& what, absl::string_view type) {
    const bool is_sequence = type == "List" || type == "Tuple";
    AddError(DiagnosticKind::kTorchInputNotTensor,
             absl::StrCat(what, "is of type ", Printable(type),
                          "; the inputs of a compiled model are tensors"),
             is_sequence ? "split it: give forward one parameter for each tensor of it"
                         : "give its value in CONST_INPUTS, by its index");
  }

  std::string NameOf(const Parameter& parameter, size_t index) {
    const bool is_made_up = absl::StartsWith(parameter.name, "argument_");
    if (is_made_up || IsCKeyword(parameter.name)) return absl::StrCat("input_", index);
    return std::string(parameter.name);
  }

  bool AddInput(const Parameter& parameter, size_t index, const InputDecl& input) {
    const absl::string_view type = TypeNameOf(parameter);
    const std::string what = absl::StrCat("input ", index, ", '", Printable(parameter.name), "', ");
    if (type != "Tensor" && type != "Optional") {
      ReportType(what, type);
      return false;
    }
    const absl::Status shape_status = CheckShape(input.shape);
    if (!shape_status.ok()) {
      AddError(DiagnosticKind::kInputShapeConflict,
               absl::StrCat("the shape of input ", index,
                            " in INPUT_OPS is refused: ", shape_status.message()),
               "declare a smaller shape");
      return false;
    }
    const std::string name = NameOf(parameter, index);
    ValueRef value = state_.AddInput(name, {DType::kFloat32, input.shape}, "Placeholder");
    input_ids_.emplace_back(index, value->id);
    const auto& ncx = options_.input_ncx_to_nxc;
    if (std::find(ncx.begin(), ncx.end(), static_cast<int64_t>(index)) != ncx.end()) {
      const auto rank = static_cast<int64_t>(input.shape.size());
      if (rank < 3 || rank > 5) {
        AddError(DiagnosticKind::kInputShapeConflict,
                 absl::StrCat("INPUT_NCX_TO_NXC names input ", index, " of shape ",
                              ShapeToString(input.shape), "; NHWC and NLC have rank 4 and 3"),
                 "take it out of INPUT_NCX_TO_NXC");
        return false;
      }
      std::vector<int64_t> perm = {0, rank - 1};
      for (int64_t axis = 1; axis + 1 < rank; ++axis) perm.push_back(axis);
      OpCall call(&state_, {}, {name, ""});
      absl::StatusOr<ValueRef> turned = call.Transposed(value, std::move(perm));
      if (!turned.ok()) return false;
      value = *std::move(turned);
    }
    inputs_[index] = state_.heap.Tensor(std::move(value));
    return true;
  }

  bool CheckNcxInputs(const std::vector<const InputDecl*>& declared) {
    bool ok = true;
    for (const int64_t index : options_.input_ncx_to_nxc) {
      if (index >= 0 && index < static_cast<int64_t>(declared.size()) &&
          declared[static_cast<size_t>(index)] != nullptr) {
        continue;
      }
      AddError(DiagnosticKind::kInputNotInModel,
               absl::StrCat("INPUT_NCX_TO_NXC names input ", index, ", which is not declared"),
               "name inputs of INPUT_OPS");
      ok = false;
    }
    return ok;
  }

  void Flatten(const ScriptValue& value, int depth) {
    if (outputs_.size() > kMaxOutputs || depth > kMaxOutputDepth) {
      if (!too_many_) {
        AddError(DiagnosticKind::kModelLimitExceeded,
                 absl::StrCat("the model has more than ", kMaxOutputs, " outputs, or nests them ",
                              "deeper than ", kMaxOutputDepth),
                 "return fewer tensors");
      }
      too_many_ = true;
      return;
    }
    if (value.Is(ScriptKind::kPoison)) state_.Flush(value.integer);
    if (value.Is(ScriptKind::kTensor) || value.Is(ScriptKind::kPoison)) {
      outputs_.push_back(value);
      return;
    }
    if (value.IsSequence()) {
      for (const ScriptValue& item : value.list->items) {
        if (too_many_) return;
        Flatten(item, depth + 1);
      }
      return;
    }
    const bool is_index = value.Is(ScriptKind::kUninitialized);
    AddError(DiagnosticKind::kTorchOutputNotTensor,
             absl::StrCat("output ", outputs_.size(), " is ",
                          is_index ? "the index of a maximum, which the core does not compute"
                                   : pt::NameOf(value.kind),
                          "; the outputs of a compiled model are tensors"),
             "return tensors, or lists and tuples of them");
    outputs_.push_back(ScriptValue::Poison());
  }

  void AddOutputs() {
    std::set<size_t> fp16;
    for (const std::string& name : options_.fp16_outputs) {
      size_t index = 0;
      if (absl::SimpleAtoi(name, &index) && index < outputs_.size()) {
        fp16.insert(index);
        continue;
      }
      AddError(DiagnosticKind::kOutputNotInModel,
               absl::StrCat("FP16_OUT_OPS names output ", Printable(name), "; the model has ",
                            outputs_.size(), " outputs, lists and tuples flattened"),
               "count from 0");
    }
    if (outputs_.empty()) {
      AddError(DiagnosticKind::kTorchOutputNotTensor, "the model returns nothing",
               "return at least one tensor");
    }
    std::set<ValueId> seen(graph_->inputs().begin(), graph_->inputs().end());
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (!outputs_[i].Is(ScriptKind::kTensor)) continue;
      const std::string name = absl::StrCat("output_", i);
      OpCall call(&state_, {}, {name, ""});
      const absl::StatusOr<ValueRef> value = call.Read(outputs_[i].tensor);
      if (!value.ok()) continue;
      absl::StatusOr<ValueId> id = call.Place(**value);
      if (!id.ok()) continue;
      // An output that is an input, or an output already, gets a copy of its own.
      if (!seen.insert(*id).second) {
        id = state_.builder.AddOne(Op::kIdentity, {*id}, {}, {name, ""});
        if (!id.ok()) continue;
      }
      graph_->AddOutput({name, *id, fp16.count(i) > 0});
    }
  }

  void WarnAboutUnusedInputs() {
    if (diagnostics_->has_errors()) return;
    std::vector<bool> used(static_cast<size_t>(graph_->value_count()), false);
    for (const GraphOutput& output : graph_->outputs()) used[output.value.value()] = true;
    for (int i = graph_->node_count() - 1; i >= 0; --i) {
      const Node& node = graph_->nodes()[static_cast<size_t>(i)];
      const bool is_needed = std::any_of(node.outputs.begin(), node.outputs.end(),
                                         [&](ValueId id) { return used[id.value()]; });
      if (!is_needed) continue;
      for (const ValueId id : node.inputs) used[id.value()] = true;
    }
    for (const auto& [index, id] : input_ids_) {
      if (used[id.value()]) continue;
      diagnostics_->Add(
          {.kind = DiagnosticKind::kUnusedInput,
           .message = "the input is declared in INPUT_OPS, but no output depends on it",
           .file = options_.model_name,
           .node = graph_->def(id).source.name,
           .fix = absl::StrCat("remove input ", index, ", or check the model")});
    }
  }

  const CompileOptions& options_;
  Graph* graph_;
  Diagnostics* diagnostics_;
  ImportState state_;
  Executor executor_;
  std::vector<ScriptValue> inputs_;
  std::vector<std::pair<size_t, ValueId>> input_ids_;
  std::vector<ScriptValue> outputs_;
  bool too_many_ = false;
};

}  // namespace
}  // namespace pt

absl::StatusOr<Graph> ImportTorchArchive(const pt::TorchArchive& archive,
                                         const CompileOptions& options, Diagnostics& diagnostics) {
  return frontend::RunImport("TorchScript", options, diagnostics,
                             [&](Graph* graph, Diagnostics* found) {
                               pt::TorchImporter(&archive, options, graph, found).Run();
                             });
}

absl::StatusOr<Graph> ImportTorchScript(absl::string_view model_bytes,
                                        const CompileOptions& options, Diagnostics& diagnostics) {
  ASSIGN_OR_RETURN(
      const pt::TorchArchive archive,
      pt::ReadTorchArchive(model_bytes, options.model_name, pt::ArchiveLimits(), diagnostics));
  return ImportTorchArchive(archive, options, diagnostics);
}

std::vector<std::string> ImportedTorchOps() {
  std::vector<std::string> ops = pt::TensorRules().Ops();
  ops.erase(std::remove_if(ops.begin(), ops.end(), [](const auto& op) { return op[0] == '_'; }),
            ops.end());
  return ops;
}

}  // namespace npuc
