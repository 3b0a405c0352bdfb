#include "compiler_core/frontends/common/import_state.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/frontends/common/emitter.h"

namespace npuc::frontend {

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
