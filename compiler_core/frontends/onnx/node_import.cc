#include "compiler_core/frontends/onnx/node_import.h"

#include <utility>

#include "compiler_core/base/status.h"

namespace npuc::onnx {

NodeImporter::NodeImporter(ImportState* state, const NodeView* node, std::vector<ValueRef> inputs)
    : NodeEmitter(state, {std::string(node->name()), std::string(node->op())}, std::move(inputs)),
      onnx_state_(state),
      node_(node) {}

absl::Status NodeImporter::BadAttribute(const absl::Status& status) {
  return Fail(DiagnosticKind::kBadAttribute, std::string(status.message()),
              "export the model again");
}

absl::StatusOr<bool> NodeImporter::BoolOr(absl::string_view name, bool fallback) {
  ASSIGN_OR_RETURN(const int64_t value, IntOr(name, fallback ? 1 : 0));
  return value != 0;
}

// One function for each kind: absent -> fallback; wrong kind -> a report.
#define NPUC_ATTRIBUTE_OR(Function, Type, Getter)                                      \
  absl::StatusOr<Type> NodeImporter::Function(absl::string_view name, Type fallback) { \
    absl::StatusOr<Type> value = node_->Getter(name);                                  \
    if (absl::IsNotFound(value.status())) return fallback;                             \
    if (!value.ok()) return BadAttribute(value.status());                              \
    return value;                                                                      \
  }
NPUC_ATTRIBUTE_OR(IntOr, int64_t, Int)
NPUC_ATTRIBUTE_OR(FloatOr, double, Float)
NPUC_ATTRIBUTE_OR(StringOr, std::string, String)
NPUC_ATTRIBUTE_OR(IntsOr, std::vector<int64_t>, Ints)
NPUC_ATTRIBUTE_OR(FloatsOr, std::vector<double>, Floats)
NPUC_ATTRIBUTE_OR(StringsOr, std::vector<std::string>, Strings)
#undef NPUC_ATTRIBUTE_OR

absl::StatusOr<int64_t> NodeImporter::RequiredInt(absl::string_view name) {
  absl::StatusOr<int64_t> value = node_->Int(name);
  if (!value.ok()) return BadAttribute(value.status());
  return value;
}
absl::StatusOr<std::vector<int64_t>> NodeImporter::RequiredInts(absl::string_view name) {
  absl::StatusOr<std::vector<int64_t>> value = node_->Ints(name);
  if (!value.ok()) return BadAttribute(value.status());
  return value;
}

absl::StatusOr<std::optional<std::vector<int64_t>>> NodeImporter::IntsAt(int i,
                                                                         absl::string_view name) {
  if (has(i)) {
    ASSIGN_OR_RETURN(std::vector<int64_t> values, ConstantInts(i, name));
    return std::optional(std::move(values));
  }
  if (!node_->HasAttr(name)) return std::optional<std::vector<int64_t>>();
  ASSIGN_OR_RETURN(std::vector<int64_t> values, RequiredInts(name));
  return std::optional(std::move(values));
}

}  // namespace npuc::onnx
