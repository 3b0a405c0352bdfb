#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_SPACE_BATCH_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_SPACE_BATCH_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/frontends/common/operand_node.h"

namespace npuc::frontend {

// TensorFlow's SpaceToBatchND and BatchToSpaceND, which move blocks of an image's pixels into the
// batch and back.

// Their operands 1 and 2: one block, and two borders, per spatial dimension.
struct Blocks {
  std::vector<int64_t> block;
  std::vector<int64_t> before;
  std::vector<int64_t> after;
  int64_t product = 1;
  bool operator==(const Blocks&) const = default;
};

// `borders`: what operand 2 is called. Reports operands that do not fit operand 0, or returns
// INVALID_ARGUMENT.
absl::StatusOr<Blocks> ReadBlocks(OperandNode& node, absl::string_view borders);

// SpaceToBatchND as Pad, Reshape, Transpose, Reshape.
absl::StatusOr<ValueRef> SpaceToBatch(Emitter& node, const ValueRef& input, const Blocks& blocks);
// BatchToSpaceND as Reshape, Transpose, Reshape, Slice.
absl::StatusOr<ValueRef> BatchToSpace(Emitter& node, const ValueRef& input, const Blocks& blocks);

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_SPACE_BATCH_H_
