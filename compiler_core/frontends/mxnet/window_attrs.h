#ifndef NPUC_COMPILER_CORE_FRONTENDS_MXNET_WINDOW_ATTRS_H_
#define NPUC_COMPILER_CORE_FRONTENDS_MXNET_WINDOW_ATTRS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/frontends/common/windows.h"
#include "compiler_core/frontends/mxnet/node_import.h"

namespace npuc::mxnet {

// A list with an entry for each of `count` spatial dimensions, from `lo` on; an absent or empty one
// is `fallback` for each.
absl::StatusOr<std::vector<int64_t>> SpatialList(NodeImporter& node, absl::string_view name,
                                                 size_t count, int64_t lo, int64_t fallback);
// kernel, stride, dilate and pad, the same at both ends, of a node with `count` spatial dimensions.
absl::StatusOr<frontend::WindowAttrs> ReadWindow(NodeImporter& node, size_t count);

// Operands of one to three spatial dimensions, as attribute 'layout' says: NCHW, NHWC and kin.
struct Layout {
  bool is_channels_last = false;
  size_t spatial = 2;
};
absl::StatusOr<Layout> ReadLayout(NodeImporter& node);
// Operand 0 channels last, and a result brought back into the layout.
absl::StatusOr<ValueRef> ToChannelsLast(NodeImporter& node, const Layout& layout);
absl::StatusOr<ValueRef> FromChannelsLast(NodeImporter& node, const Layout& layout,
                                          const ValueRef& value);

}  // namespace npuc::mxnet

#endif  // NPUC_COMPILER_CORE_FRONTENDS_MXNET_WINDOW_ATTRS_H_
