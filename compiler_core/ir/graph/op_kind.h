#ifndef NPUC_COMPILER_CORE_IR_GRAPH_OP_KIND_H_
#define NPUC_COMPILER_CORE_IR_GRAPH_OP_KIND_H_

#include <cstdint>
#include <iosfwd>
#include <optional>

#include "absl/strings/string_view.h"

namespace npuc {

// The operators of the IR, in the order of their names. Their names are text in dumps, reports and
// diagnostics alone; all else compares and switches on this.
enum class Op : uint8_t {
#define NPUC_OP(name) k##name,
#include "compiler_core/ir/graph/op_list.inc"
#undef NPUC_OP
};

absl::string_view NameOf(Op op);
// nullopt where no operator has that name.
std::optional<Op> OpNamed(absl::string_view name);
std::ostream& operator<<(std::ostream& out, Op op);  // the name, for tests

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_IR_GRAPH_OP_KIND_H_
