#include "compiler_core/frontends/onnx/node_import.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

namespace npuc::onnx {

absl::StatusOr<std::optional<std::vector<int64_t>>> NodeImporter::IntsAt(int i,
                                                                         absl::string_view name) {
  if (has(i)) {
    ASSIGN_OR_RETURN(std::vector<int64_t> values, ConstantInts(i, name));
    return std::optional(std::move(values));
  }
  if (!node().HasAttr(name)) return std::optional<std::vector<int64_t>>();
  ASSIGN_OR_RETURN(std::vector<int64_t> values, RequiredInts(name));
  return std::optional(std::move(values));
}

absl::StatusOr<ValueRef> RunRule(NodeImporter& node, absl::string_view op,
                                 std::vector<ValueRef> operands, std::optional<int64_t> opset) {
  for (const absl::Span<const ImportRule> family :
       {ActivationRules(), ConvRules(), LinearRules(), PoolRules(), ReduceRules()}) {
    for (const ImportRule& rule : family) {
      if (rule.op != op) continue;
      NodeImporter inner = node.As(rule.op, std::move(operands), opset.value_or(node.opset()));
      const absl::Status status = rule.import(inner);
      if (status.ok()) return inner.outputs()[0];
      return inner.has_reported() ? node.AlreadyReported(status) : status;
    }
  }
  return absl::InternalError(absl::StrCat("no rule for ", op));
}

}  // namespace npuc::onnx
