#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_NATIVE_OPERATOR_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_NATIVE_OPERATOR_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler_core/frontends/common/emitter.h"
#include "compiler_core/frontends/common/plugins.h"

namespace npuc::frontend {

// The results of an operator that names a library (op.native has a value):
//   - with a formula: those of the formula, after the library has computed the same from seeded
//     operands, within the declaration's tolerance;
//   - operands that are all known: the library's values, as constants;
//   - declared elementwise: the operator Table, with the library's values at many points;
//   - else an error, since no core runs the library.
// Reports errors as diagnostics of the node: what the library did, with the declaration's place.
absl::StatusOr<std::vector<ValueRef>> RunNative(Emitter& node, const PluginOp& op,
                                                absl::Span<const ValueRef> operands,
                                                absl::Span<const FormulaNumbers> attributes);

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_NATIVE_OPERATOR_H_
