// Layers that move elements: reshaping, joining, cutting, resizing.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/caffe/node_import.h"
#include "compiler_core/frontends/common/resize.h"

namespace npuc::caffe {
namespace {

constexpr int kMaxParts = 1 << 12;
constexpr int64_t kMaxCopies = int64_t{1} << 12;

absl::Status ImportSplit(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  return node.SetOutputs(std::vector<ValueRef>(node.output_count(), node.input(0)));
}

// In the phase TEST Dropout passes its bottom on. A fork's `scale_train: false` scales there what
// training did not: dropout_layer.cpp of caffe-fast-rcnn.
absl::Status ImportDropout(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const double ratio, node.FloatOr("dropout_ratio", 0.5));
  ASSIGN_OR_RETURN(const bool is_scaled, node.BoolOr("scale_train", true));
  if (is_scaled) return node.SetOutput(node.input(0));
  if (!(ratio >= 0 && ratio < 1)) {
    return node.BadAttribute(absl::InvalidArgumentError(
        absl::StrCat("parameter 'dropout_ratio' is ", ratio, "; it must be from 0 to below 1")));
  }
  return node.SetOutput((Term(node, node.input(0)) * (1 - ratio)).value);
}

// The axis, which nets from before `axis` give under another name.
absl::StatusOr<int64_t> AxisOr(LayerImporter& node, absl::string_view old_name) {
  ASSIGN_OR_RETURN(const int64_t old_axis, node.IntOr(old_name, 1));
  ASSIGN_OR_RETURN(const int64_t axis, node.IntOr("axis", old_axis));
  return node.Axis(axis, node.rank(0));
}

absl::Status ImportConcat(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, kMaxParts));
  ASSIGN_OR_RETURN(const int64_t axis, AxisOr(node, "concat_dim"));
  std::vector<ValueRef> operands;
  for (int i = 0; i < node.input_count(); ++i) operands.push_back(node.input(i));
  return node.SetOutput(node.Joined(operands, axis));
}

absl::Status ImportSlice(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const int64_t axis, AxisOr(node, "slice_dim"));
  ASSIGN_OR_RETURN(std::vector<int64_t> points, node.IntsOr("slice_point", {}));
  const int64_t dim = node.shape(0)[static_cast<size_t>(axis)];
  const int64_t count = static_cast<int64_t>(node.output_count());
  if (points.empty() && count > 0 && dim % count == 0) {
    for (int64_t i = 1; i < count; ++i) points.push_back(i * (dim / count));
  }
  points.push_back(dim);
  std::vector<int64_t> sizes;
  int64_t begin = 0;
  for (const int64_t end : points) {
    sizes.push_back(end - begin);
    begin = end;
  }
  const bool fits =
      std::all_of(sizes.begin(), sizes.end(), [&](int64_t s) { return s > 0 && s <= dim; });
  if (!fits || static_cast<int64_t>(sizes.size()) != count) {
    return absl::InvalidArgumentError(absl::StrCat("axis ", axis, " of ",
                                                   TypeToString(node.type(0)), " is cut in ",
                                                   sizes.size(), " parts for ", count, " tops"));
  }
  if (count == 1) return node.SetOutput(node.input(0));
  ASSIGN_OR_RETURN(std::vector<ValueRef> parts,
                   node.EmitAll("Split", {node.input(0)}, {{"axis", axis}, {"sizes", sizes}}));
  return node.SetOutputs(std::move(parts));
}

absl::Status ImportFlatten(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("axis", 1));
  ASSIGN_OR_RETURN(int64_t end_axis, node.IntOr("end_axis", -1));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0)));
  ASSIGN_OR_RETURN(end_axis, node.Axis(end_axis, node.rank(0)));
  if (end_axis < axis) return absl::InvalidArgumentError("end_axis lies before axis");
  const auto begin = node.shape(0).begin();
  Shape shape(begin, begin + axis);
  shape.push_back(ElementCount(Shape(begin + axis, begin + end_axis + 1)));
  shape.insert(shape.end(), begin + end_axis + 1, node.shape(0).end());
  return node.SetOutput(node.Reshaped(node.input(0), std::move(shape)));
}

// A new shape for `num_axes` dimensions from `axis` on; 0 stands for the one of the bottom, -1 for
// what is left.
absl::Status ImportReshape(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  const absl::StatusOr<Shape> given = node.node().Dims("shape");
  if (!given.ok()) return node.BadAttribute(given.status());
  ASSIGN_OR_RETURN(const int64_t stated_axis, node.IntOr("axis", 0));
  ASSIGN_OR_RETURN(int64_t count, node.IntOr("num_axes", -1));
  const int64_t rank = node.rank(0);
  const int64_t axis = stated_axis < 0 ? stated_axis + rank + 1 : stated_axis;
  if (count == -1) count = rank - axis;
  if (axis < 0 || axis > rank || count < 0 || count > rank - axis) {
    return absl::InvalidArgumentError(absl::StrCat("axis ", stated_axis, " and num_axes ", count,
                                                   " of ", TypeToString(node.type(0))));
  }
  const Shape& in = node.shape(0);
  Shape shape(in.begin(), in.begin() + axis);
  int open = -1;
  for (size_t i = 0; i < given->size(); ++i) {
    int64_t dim = (*given)[i];
    const size_t same = static_cast<size_t>(axis) + i;
    if (dim < -1 || (dim == -1 && open >= 0) || (dim == 0 && same >= in.size())) {
      return absl::InvalidArgumentError(
          absl::StrCat("dimension ", i, " of the new shape is ", dim));
    }
    if (dim == 0) dim = in[same];
    if (dim == -1) open = static_cast<int>(shape.size());
    shape.push_back(dim == -1 ? 1 : dim);
  }
  shape.insert(shape.end(), in.begin() + axis + count, in.end());
  RETURN_IF_ERROR(CheckShape(shape));
  if (open >= 0) {
    const int64_t known = ElementCount(shape);
    shape[static_cast<size_t>(open)] = known > 0 ? node.type(0).element_count() / known : 0;
  }
  return node.SetOutput(node.Reshaped(node.input(0), std::move(shape)));
}

// Axes that `order` leaves out follow in their own order.
absl::Status ImportPermute(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(std::vector<int64_t> order, node.RequiredInts("order"));
  for (int64_t axis = 0; axis < node.rank(0); ++axis) {
    if (std::find(order.begin(), order.end(), axis) == order.end()) order.push_back(axis);
  }
  if (static_cast<int64_t>(order.size()) != node.rank(0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter 'order' is no order of the axes of ", TypeToString(node.type(0))));
  }
  return node.SetOutput(node.Transposed(node.input(0), std::move(order)));
}

absl::Status ImportTile(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("axis", 1));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0)));
  ASSIGN_OR_RETURN(const int64_t tiles, node.BoundedOr("tiles", 0, 1));
  if (tiles > kMaxCopies) {
    return node.FailMode(absl::StrCat(tiles, " tiles"), absl::StrCat("use at most ", kMaxCopies));
  }
  const std::vector<ValueRef> copies(static_cast<size_t>(tiles), node.input(0));
  return node.SetOutput(node.Joined(copies, axis));
}

// Bottom 0, cut from `axis` on to the size of bottom 1.
absl::Status ImportCrop(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("axis", 2));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0)));
  ASSIGN_OR_RETURN(std::vector<int64_t> offsets, node.IntsOr("offset", {0}));
  const size_t count = static_cast<size_t>(node.rank(0) - axis);
  if (offsets.size() == 1) offsets.assign(count, offsets[0]);
  if (offsets.size() != count || node.rank(1) != node.rank(0)) {
    return absl::InvalidArgumentError(absl::StrCat(offsets.size(), " offsets from axis ", axis,
                                                   " on, of ", TypeToString(node.type(0)),
                                                   " cut as ", TypeToString(node.type(1))));
  }
  ValueRef y = node.input(0);
  for (size_t i = 0; i < count; ++i) {
    const int64_t at = axis + static_cast<int64_t>(i);
    const int64_t dim = node.shape(0)[static_cast<size_t>(at)];
    const int64_t size = node.shape(1)[static_cast<size_t>(at)];
    if (offsets[i] < 0 || offsets[i] > dim - size) {
      return absl::InvalidArgumentError(absl::StrCat("dimension ", at, " of ", dim, " is cut to ",
                                                     size, " from ", offsets[i], " on"));
    }
    ASSIGN_OR_RETURN(y, node.Sliced(y, at, offsets[i], size));
  }
  return node.SetOutput(std::move(y));
}

// Channels dealt out by group, as ShuffleNet does.
absl::Status ImportShuffleChannel(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const int64_t groups, node.BoundedOr("group", 0, 1));
  const Shape shape = node.shape(0);
  if (shape.size() < 2 || shape[1] % groups != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(groups, " groups of ", TypeToString(node.type(0))));
  }
  const int64_t rest = ElementCount(Shape(shape.begin() + 2, shape.end()));
  ASSIGN_OR_RETURN(ValueRef y,
                   node.Reshaped(node.input(0), {shape[0], groups, shape[1] / groups, rest}));
  ASSIGN_OR_RETURN(y, node.Transposed(y, {0, 2, 1, 3}));
  return node.SetOutput(node.Reshaped(y, shape));
}

absl::Status ExpectImage(LayerImporter& node) {
  if (node.rank(0) == 4) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the bottom is ", TypeToString(node.type(0)), "; it must be an image"));
}

// Height and width resized to `size`.
absl::Status Resize(LayerImporter& node, ValueRef x, const frontend::ResizeMode& mode,
                    const Shape& size) {
  for (size_t i = 0; i < 2; ++i) {
    frontend::ResizeAxis axis{.in = x->type.shape[i + 2], .out = size[i]};
    if (axis.in == axis.out) continue;
    axis.scale = static_cast<double>(axis.out) / static_cast<double>(std::max<int64_t>(axis.in, 1));
    ASSIGN_OR_RETURN(x, ResizeAlong(node, std::move(x), i + 2, mode, axis));
  }
  return node.SetOutput(std::move(x));
}

// The size that Interp states: one, that of bottom 1, or factors. Shrinking comes before zooming.
absl::StatusOr<Shape> InterpSize(LayerImporter& node, const Shape& in) {
  ASSIGN_OR_RETURN(const int64_t zoom, node.BoundedOr("zoom_factor", 1, 1));
  ASSIGN_OR_RETURN(const int64_t shrink, node.BoundedOr("shrink_factor", 1, 1));
  ASSIGN_OR_RETURN(const int64_t height, node.BoundedOr("height", 0, 0));
  ASSIGN_OR_RETURN(const int64_t width, node.BoundedOr("width", 0, 0));
  const bool has_factor = node.node().Has("zoom_factor") || node.node().Has("shrink_factor");
  const bool has_size = height > 0 && width > 0;
  if (has_factor + has_size + node.has(1) != 1 || (node.has(1) && node.rank(1) != 4)) {
    return node.FailMode("its size is given in no way, or in several",
                         "state one of zoom_factor and shrink_factor, height and width, and a "
                         "second bottom");
  }
  if (node.has(1)) return Shape{node.shape(1)[2], node.shape(1)[3]};
  if (has_size) return Shape{height, width};
  Shape size;
  for (size_t i = 2; i < 4; ++i) {
    const int64_t shrunk = (in[i] - 1) / shrink + 1;
    size.push_back(shrunk + (shrunk - 1) * (zoom - 1));
  }
  return size;
}

// Bilinear, corners on corners. Negative pads cut first. Source: interp_layer.cpp of DeepLab.
absl::Status ImportInterp(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 2));
  RETURN_IF_ERROR(ExpectImage(node));
  ASSIGN_OR_RETURN(const int64_t before, node.IntOr("pad_beg", 0));
  ASSIGN_OR_RETURN(const int64_t after, node.IntOr("pad_end", 0));
  constexpr int64_t kMostCut = -(int64_t{1} << 20);
  if (before > 0 || after > 0 || before < kMostCut || after < kMostCut) {
    return node.FailMode(absl::StrCat("pads of ", before, " and ", after),
                         "use pads that are not positive");
  }
  ASSIGN_OR_RETURN(ValueRef x,
                   node.Padded(node.input(0), {0, 0, 0, 0, before, after, before, after}, 0));
  ASSIGN_OR_RETURN(const Shape size, InterpSize(node, x->type.shape));
  frontend::ResizeMode mode;
  mode.mode = "linear";
  mode.coordinates = "align_corners";
  return Resize(node, std::move(x), mode, size);
}

// Each pixel repeated.
absl::Status ImportUpsample(LayerImporter& node) {
  if (node.input_count() > 1) {
    return node.FailMode("it puts maxima back where a pooling found them",
                         "train the net with Deconvolution or Interp in its place");
  }
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  RETURN_IF_ERROR(ExpectImage(node));
  ASSIGN_OR_RETURN(const int64_t both, node.BoundedOr("scale", 0, 0));
  ASSIGN_OR_RETURN(const int64_t by_height, node.BoundedOr("scale_h", both, 1));
  ASSIGN_OR_RETURN(const int64_t by_width, node.BoundedOr("scale_w", both, 1));
  frontend::ResizeMode mode;
  mode.mode = "nearest";
  mode.coordinates = "asymmetric";
  mode.nearest = "floor";
  return Resize(node, node.input(0), mode,
                {node.shape(0)[2] * by_height, node.shape(0)[3] * by_width});
}

constexpr ImportRule kShapeRules[] = {
    {"Concat", ImportConcat},   {"Crop", ImportCrop},
    {"Dropout", ImportDropout}, {"Flatten", ImportFlatten},
    {"Interp", ImportInterp},   {"Permute", ImportPermute},
    {"Reshape", ImportReshape}, {"ShuffleChannel", ImportShuffleChannel},
    {"Slice", ImportSlice},     {"Split", ImportSplit},
    {"Tile", ImportTile},       {"Upsample", ImportUpsample},
};

}  // namespace

absl::Span<const ImportRule> ShapeRules() { return kShapeRules; }

}  // namespace npuc::caffe
