#include "compiler_core/frontends/onnx/node_import.h"

#include <utility>

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

}  // namespace npuc::onnx
