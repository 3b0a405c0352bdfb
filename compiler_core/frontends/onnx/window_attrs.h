#ifndef NPUC_COMPILER_CORE_FRONTENDS_ONNX_WINDOW_ATTRS_H_
#define NPUC_COMPILER_CORE_FRONTENDS_ONNX_WINDOW_ATTRS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler_core/frontends/common/windows.h"
#include "compiler_core/frontends/onnx/node_import.h"

namespace npuc::onnx {

using frontend::ChannelsFirst;
using frontend::ChannelsLast;
using frontend::WindowAttrs;

// Reads kernel_shape (or takes `kernel` where that is known), strides, dilations, pads and auto_pad
// of a node whose operand has these spatial dimensions. With ceil_mode the pads after grow so that
// the last window fits; *grown says by how much.
absl::StatusOr<WindowAttrs> ReadWindow(NodeImporter& node, absl::Span<const int64_t> spatial,
                                       const std::vector<int64_t>& kernel,
                                       std::vector<int64_t>* grown);

// Checks that a list has an entry for each spatial dimension, in lo..2^20.
absl::Status CheckSpatial(NodeImporter& node, absl::string_view name,
                          const std::vector<int64_t>& values, size_t count, int64_t lo);

}  // namespace npuc::onnx

#endif  // NPUC_COMPILER_CORE_FRONTENDS_ONNX_WINDOW_ATTRS_H_
