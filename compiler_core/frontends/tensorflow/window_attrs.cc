#include "compiler_core/frontends/tensorflow/window_attrs.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

namespace npuc::tf {
namespace {

constexpr int64_t kMaxWindow = int64_t{1} << 20;

absl::Status CheckPositive(NodeImporter& node, absl::string_view name, int64_t value) {
  if (value >= 1 && value <= kMaxWindow) return absl::OkStatus();
  return node.Fail(
      DiagnosticKind::kBadAttribute,
      absl::StrCat("attribute '", name, "' holds ", value, "; allowed are 1 to ", kMaxWindow),
      "export the model again");
}

}  // namespace

absl::StatusOr<std::array<int64_t, 2>> ReadHw(NodeImporter& node, absl::string_view name,
                                              bool is_nhwc, bool is_required) {
  std::vector<int64_t> list;
  if (is_required) {
    ASSIGN_OR_RETURN(list, node.RequiredInts(name));
  } else {
    ASSIGN_OR_RETURN(list, node.IntsOr(name, {1, 1, 1, 1}));
  }
  if (list.size() != 4) {
    return node.Fail(
        DiagnosticKind::kBadAttribute,
        absl::StrCat("attribute '", name, "' has ", list.size(), " entries; it must have 4"),
        "export the model again");
  }
  const int64_t channels = is_nhwc ? list[3] : list[1];
  if (list[0] != 1 || channels != 1) {
    return node.FailMode(absl::StrCat("attribute '", name, "' is ", ShapeToString(list),
                                      "; its batch and channel entries must be 1"),
                         "rebuild the model without it");
  }
  const std::array<int64_t, 2> hw =
      is_nhwc ? std::array<int64_t, 2>{list[1], list[2]} : std::array<int64_t, 2>{list[2], list[3]};
  RETURN_IF_ERROR(CheckPositive(node, name, hw[0]));
  RETURN_IF_ERROR(CheckPositive(node, name, hw[1]));
  return hw;
}

namespace {

absl::StatusOr<std::vector<int64_t>> ReadExplicitPads(NodeImporter& node, bool is_nhwc) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> list, node.RequiredInts("explicit_paddings"));
  const size_t h = is_nhwc ? 2 : 4;
  const bool fits = list.size() == 8 && std::all_of(list.begin(), list.end(), [](int64_t p) {
                      return p >= 0 && p <= kMaxWindow;
                    });
  if (!fits) {
    return node.Fail(DiagnosticKind::kBadAttribute,
                     absl::StrCat("attribute 'explicit_paddings' is ", ShapeToString(list),
                                  "; it must have 8 entries from 0 to ", kMaxWindow),
                     "export the model again");
  }
  for (size_t i = 0; i < 8; ++i) {
    if ((i < h || i >= h + 4) && list[i] != 0) {
      return node.FailMode("explicit_paddings pads batch or channels",
                           "pad with a separate tf.pad");
    }
  }
  return std::vector<int64_t>(list.begin() + static_cast<std::ptrdiff_t>(h),
                              list.begin() + static_cast<std::ptrdiff_t>(h + 4));
}

}  // namespace

absl::StatusOr<WindowAttrs> ReadWindow(NodeImporter& node, bool is_nhwc,
                                       absl::Span<const int64_t> input,
                                       std::array<int64_t, 2> kernel) {
  WindowAttrs window;
  ASSIGN_OR_RETURN(const auto strides, ReadHw(node, "strides", is_nhwc, /*is_required=*/true));
  ASSIGN_OR_RETURN(const auto dilations, ReadHw(node, "dilations", is_nhwc, false));
  window.strides = {strides[0], strides[1]};
  window.dilations = {dilations[0], dilations[1]};
  ASSIGN_OR_RETURN(const std::string padding, node.StringOr("padding", "(none)"));
  if (padding == "EXPLICIT") {
    ASSIGN_OR_RETURN(window.pads, ReadExplicitPads(node, is_nhwc));
    return window;
  }
  window.pads = {0, 0, 0, 0};
  if (padding == "VALID") return window;
  if (padding != "SAME") {
    return node.Fail(DiagnosticKind::kBadAttribute,
                     absl::StrCat("attribute 'padding' is '", Printable(padding),
                                  "'; allowed are SAME, VALID and EXPLICIT"),
                     "export the model again");
  }
  for (size_t axis = 0; axis < 2; ++axis) {
    // TensorFlow puts the odd element after.
    const int64_t size = input[1 + axis];
    const int64_t results = (size + strides[axis] - 1) / strides[axis];
    const int64_t extent = (kernel[axis] - 1) * dilations[axis] + 1;
    const int64_t total = std::max<int64_t>((results - 1) * strides[axis] + extent - size, 0);
    window.pads[2 * axis] = total / 2;
    window.pads[2 * axis + 1] = total - total / 2;
  }
  return window;
}

absl::StatusOr<ValueRef> AsNhwc(NodeImporter& node, const ValueRef& value, bool is_nhwc) {
  if (is_nhwc) return value;
  if (value->type.shape.size() != 4) {
    return absl::InvalidArgumentError(absl::StrCat("the operand is ", TypeToString(value->type),
                                                   "; data_format NCHW needs rank 4"));
  }
  node.state().diagnostics->Add(
      {.kind = DiagnosticKind::kLayoutTransposed,
       .message = "data_format is NCHW; the node runs as NHWC between two transposes",
       .file = node.state().file,
       .node = node.source().name,
       .op = node.source().op,
       .fix = "build the model in NHWC to save them"});
  return node.Transposed(value, {0, 2, 3, 1});
}

absl::StatusOr<ValueRef> FromNhwc(NodeImporter& node, const ValueRef& value, bool is_nhwc) {
  if (is_nhwc) return value;
  return node.Transposed(value, {0, 3, 1, 2});
}

}  // namespace npuc::tf
