#include "compiler_core/frontends/paddle/importer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/outline.h"
#include "compiler_core/frontends/common/plugin_import.h"

namespace npuc::paddle {
namespace {

constexpr char kParametersFix[] =
    "name the .pdiparams of this program, or a zip of its folder of parameters, in WEIGHTS_FILE";

std::string Quoted(const std::vector<std::string>& names) {
  return absl::StrJoin(names, ", ", [](std::string* out, const std::string& name) {
    absl::StrAppend(out, "'", Printable(name), "'");
  });
}

// True where a program may state the shape for one of its variables. Unknown dimensions, which are
// negative or 0, fit anything, and so does a lone one, for a rank that is unknown; Paddles of
// before 2.6 have {1} for a scalar.
bool Fits(const Variable& stated, const Shape& shape) {
  const auto of_scalars = [](const Shape& dims) { return dims.empty() ? Shape{1} : dims; };
  const Shape dims = of_scalars(stated.dims);
  const Shape found = of_scalars(shape);
  const bool is_unknown = !stated.is_tensor || (dims.size() == 1 && dims[0] <= 0);
  return is_unknown || std::equal(dims.begin(), dims.end(), found.begin(), found.end(),
                                  [](int64_t dim, int64_t has) { return dim <= 0 || dim == has; });
}

template <typename Visit>
void ForEachName(const OpView::Arguments& arguments, Visit visit) {
  for (const auto& [parameter, names] : arguments) {
    for (const std::string& name : names) visit(name);
  }
}

}  // namespace

ProgramEnds EndsOf(const ProgramFile& program) {
  ProgramEnds ends;
  std::set<std::string, std::less<>> behind;  // names that depend on decoded boxes
  std::vector<std::string> raw;               // what operators behind read of others
  for (size_t i = 0; i < program.ops().size(); ++i) {
    const OpView& op = program.ops()[i];
    bool is_behind = DecodesBoxes(op.type());
    if (is_behind) ends.decoders.push_back(static_cast<int>(i));
    ForEachName(op.inputs(),
                [&](const std::string& name) { is_behind = is_behind || behind.contains(name); });
    if (!is_behind) continue;
    ForEachName(op.inputs(), [&](const std::string& name) {
      const Variable* variable = program.FindVariable(name);
      const bool is_given = (variable != nullptr && variable->is_parameter) ||
                            std::find(program.inputs().begin(), program.inputs().end(), name) !=
                                program.inputs().end();
      const bool is_taken =
          behind.contains(name) || std::find(raw.begin(), raw.end(), name) != raw.end();
      if (!is_given && !is_taken) raw.push_back(name);
    });
    ForEachName(op.outputs(), [&](const std::string& name) { behind.insert(name); });
  }
  bool has_raw = false;
  for (const std::string& name : program.outputs()) {
    if (!behind.contains(name)) {
      ends.outputs.push_back(name);
    } else if (!has_raw) {
      ends.outputs.insert(ends.outputs.end(), raw.begin(), raw.end());
      has_raw = true;
    }
  }
  return ends;
}

Importer::Importer(const ProgramFile& program, const ByteSource* parameters,
                   const CompileOptions& options, const frontend::Plugins& plugins, Graph* graph,
                   Diagnostics* diagnostics)
    : program_(program),
      file_(parameters),
      options_(options),
      state_(
          graph, diagnostics, options,
          "export the model with static shapes, or cut it around this operator with INPUT_OPS or "
          "OUTPUT_OPS"),
      endpoints_(options, &state_),
      plugins_(plugins),
      subgraphs_(plugins),
      ends_(EndsOf(program)),
      is_needed_(program.ops().size(), false) {
  for (const OpView& op : program.ops()) {
    ForEachName(op.inputs(), [&](const std::string& name) { known_.insert(name); });
    ForEachName(op.outputs(), [&](const std::string& name) {
      known_.insert(name);
      ++made_[name];
    });
  }
  known_.insert(program.inputs().begin(), program.inputs().end());
}

bool Importer::Exists(absl::string_view name) const { return known_.contains(name); }

std::string Importer::Suggestion(absl::string_view name) const {
  const std::vector<absl::string_view> names(known_.begin(), known_.end());
  return frontend::SuggestName(name, names,
                               absl::StrCat("the model's inputs are ", Quoted(program_.inputs()),
                                            ", its outputs ", Quoted(ends_.outputs)));
}

void Importer::AddInput(const std::string& name, const Shape* declared) {
  values_[name] = nullptr;
  const Variable* variable = program_.FindVariable(name);
  std::optional<std::vector<int64_t>> stated;
  if (variable != nullptr && variable->is_tensor) stated = variable->dims;
  states_shapes_ =
      states_shapes_ && stated.has_value() && !stated->empty() &&
      std::none_of(stated->begin() + 1, stated->end(), [](int64_t d) { return d < 0; });
  DType dtype = DType::kFloat32;
  if (variable != nullptr && variable->is_tensor) dtype = DTypeFromWire(variable->data_type);
  if (dtype == DType::kInvalid) {
    return endpoints_.ReportType(name, DataTypeName(variable->data_type));
  }
  if (variable != nullptr && variable->lod_level > 0) {
    return state_.AddError(DiagnosticKind::kInputTypeUnsupported, {},
                           absl::StrCat("input '", Printable(name), "' is a sequence of LoD level ",
                                        variable->lod_level, "; level 0 is supported"),
                           "export the model with padded sequences");
  }
  if (declared != nullptr && stated.has_value() && frontend::Contradicts(*stated, *declared)) {
    return endpoints_.ReportConflict({name, *declared}, OutlineShape(stated));
  }
  Shape shape = declared != nullptr ? *declared : stated.value_or(Shape{-1});
  if (declared == nullptr && OnlyBatchIsUnknown(shape)) {
    shape[0] = 1;
    state_.diagnostics->Add(
        {.kind = DiagnosticKind::kInputOfOneItem,
         .message = absl::StrCat("input '", Printable(name), "' is ", OutlineShape(stated),
                                 "; it is taken as one item, ", ShapeToWrite(stated)),
         .file = state_.file,
         .fix = "for another number declare it in INPUT_OPS"});
  }
  if (std::any_of(shape.begin(), shape.end(), [](int64_t dim) { return dim < 0; })) {
    return state_.AddError(DiagnosticKind::kPaddleDynamicInput, {},
                           absl::StrCat("input '", Printable(name), "' is ", OutlineShape(stated),
                                        "; every dimension must be known"),
                           absl::StrCat("add '", Printable(name), ": ", ShapeToWrite(stated),
                                        "' to INPUT_OPS with the shape at inference time"));
  }
  if (endpoints_.CheckShapeOf(name, shape)) {
    values_[name] = state_.AddInput(name, {dtype, shape});
  }
}

void Importer::ResolveInputs() {
  const auto exists = [this](absl::string_view name) { return Exists(name); };
  const auto suggest = [this](absl::string_view name) { return Suggestion(name); };
  for (const InputDecl& input : options_.inputs) {
    if (!endpoints_.TakeInput(input.name, exists, suggest)) continue;
    cuts_.insert(input.name);
  }
}

void Importer::ResolveOutputs() {
  outputs_ = endpoints_.TakeOutputs(
      ends_.outputs, [this](absl::string_view name) { return Exists(name); },
      [this](absl::string_view name) { return Suggestion(name); });
}

void Importer::MarkNeeded() {
  std::set<std::string, std::less<>> wanted;
  std::set<std::string, std::less<>> read_cuts;
  const auto want = [&](const std::string& name) {
    if (cuts_.contains(name)) {
      read_cuts.insert(name);
    } else {
      wanted.insert(name);
    }
  };
  for (const frontend::Endpoints::Output& output : outputs_) want(output.name);
  for (size_t i = program_.ops().size(); i-- > 0;) {
    const OpView& op = program_.ops()[i];
    bool is_needed = false;
    ForEachName(op.outputs(),
                [&](const std::string& name) { is_needed = is_needed || wanted.contains(name); });
    if (!is_needed) continue;
    is_needed_[i] = true;
    // Batch normalisation gives its mean back under the name of its mean: that stays a parameter.
    ForEachName(op.outputs(), [&](const std::string& name) { wanted.erase(name); });
    ForEachName(op.inputs(), want);
  }
  unmade_ = std::move(wanted);
  for (const std::string& name : cuts_) {
    if (!read_cuts.contains(name)) endpoints_.ReportUnused(name);
  }
  // Inputs in the order of INPUT_OPS, then the program's own that are needed.
  for (const InputDecl& input : options_.inputs) {
    if (cuts_.contains(input.name)) AddInput(input.name, &input.shape);
  }
  for (const std::string& name : program_.inputs()) {
    if (unmade_.contains(name)) AddInput(name, nullptr);
  }
}

bool Importer::OpenParameters() {
  const bool needs_any =
      std::any_of(unmade_.begin(), unmade_.end(), [this](const std::string& name) {
        const Variable* variable = program_.FindVariable(name);
        return variable != nullptr && variable->is_parameter;
      });
  if (!needs_any) return true;
  const auto refuse = [this](std::string message) {
    state_.AddError(DiagnosticKind::kPaddleParameters, {}, std::move(message), kParametersFix);
    return false;
  };
  if (file_ == nullptr) return refuse("the program has parameters, and no file of them is given");
  absl::StatusOr<Parameters> opened = Parameters::Open(*file_, program_);
  if (!opened.ok()) return refuse(absl::StrCat("the parameters ", opened.status().message()));
  parameters_ = *std::move(opened);
  return true;
}

ValueRef Importer::ParameterOf(const std::string& name, const NodeSource& reader) {
  if (!parameters_.has_value() || !parameters_->Has(name)) {
    state_.AddError(DiagnosticKind::kMissingProducer, reader,
                    absl::StrCat("'", Printable(name),
                                 "' is no input, no parameter and no operator's result so far"),
                    "export the model again");
    return nullptr;
  }
  absl::StatusOr<Tensor> value = parameters_->Read(name, state_.constant_bytes_left);
  if (!value.ok()) {
    const bool is_large = absl::IsResourceExhausted(value.status());
    state_.AddError(is_large ? DiagnosticKind::kModelLimitExceeded : DiagnosticKind::kBadTensor,
                    reader,
                    absl::StrCat("parameter '", Printable(name), "': ", value.status().message()),
                    is_large ? "compile a smaller model" : "export the model again");
    return nullptr;
  }
  state_.constant_bytes_left -= value->type().size_bytes();
  return frontend::ConstantValue(*std::move(value), {name, "Const"});
}

ValueRef Importer::ValueOf(const std::string& name, const NodeSource& reader) {
  const auto found = values_.find(name);
  if (found != values_.end()) return found->second;
  return values_.emplace(name, ParameterOf(name, reader)).first->second;
}

const frontend::CutAdvice& Importer::Advice() {
  if (advice_.has_value()) return *advice_;
  advice_.emplace();
  for (const std::string& name : cuts_) advice_->AddInput(name);
  for (const std::string& name : program_.inputs()) advice_->AddInput(name);
  for (size_t i = 0; i < program_.ops().size(); ++i) {
    if (!is_needed_[i]) continue;
    const OpView& op = program_.ops()[i];
    std::vector<std::string> operands;
    std::vector<std::string> results;
    ForEachName(op.inputs(), [&](const std::string& name) { operands.push_back(name); });
    ForEachName(op.outputs(), [&](const std::string& name) { results.push_back(name); });
    const bool is_known = rules_.Find(op.type()) != nullptr || plugins_.Find(op.type()) != nullptr;
    advice_->AddNode(op.type(), is_known, operands, results);
  }
  for (const frontend::Endpoints::Output& output : outputs_) advice_->AddOutput(output.name);
  return *advice_;
}

// The n-th value of a name is a tensor of its own, so that a name that is made twice is two.
void Importer::MatchSubgraphs() {
  if (subgraphs_.is_empty()) return;
  std::map<std::string, int, std::less<>> versions;
  const auto tensor = [&](const std::string& name) {
    const auto found = versions.find(name);
    return found == versions.end() || cuts_.contains(name)
               ? name
               : absl::StrCat(name, "\n", found->second);
  };
  for (const std::string& name : cuts_) subgraphs_.AddInput(name);
  for (const std::string& name : program_.inputs()) subgraphs_.AddInput(name);
  for (size_t i = 0; i < program_.ops().size(); ++i) {
    if (!is_needed_[i]) continue;
    const OpView& op = program_.ops()[i];
    std::vector<std::string> operands;
    std::map<int, std::string> results;
    ForEachName(op.inputs(), [&](const std::string& name) { operands.push_back(tensor(name)); });
    ForEachName(op.outputs(), [&](const std::string& name) {
      ++versions[name];
      results.emplace(static_cast<int>(results.size()), tensor(name));
    });
    subgraphs_.AddNode(static_cast<int>(i), op.name(), op.type(), std::move(operands),
                       std::move(results));
  }
  for (const frontend::Endpoints::Output& output : outputs_) {
    subgraphs_.AddOutput(tensor(output.name));
  }
  subgraphs_.Match(*state_.diagnostics);
}

void Importer::KeepOperands(int index) {
  std::vector<ValueRef>& kept = kept_[index];
  ForEachName(program_.ops()[static_cast<size_t>(index)].inputs(), [&](const std::string& name) {
    const auto found = values_.find(name);
    kept.push_back(found == values_.end() ? nullptr : found->second);
  });
}

void Importer::ImportSubgraph(const frontend::SubgraphMatch& match) {
  const auto op_at = [this](int index) -> const OpView& {
    return program_.ops()[static_cast<size_t>(index)];
  };
  const OpView& end = op_at(match.end);
  std::vector<ValueRef> operands;
  for (const frontend::OperandPlace& place : match.operands) {
    operands.push_back(kept_[place.node][static_cast<size_t>(place.operand)]);
    if (operands.back() != nullptr) continue;
    std::vector<std::string> names;
    ForEachName(op_at(place.node).inputs(),
                [&](const std::string& name) { names.push_back(name); });
    operands.back() = ValueOf(names[static_cast<size_t>(place.operand)], end.source());
    if (operands.back() == nullptr) return FailResults(end);
  }
  OpImporter node(&state_, &end, std::move(operands));
  TakePluginResults(end, node, frontend::RunPluginSubgraph(node, match, op_at));
}

void Importer::SetResult(const std::string& name, ValueRef value) {
  if (!cuts_.contains(name)) values_[name] = std::move(value);
}

void Importer::FailResults(const OpView& op) {
  ForEachName(op.outputs(), [&](const std::string& name) { SetResult(name, nullptr); });
}

bool Importer::Succeeded(const OpView& op, OpImporter& node, const absl::Status& status) {
  if (!status.ok()) {
    node.ReportMismatch(status, "check the shapes in INPUT_OPS against those of the model");
  }
  if (status.ok() && state_.ConstantsFit(op.source())) return true;
  FailResults(op);
  return false;
}

void Importer::TakePluginResults(const OpView& op, OpImporter& node, const absl::Status& status) {
  if (!Succeeded(op, node, status)) return;
  size_t taken = 0;
  ForEachName(op.outputs(), [&](const std::string& name) {
    SetResult(name, taken < node.outputs().size() ? node.outputs()[taken] : nullptr);
    ++taken;
  });
}

absl::Status Importer::CheckShapes(const OpView& op, OpImporter& node) const {
  if (!states_shapes_) return absl::OkStatus();
  for (const auto& [parameter, names] : op.outputs()) {
    const auto found = node.results().find(parameter);
    if (found == node.results().end()) continue;
    for (size_t i = 0; i < std::min(names.size(), found->second.size()); ++i) {
      const Variable* const variable = program_.FindVariable(names[i]);
      const ValueRef& value = found->second[i];
      if (variable == nullptr || value == nullptr || made_.at(names[i]) != 1 ||
          Fits(*variable, value->type.shape)) {
        continue;
      }
      return node.Fail(DiagnosticKind::kOperandMismatch,
                       absl::StrCat("result '", Printable(names[i]), "' has shape ",
                                    ShapeToString(value->type.shape), ", but the program states ",
                                    ShapeToString(variable->dims)),
                       "export the model again");
    }
  }
  return absl::OkStatus();
}

void Importer::ImportOp(const OpView& op) {
  const frontend::PluginOp* const plugin = plugins_.Find(op.type());
  const ImportRule* const rule = rules_.Find(op.type());
  const bool is_known = rule != nullptr || plugin != nullptr;
  if (!is_known) {
    state_.AddError(DiagnosticKind::kUnsupportedOperator, op.source(),
                    absl::StrCat("the operator is not supported", rules_.NearestText(op.type())),
                    Advice().FixFor(op.name(), "export the model without it"));
  }
  std::vector<ValueRef> operands;
  bool is_complete = is_known;
  ForEachName(op.inputs(), [&](const std::string& name) {
    if (!is_known) return;
    operands.push_back(ValueOf(name, op.source()));
    is_complete = is_complete && operands.back() != nullptr;
  });
  if (!is_complete) return FailResults(op);
  OpImporter node(&state_, &op, std::move(operands));
  if (plugin != nullptr) {
    return TakePluginResults(op, node, frontend::RunPluginOp(node, *plugin, op));
  }
  absl::Status status = node.RefuseFused();
  if (status.ok()) status = rule->import(node);
  if (status.ok()) status = CheckShapes(op, node);
  if (!Succeeded(op, node, status)) return;
  for (const auto& [parameter, names] : op.outputs()) {
    const auto found = node.results().find(parameter);
    if (found == node.results().end()) continue;  // a dummy, or the name of what it stays
    for (size_t i = 0; i < std::min(names.size(), found->second.size()); ++i) {
      SetResult(names[i], found->second[i]);
    }
  }
}

void Importer::NoteDecoders() {
  for (const int index : ends_.decoders) {
    const OpView& op = program_.ops()[static_cast<size_t>(index)];
    std::vector<std::string> operands;
    ForEachName(op.inputs(), [&](const std::string& name) { operands.push_back(name); });
    state_.diagnostics->Add(
        {.kind = DiagnosticKind::kDecodingLeftOut,
         .message = absl::StrCat(op.type(),
                                 " decodes boxes, which no core does: the program gives "
                                 "what that reads, of ",
                                 Quoted(operands)),
         .file = state_.file,
         .node = op.name(),
         .op = std::string(op.type()),
         .fix = "decode them in the application"});
  }
}

void Importer::AddOutputs() {
  state_.AddStateOutputs();
  for (const frontend::Endpoints::Output& output : outputs_) {
    const bool is_input = std::find(program_.inputs().begin(), program_.inputs().end(),
                                    output.name) != program_.inputs().end();
    if (is_input || cuts_.contains(output.name)) {
      endpoints_.ReportInputAsOutput(output.name);
      continue;
    }
    const ValueRef value = ValueOf(output.name, {});
    if (value == nullptr) {
      if (!state_.diagnostics->has_errors()) {
        state_.AddError(DiagnosticKind::kUnsupportedOperatorMode, {output.name, ""},
                        "this result of its operator is not supported",
                        "name another output in OUTPUT_OPS");
      }
      continue;
    }
    state_.AddOutput(output.name, value, output.fp16);
  }
}

void Importer::Run() {
  ResolveInputs();
  ResolveOutputs();
  if (state_.diagnostics->has_errors()) return;
  MarkNeeded();
  if (!OpenParameters()) return;
  MatchSubgraphs();
  for (size_t i = 0; i < program_.ops().size(); ++i) {
    const int index = static_cast<int>(i);
    if (!is_needed_[i]) continue;
    const frontend::SubgraphMatch* const match = subgraphs_.FindEnd(index);
    if (match != nullptr || subgraphs_.IsInside(index)) KeepOperands(index);
    if (match != nullptr) {
      ImportSubgraph(*match);
    } else if (!subgraphs_.IsInside(index)) {
      ImportOp(program_.ops()[i]);
    }
  }
  if (options_.outputs.empty()) NoteDecoders();
  AddOutputs();
}

}  // namespace npuc::paddle
