#ifndef NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_PARAMETER_TYPE_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_PARAMETER_TYPE_H_

#include "absl/strings/string_view.h"
#include "compiler_core/frontends/torchscript/ast.h"

namespace npuc::pt {

// The name of a type as it is annotated, as far as it matters for inputs: "Tensor", "List" ... An
// Optional counts as what it may hold; without an annotation it is a Tensor.
inline absl::string_view TypeNameOf(const Expr* type) {
  if (type == nullptr) return "Tensor";
  if (type->kind == ExprKind::kSubscript && type->children[0]->text == "Optional") {
    return TypeNameOf(type->children[1].get());
  }
  if (type->kind == ExprKind::kSubscript) return type->children[0]->text;
  return type->text;
}
inline absl::string_view TypeNameOf(const Parameter& parameter) {
  return TypeNameOf(parameter.type.get());
}

}  // namespace npuc::pt

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_PARAMETER_TYPE_H_
