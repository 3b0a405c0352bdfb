#include "compiler_core/frontends/mxnet/window_attrs.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

namespace npuc::mxnet {
namespace {

constexpr int64_t kMaxWindow = int64_t{1} << 20;

}  // namespace

absl::StatusOr<std::vector<int64_t>> SpatialList(NodeImporter& node, absl::string_view name,
                                                 size_t count, int64_t lo, int64_t fallback) {
  ASSIGN_OR_RETURN(std::vector<int64_t> values, node.IntsOr(name, {}));
  if (values.empty()) values.assign(count, fallback);
  const bool fits =
      values.size() == count && std::all_of(values.begin(), values.end(),
                                            [&](int64_t v) { return v >= lo && v <= kMaxWindow; });
  if (fits) return values;
  return node.BadAttribute(absl::InvalidArgumentError(
      absl::StrCat("attribute '", name, "' is ", ShapeToString(values), "; it must have ", count,
                   " entries from ", lo, " to ", kMaxWindow)));
}

absl::StatusOr<frontend::WindowAttrs> ReadWindow(NodeImporter& node, size_t count) {
  frontend::WindowAttrs w;
  ASSIGN_OR_RETURN(w.kernel, SpatialList(node, "kernel", count, 1, 0));
  ASSIGN_OR_RETURN(w.strides, SpatialList(node, "stride", count, 1, 1));
  ASSIGN_OR_RETURN(w.dilations, SpatialList(node, "dilate", count, 1, 1));
  ASSIGN_OR_RETURN(w.before, SpatialList(node, "pad", count, 0, 0));
  w.after = w.before;
  return w;
}

absl::StatusOr<Layout> ReadLayout(NodeImporter& node) {
  const int64_t rank = node.rank(0);
  if (rank < 3 || rank > 5) {
    return node.FailMode(absl::StrCat("the operand is ", TypeToString(node.type(0)),
                                      "; it must have one to three spatial dimensions"),
                         "use layers of that form");
  }
  constexpr absl::string_view kFirst[] = {"NCW", "NCHW", "NCDHW"};
  constexpr absl::string_view kLast[] = {"NWC", "NHWC", "NDHWC"};
  const size_t at = static_cast<size_t>(rank - 3);
  ASSIGN_OR_RETURN(const std::string layout, node.StringOr("layout", std::string(kFirst[at])));
  if (layout == kLast[at]) return Layout{true, at + 1};
  if (layout == kFirst[at]) return Layout{false, at + 1};
  return node.BadChoice("layout", layout, absl::StrCat(kFirst[at], " or ", kLast[at]));
}

absl::StatusOr<ValueRef> ToChannelsLast(NodeImporter& node, const Layout& layout) {
  if (layout.is_channels_last) return node.input(0);
  return ChannelsLast(node, node.input(0));
}

absl::StatusOr<ValueRef> FromChannelsLast(NodeImporter& node, const Layout& layout,
                                          const ValueRef& value) {
  return layout.is_channels_last ? value : ChannelsFirst(node, value);
}

}  // namespace npuc::mxnet
