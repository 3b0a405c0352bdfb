#include "compiler_core/ir/graph/op_kind.h"

#include <algorithm>
#include <iterator>
#include <ostream>

#include "compiler_core/base/status.h"

namespace npuc {
namespace {

constexpr absl::string_view kNames[] = {
#define NPUC_OP(name) #name,
#include "compiler_core/ir/graph/op_list.inc"
#undef NPUC_OP
};
static_assert(std::is_sorted(std::begin(kNames), std::end(kNames)),
              "op_list.inc must be alphabetical: OpNamed searches it by halves");

}  // namespace

absl::string_view NameOf(Op op) {
  NPUC_CHECK(static_cast<size_t>(op) < std::size(kNames));
  return kNames[static_cast<size_t>(op)];
}

std::optional<Op> OpNamed(absl::string_view name) {
  const auto it = std::lower_bound(std::begin(kNames), std::end(kNames), name);
  if (it == std::end(kNames) || *it != name) return std::nullopt;
  return static_cast<Op>(it - std::begin(kNames));
}

std::ostream& operator<<(std::ostream& out, Op op) { return out << NameOf(op); }

}  // namespace npuc
