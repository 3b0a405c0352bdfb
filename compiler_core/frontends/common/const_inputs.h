#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_CONST_INPUTS_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_CONST_INPUTS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/frontends/common/import_state.h"

namespace npuc::frontend {

// The value that CONST_INPUTS gives an input of the type, of whose shape the model states `dims`,
// -1 where it is open; nullopt: nothing. One number fills the shape, in which an open dimension is
// 1; a list has as many numbers as the shape, of which one dimension may be open.
// Errors: INVALID_ARGUMENT where the numbers fit neither the shape nor the type.
absl::StatusOr<Tensor> TensorOf(const ConstInput& given, DType dtype,
                                const std::optional<std::vector<int64_t>>& dims);

// A value of the import that holds TensorOf(). Null: it was reported.
ValueRef ConstInputValue(ImportState& state, const ConstInput& given, DType dtype,
                         const std::optional<std::vector<int64_t>>& dims);

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_CONST_INPUTS_H_
