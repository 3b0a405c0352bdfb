#include "compiler_core/frontends/common/import_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/frontends/common/emitter.h"
#include "compiler_core/frontends/common/endpoints.h"

namespace npuc::frontend {
namespace {

bool IsZero(const Tensor& tensor) {
  for (int64_t i = 0; i < tensor.element_count(); ++i) {
    if (tensor.at(i) != 0) return false;
  }
  return true;
}

// "'a', 'b'", of the first few.
std::string Listed(absl::Span<const absl::string_view> names) {
  constexpr size_t kMost = 8;
  std::string text;
  for (const absl::string_view name : names.first(std::min(names.size(), kMost))) {
    absl::StrAppend(&text, text.empty() ? "'" : ", '", Printable(name), "'");
  }
  return names.size() > kMost ? text + " ..." : text;
}

}  // namespace

ValueRef ConstantValue(Tensor tensor, NodeSource source) {
  auto value = std::make_shared<ImportValue>();
  value->type = tensor.type();
  value->constant = std::move(tensor);
  value->source = std::move(source);
  return value;
}

bool IsKnown(const ValueRef& value) {
  return value->constant.has_value() || value->stored.has_value();
}

std::vector<ValueRef> ResultValues(const GraphBuilder& builder, absl::Span<const ValueId> ids,
                                   const NodeSource& source) {
  std::vector<ValueRef> values;
  for (const ValueId id : ids) {
    auto value = std::make_shared<ImportValue>();
    value->type = builder.type(id);
    value->id = id;
    value->source = source;
    values.push_back(std::move(value));
  }
  return values;
}

ValueRef WrittenAsFloat(ValueRef value) {
  if (!value->constant.has_value() || IsFloat(value->type.dtype)) return value;
  auto written = std::make_shared<ImportValue>(*value);
  written->constant = CastTensor(*value->constant, DType::kFloat32);
  written->type = written->constant->type();
  written->id = ValueId();
  return written;
}

void ImportState::AddError(DiagnosticKind kind, NodeSource source, std::string message,
                           std::string fix) {
  diagnostics->Add({.kind = kind,
                    .message = std::move(message),
                    .file = file,
                    .node = std::move(source.name),
                    .op = std::move(source.op),
                    .fix = std::move(fix)});
}

ValueRef ImportState::AddInput(const std::string& name, const TensorType& type, std::string op) {
  auto value = std::make_shared<ImportValue>();
  value->type = type;
  value->id = builder.graph().AddInput(name, type);
  value->source = {name, std::move(op)};
  return value;
}

void ImportState::AddOutput(std::string name, ValueRef value, bool fp16) {
  value = WrittenAsFloat(std::move(value));
  const absl::StatusOr<ValueId> id = Emitter(this, value->source).Place(*value);
  if (id.ok()) builder.graph().AddOutput({std::move(name), *id, fp16});
}

ValueRef ImportState::StateBefore(const std::string& name, absl::string_view what,
                                  const TensorType& type) {
  states_.push_back({absl::StrCat(name, "_", what), nullptr});
  return AddInput(states_.back().name, type);
}

void ImportState::SetStateAfter(const std::string& name, absl::string_view what, ValueRef value) {
  const std::string input = absl::StrCat(name, "_", what);
  for (State& state : states_) {
    if (state.name == input) state.after = std::move(value);
  }
}

ValueRef ImportState::KeptState(const std::string& layer, absl::string_view what,
                                const ValueRef& initial) {
  if (!IsKnown(initial) || initial->type.dtype != DType::kFloat32) return initial;
  recurrent_.insert(layer);
  const bool is_kept = std::any_of(keep_states.begin(), keep_states.end(),
                                   [&](const auto& name) { return name == "*" || name == layer; });
  if (!is_kept) return initial;
  const ValueRef before = StateBefore(layer, what, initial->type);
  const bool is_zero = initial->constant.has_value() && IsZero(*initial->constant);
  if (!is_zero) {
    diagnostics->Add({.kind = DiagnosticKind::kStateBeginsElsewhere,
                      .message = absl::StrCat("the model begins state '", before->source.name,
                                              "' with another constant than 0; states of a "
                                              "compiled model begin with 0"),
                      .file = file,
                      .node = layer,
                      .fix = "write the constant into that input before the first frame"});
  }
  return before;
}

void ImportState::AddStateOutputs() {
  for (State& state : states_) {
    if (state.after == nullptr) continue;  // reported
    AddOutput(absl::StrCat(state.name, "_out"), std::move(state.after), /*fp16=*/true);
  }
  const std::vector<absl::string_view> known(recurrent_.begin(), recurrent_.end());
  for (const std::string& name : keep_states) {
    if (name == "*" ? !known.empty() : recurrent_.contains(name)) continue;
    AddError(DiagnosticKind::kInputNotInModel, {name, ""},
             absl::StrCat("KEEP_STATES names '", Printable(name),
                          "', and no recurrent layer or loop of the model that begins with a "
                          "constant state has the name"),
             SuggestName(name, known,
                         known.empty() ? "remove KEEP_STATES: the model has no such layer"
                                       : absl::StrCat("name one of: ", Listed(known))));
  }
}

void ImportState::NoteDegradedResize(const NodeSource& source, absl::string_view method) {
  if (!degraded_.insert(source.name).second) return;
  diagnostics->Add(
      {.kind = DiagnosticKind::kResizeDegraded,
       .message = absl::StrCat("resizes by the nearest pixels in place of ", method,
                               " interpolation, since resize_degrade_to_nearest is set"),
       .file = file,
       .node = source.name,
       .op = source.op,
       .fix = "remove resize_degrade_to_nearest where results are too far off"});
}

bool ImportState::ConstantsFit(NodeSource source) {
  if (constant_bytes_left >= 0) return true;
  AddError(DiagnosticKind::kModelLimitExceeded, std::move(source),
           absl::StrCat("the constants of the model take more than ", kMaxConstantBytes, " bytes"),
           "compile a smaller model");
  constant_bytes_left = 0;
  return false;
}

bool ImportState::TakeNode(size_t operands) {
  operands_left -= static_cast<int64_t>(operands);
  if (builder.graph().node_count() >= kMaxGraphNodes) operands_left = -1;
  return !is_exhausted();
}

}  // namespace npuc::frontend
