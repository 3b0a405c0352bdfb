#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_ATTRIBUTE_NODE_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_ATTRIBUTE_NODE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/frontends/common/operand_node.h"

namespace npuc::frontend {

// A node of a format whose attributes have names. View reads them, a function for each kind that
// the format has; absent ones are NOT_FOUND.
template <typename View>
class AttributeNode : public OperandNode {
 public:
  AttributeNode(ImportState* state, const View* node, std::vector<ValueRef> inputs)
      : OperandNode(state, node->source(), std::move(inputs)), node_(node) {}

  const View& node() const { return *node_; }

  // The fallback where the attribute is absent; a report where it is of another kind.
  absl::StatusOr<bool> BoolOr(absl::string_view name, bool fallback) {
    return Or(node_->Bool(name), fallback);
  }
  absl::StatusOr<int64_t> IntOr(absl::string_view name, int64_t fallback) {
    return Or(node_->Int(name), fallback);
  }
  absl::StatusOr<double> FloatOr(absl::string_view name, double fallback) {
    return Or(node_->Float(name), fallback);
  }
  absl::StatusOr<std::string> StringOr(absl::string_view name, std::string fallback) {
    return Or(node_->String(name), std::move(fallback));
  }
  absl::StatusOr<std::vector<int64_t>> IntsOr(absl::string_view name,
                                              std::vector<int64_t> fallback) {
    return Or(node_->Ints(name), std::move(fallback));
  }
  absl::StatusOr<std::vector<double>> FloatsOr(absl::string_view name,
                                               std::vector<double> fallback) {
    return Or(node_->Floats(name), std::move(fallback));
  }
  absl::StatusOr<std::vector<std::string>> StringsOr(absl::string_view name,
                                                     std::vector<std::string> fallback) {
    return Or(node_->Strings(name), std::move(fallback));
  }
  // A report where it is absent or of another kind.
  absl::StatusOr<int64_t> RequiredInt(absl::string_view name) { return Required(node_->Int(name)); }
  absl::StatusOr<std::vector<int64_t>> RequiredInts(absl::string_view name) {
    return Required(node_->Ints(name));
  }
  absl::StatusOr<int> RequiredType(absl::string_view name) { return Required(node_->Type(name)); }
  absl::Status BadAttribute(const absl::Status& status) {
    return Fail(DiagnosticKind::kBadAttribute, std::string(status.message()),
                "export the model again");
  }

 private:
  template <typename T>
  absl::StatusOr<T> Required(absl::StatusOr<T> value) {
    if (!value.ok()) return BadAttribute(value.status());
    return value;
  }
  template <typename T>
  absl::StatusOr<T> Or(absl::StatusOr<T> value, T fallback) {
    if (absl::IsNotFound(value.status())) return fallback;
    return Required(std::move(value));
  }

  const View* node_;
};

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_ATTRIBUTE_NODE_H_
