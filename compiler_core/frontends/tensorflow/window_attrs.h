#ifndef NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_WINDOW_ATTRS_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_WINDOW_ATTRS_H_

#include <array>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler_core/frontends/tensorflow/node_import.h"

namespace npuc::tf {

// Where a convolution or pooling node's windows lie, as the IR's operators take it.
struct WindowAttrs {
  std::vector<int64_t> strides;    // [h,w]
  std::vector<int64_t> dilations;  // [h,w]
  std::vector<int64_t> pads;       // [top,bottom,left,right]
};

// Reads strides, dilations, padding and explicit_paddings of a node in its data_format. `input` is
// the operand's NHWC shape of rank 4, kernel [h,w]. Problems are reported on the node.
absl::StatusOr<WindowAttrs> ReadWindow(NodeImporter& node, bool is_nhwc,
                                       absl::Span<const int64_t> input,
                                       std::array<int64_t, 2> kernel);

// The [h,w] part of a list attribute of four, whose batch and channel entries must be 1.
absl::StatusOr<std::array<int64_t, 2>> ReadHw(NodeImporter& node, absl::string_view name,
                                              bool is_nhwc, bool is_required);

// NCHW operators run as NHWC ones between two transposes; both leave NHWC values alone. AsNhwc adds
// a note about it.
absl::StatusOr<ValueRef> AsNhwc(NodeImporter& node, const ValueRef& value, bool is_nhwc);
absl::StatusOr<ValueRef> FromNhwc(NodeImporter& node, const ValueRef& value, bool is_nhwc);

}  // namespace npuc::tf

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_WINDOW_ATTRS_H_
