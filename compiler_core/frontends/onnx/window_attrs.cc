#include "compiler_core/frontends/onnx/window_attrs.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

namespace npuc::onnx {
namespace {

constexpr int64_t kMaxWindow = int64_t{1} << 20;

}  // namespace

absl::Status CheckSpatial(NodeImporter& node, absl::string_view name,
                          const std::vector<int64_t>& values, size_t count, int64_t lo) {
  const bool fits =
      values.size() == count && std::all_of(values.begin(), values.end(),
                                            [&](int64_t v) { return v >= lo && v <= kMaxWindow; });
  if (fits) return absl::OkStatus();
  return node.BadAttribute(absl::InvalidArgumentError(
      absl::StrCat("attribute '", name, "' is ", ShapeToString(values), "; it must have ", count,
                   " entries from ", lo, " to ", kMaxWindow)));
}

absl::StatusOr<WindowAttrs> ReadWindow(NodeImporter& node, absl::Span<const int64_t> spatial,
                                       const std::vector<int64_t>& kernel,
                                       std::vector<int64_t>* grown) {
  const size_t count = spatial.size();
  const std::vector<int64_t> ones(count, 1);
  WindowAttrs w;
  ASSIGN_OR_RETURN(w.kernel, node.IntsOr("kernel_shape", kernel));
  RETURN_IF_ERROR(CheckSpatial(node, "kernel_shape", w.kernel, count, 1));
  if (!kernel.empty() && w.kernel != kernel) {
    return node.BadAttribute(absl::InvalidArgumentError(
        absl::StrCat("attribute 'kernel_shape' is ", ShapeToString(w.kernel), "; the weight's is ",
                     ShapeToString(kernel))));
  }
  ASSIGN_OR_RETURN(w.strides, node.IntsOr("strides", ones));
  RETURN_IF_ERROR(CheckSpatial(node, "strides", w.strides, count, 1));
  ASSIGN_OR_RETURN(w.dilations, node.IntsOr("dilations", ones));
  RETURN_IF_ERROR(CheckSpatial(node, "dilations", w.dilations, count, 1));
  ASSIGN_OR_RETURN(const std::vector<int64_t> pads,
                   node.IntsOr("pads", std::vector<int64_t>(2 * count, 0)));
  RETURN_IF_ERROR(CheckSpatial(node, "pads", pads, 2 * count, 0));
  w.before.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(count));
  w.after.assign(pads.begin() + static_cast<std::ptrdiff_t>(count), pads.end());
  ASSIGN_OR_RETURN(const std::string auto_pad, node.StringOr("auto_pad", "NOTSET"));
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (!same && auto_pad != "NOTSET" && auto_pad != "VALID" && !auto_pad.empty()) {
    return node.BadAttribute(absl::InvalidArgumentError(
        absl::StrCat("attribute 'auto_pad' is '", Printable(auto_pad),
                     "'; allowed are NOTSET, VALID, SAME_UPPER and SAME_LOWER")));
  }
  ASSIGN_OR_RETURN(const bool ceil_mode, node.BoolOr("ceil_mode", false));
  if (grown != nullptr) grown->assign(count, 0);
  for (size_t i = 0; i < count; ++i) {
    if (auto_pad == "VALID") w.before[i] = w.after[i] = 0;
    if (same) {
      const int64_t results = (spatial[i] + w.strides[i] - 1) / w.strides[i];
      const int64_t total =
          std::max<int64_t>((results - 1) * w.strides[i] + w.Extent(i) - spatial[i], 0);
      w.before[i] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      w.after[i] = total - w.before[i];
    } else if (ceil_mode && grown != nullptr) {
      const int64_t room = spatial[i] + w.before[i] + w.after[i] - w.Extent(i);
      const int64_t rest = room > 0 ? room % w.strides[i] : 0;
      if (rest == 0) continue;
      const int64_t more = w.strides[i] - rest;
      // A window that would start behind the operand and its first padding does not count.
      const int64_t start = (room / w.strides[i] + 1) * w.strides[i];
      if (start >= spatial[i] + w.before[i]) continue;
      (*grown)[i] = more;
      w.after[i] += more;
    }
  }
  return w;
}

}  // namespace npuc::onnx
