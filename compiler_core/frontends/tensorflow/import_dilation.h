#ifndef NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_IMPORT_DILATION_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_IMPORT_DILATION_H_

#include <array>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "compiler_core/frontends/tensorflow/node_import.h"

namespace npuc::tf {

// TensorFlow writes a convolution with dilation as SpaceToBatchND, a plain convolution and
// BatchToSpaceND, for one spatial dimension with ExpandDims and Squeeze around the convolution.
// Values inside such a group are held back; where BatchToSpaceND closes it, one convolution with
// dilations comes out. Where anything else uses a value of the group, it is computed as written.
struct DilationGroup {
  ValueRef base;                               // what SpaceToBatchND takes: [n,h,w,c], or [n,w,c]
  std::array<int64_t, 2> block = {1, 1};       // h, w
  std::array<int64_t, 2> pad_before = {0, 0};  // h, w
  std::array<int64_t, 2> pad_after = {0, 0};
  Shape batched;  // the value that the convolution must take: [n*blocks,h,w,c]
  // The convolution, once there is one.
  const NodeView* node = nullptr;
  std::string op;
  ValueRef weight;
  Shape convolved;  // what it gives
};

// The convolution `op` on operand 0, a value of a group, by operand 1. attrs are those of the plain
// convolution.
absl::Status ConvolveInGroup(NodeImporter& node, absl::string_view op, AttrMap attrs);

// The value under a new shape, still part of its group.
ValueRef ReshapedInGroup(NodeImporter& node, const ValueRef& value, Shape shape);

}  // namespace npuc::tf

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_IMPORT_DILATION_H_
