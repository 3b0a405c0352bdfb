// Operators that change the form of values.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/evaluator.h"
#include "compiler_core/frontends/common/gather.h"
#include "compiler_core/frontends/common/image.h"
#include "compiler_core/frontends/common/selection.h"
#include "compiler_core/frontends/common/windows.h"
#include "compiler_core/frontends/paddle/op_import.h"

namespace npuc::paddle {
namespace {

absl::Status ImportAssign(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("X"));
  return node.Give("Out", x);
}

// 0 keeps a dimension, one -1 takes what is left.
absl::Status ImportReshape(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("X"));
  ASSIGN_OR_RETURN(Shape shape, node.IntsAt("Shape", "ShapeTensor", "shape"));
  int64_t known = 1;
  int64_t* open = nullptr;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && i < x->type.shape.size()) shape[i] = x->type.shape[i];
    if (shape[i] == -1 && open == nullptr) {
      open = &shape[i];
    } else if (shape[i] < 0 || shape[i] > kMaxElements) {
      return absl::InvalidArgumentError(absl::StrCat("the shape is ", ShapeToString(shape)));
    } else {
      known = std::min(known * shape[i], kMaxElements + 1);
    }
  }
  const int64_t count = x->type.element_count();
  if (open != nullptr) {
    if (known == 0 || count % known != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(TypeToString(x->type), " does not fill ", ShapeToString(shape)));
    }
    *open = count / known;
  }
  return node.Give("Out", node.Reshaped(x, std::move(shape)));
}

absl::Status ImportTranspose(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("X"));
  ASSIGN_OR_RETURN(std::vector<int64_t> axis, node.RequiredInts("axis"));
  return node.Give("Out", node.Transposed(x, std::move(axis)));
}

// flatten and flatten2: a matrix with the dimensions in front of the axis as its rows.
absl::Status ImportFlatten(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("X"));
  ASSIGN_OR_RETURN(const int64_t axis, node.IntOr("axis", 1));
  if (axis < 0 || axis > RankOf(x)) return absl::InvalidArgumentError("the axis is none of X");
  Shape shape = {1, 1};
  for (int64_t i = 0; i < RankOf(x); ++i) {
    shape[i < axis ? 0 : 1] *= x->type.shape[static_cast<size_t>(i)];
  }
  return node.Give("Out", node.Reshaped(x, std::move(shape)));
}

absl::Status ImportFlattenRange(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("X"));
  ASSIGN_OR_RETURN(int64_t start, node.IntOr("start_axis", 1));
  ASSIGN_OR_RETURN(int64_t stop, node.IntOr("stop_axis", 1));
  ASSIGN_OR_RETURN(start, node.Axis(start, RankOf(x)));
  ASSIGN_OR_RETURN(stop, node.Axis(stop, RankOf(x)));
  if (start > stop) return absl::InvalidArgumentError("start_axis is behind stop_axis");
  Shape shape;
  for (int64_t i = 0; i < RankOf(x); ++i) {
    const int64_t dim = x->type.shape[static_cast<size_t>(i)];
    if (i > start && i <= stop) {
      shape.back() *= dim;
    } else {
      shape.push_back(dim);
    }
  }
  return node.Give("Out", node.Reshaped(x, std::move(shape)));
}

// Dimensions that are not 1 stay, whatever the axes say.
absl::Status ImportSqueeze(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("X"));
  ASSIGN_OR_RETURN(std::vector<int64_t> axes, node.IntsOr("axes", {}));
  const bool all = axes.empty();
  ASSIGN_OR_RETURN(axes, node.Axes(std::move(axes), RankOf(x)));
  Shape shape;
  for (int64_t i = 0; i < RankOf(x); ++i) {
    const int64_t dim = x->type.shape[static_cast<size_t>(i)];
    const bool is_named = all || std::binary_search(axes.begin(), axes.end(), i);
    if (dim != 1 || !is_named) shape.push_back(dim);
  }
  return node.Give("Out", node.Reshaped(x, std::move(shape)));
}

// One after the other, each counted in what is there by then.
absl::Status ImportUnsqueeze(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("X"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> axes,
                   node.IntsAt("AxesTensor", "AxesTensorList", "axes"));
  Shape shape = x->type.shape;
  for (int64_t axis : axes) {
    ASSIGN_OR_RETURN(axis, node.Axis(axis, static_cast<int64_t>(shape.size()) + 1));
    shape.insert(shape.begin() + axis, 1);
  }
  return node.Give("Out", node.Reshaped(x, std::move(shape)));
}

absl::StatusOr<int64_t> AxisOf(OpImporter& node, int64_t rank, int64_t fallback) {
  int64_t axis = fallback;
  if (node.Takes("AxisTensor")) {
    ASSIGN_OR_RETURN(axis, node.ConstantInt(node.At("AxisTensor"), "AxisTensor"));
  } else {
    ASSIGN_OR_RETURN(axis, node.IntOr("axis", fallback));
  }
  return node.Axis(axis, rank);
}

absl::Status ImportConcat(OpImporter& node) {
  const std::vector<ValueRef> all = node.All("X");
  if (all.empty()) return node.In("X").status();
  ASSIGN_OR_RETURN(const int64_t axis, AxisOf(node, RankOf(all[0]), 0));
  return node.Give("Out", node.Joined(all, axis));
}

absl::Status ImportStack(OpImporter& node) {
  std::vector<ValueRef> all = node.All("X");
  if (all.empty()) return node.In("X").status();
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("axis", 0));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, RankOf(all[0]) + 1));
  for (ValueRef& value : all) {
    Shape shape = value->type.shape;
    if (axis > static_cast<int64_t>(shape.size())) {
      return absl::InvalidArgumentError("operands of unlike ranks");
    }
    shape.insert(shape.begin() + axis, 1);
    ASSIGN_OR_RETURN(value, node.Reshaped(value, std::move(shape)));
  }
  return node.Give("Y", node.Joined(all, axis));
}

absl::Status ImportSplit(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("X"));
  ASSIGN_OR_RETURN(const int64_t axis, AxisOf(node, RankOf(x), 0));
  ASSIGN_OR_RETURN(std::vector<int64_t> sizes, node.IntsAt("", "SectionsTensorList", "sections"));
  const int64_t dim = x->type.shape[static_cast<size_t>(axis)];
  const auto count = static_cast<int64_t>(node.ResultCount("Out"));
  if (sizes.empty()) {
    if (count < 1 || dim % count != 0) {
      return absl::InvalidArgumentError(absl::StrCat(dim, " places in ", count, " parts"));
    }
    sizes.assign(static_cast<size_t>(count), dim / count);
  }
  int64_t rest = dim;
  for (const int64_t size : sizes) {
    if (size < -1 || size > kMaxElements) return absl::InvalidArgumentError("a part of wild size");
    rest -= std::max<int64_t>(size, 0);
  }
  const auto open = std::find(sizes.begin(), sizes.end(), -1);
  if (open != sizes.end()) *open = rest;
  if (static_cast<int64_t>(sizes.size()) != count) {
    return absl::InvalidArgumentError(absl::StrCat(sizes.size(), " parts for ", count, " results"));
  }
  if (count == 1) return node.Give("Out", x);
  ASSIGN_OR_RETURN(std::vector<ValueRef> parts,
                   node.EmitAll("Split", {x}, {{"axis", axis}, {"sizes", std::move(sizes)}}));
  return node.Give("Out", std::move(parts));
}

absl::Status ImportShape(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("Input"));
  return node.Give("Out", node.MakeConstant(IntTensor(DType::kInt32, {RankOf(x)}, x->type.shape)));
}

absl::Status ImportCast(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("X"));
  ASSIGN_OR_RETURN(const int64_t type, node.IntOr("out_dtype", 5));
  const DType dtype = DTypeFromWire(static_cast<int>(std::clamp<int64_t>(type, -1, 1000)));
  // All floats flow as one type.
  if (IsFloat(dtype) && IsFloat(x->type.dtype)) return node.Give("Out", x);
  if (dtype == DType::kInvalid) {
    return node.FailMode(absl::StrCat("a cast of run-time data from ", TypeToString(x->type),
                                      " to ", DataTypeName(static_cast<int>(type))),
                         "cut the model around it with INPUT_OPS or OUTPUT_OPS");
  }
  if (frontend::IsKnown(x)) return node.Give("Out", node.Converted(x, dtype));
  return node.Give("Out", CastTo(node, x, dtype));
}

// expand_v2: -1 keeps a dimension. tile and expand: how often.
absl::Status ImportExpand(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("X"));
  ASSIGN_OR_RETURN(Shape shape, node.IntsAt("Shape", "expand_shapes_tensor", "shape"));
  const size_t rank = x->type.shape.size();
  for (size_t i = 0; i < shape.size(); ++i) {
    const size_t from_end = shape.size() - i;
    if (shape[i] == -1 && from_end <= rank) shape[i] = x->type.shape[rank - from_end];
  }
  RETURN_IF_ERROR(CheckShape(shape));
  if (shape.size() < rank) return absl::InvalidArgumentError("fewer dimensions than X has");
  return node.Give("Out", frontend::BroadcastTo(node, x, shape));
}

absl::Status ImportTile(OpImporter& node) {
  ASSIGN_OR_RETURN(ValueRef x, node.In("X"));
  const bool is_tile = node.node().type() == "tile";
  ASSIGN_OR_RETURN(const std::vector<int64_t> times,
                   is_tile ? node.IntsAt("RepeatTimes", "repeat_times_tensor", "repeat_times")
                           : node.IntsAt("ExpandTimes", "expand_times_tensor", "expand_times"));
  Shape shape = x->type.shape;
  if (times.size() < shape.size() || times.size() > kMaxRank) {
    return absl::InvalidArgumentError("times for fewer dimensions than X has");
  }
  shape.insert(shape.begin(), times.size() - shape.size(), 1);
  ASSIGN_OR_RETURN(x, node.Reshaped(x, shape));
  for (size_t i = 0; i < times.size(); ++i) {
    if (times[i] < 1 || times[i] > 4096) return absl::InvalidArgumentError("times beyond 1..4096");
    const std::vector<ValueRef> copies(static_cast<size_t>(times[i]), x);
    ASSIGN_OR_RETURN(x, node.Joined(copies, static_cast<int64_t>(i)));
  }
  return node.Give("Out", std::move(x));
}

// [N, g * c, H, W] -> channels [c, g]
absl::Status ImportShuffleChannel(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("X"));
  ASSIGN_OR_RETURN(const int64_t groups, node.IntOr("group", 1));
  const Shape in = x->type.shape;
  if (in.size() != 4 || groups < 1 || in[1] % groups != 0) {
    return absl::InvalidArgumentError(absl::StrCat(groups, " groups of ", TypeToString(x->type)));
  }
  ASSIGN_OR_RETURN(ValueRef y, node.Reshaped(x, {in[0], groups, in[1] / groups, in[2], in[3]}));
  ASSIGN_OR_RETURN(y, node.Transposed(y, {0, 2, 1, 3, 4}));
  return node.Give("Out", node.Reshaped(y, in));
}

// Channels [c, r, r] -> c, with r places for each along H and W. Source:
// pixel_shuffle_kernel_impl.h.
absl::Status ImportPixelShuffle(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("X"));
  ASSIGN_OR_RETURN(const int64_t r, node.IntOr("upscale_factor", 1));
  ASSIGN_OR_RETURN(const bool is_last, IsChannelsLast(node, "data_format"));
  const Shape in = x->type.shape;
  if (in.size() != 4 || r < 1 || r > 1024 || in[is_last ? 3 : 1] % (r * r) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("a factor ", r, " of ", TypeToString(x->type)));
  }
  const int64_t c = in[is_last ? 3 : 1] / (r * r);
  if (is_last) {
    ASSIGN_OR_RETURN(ValueRef y, node.Reshaped(x, {in[0], in[1], in[2], c, r, r}));
    ASSIGN_OR_RETURN(y, node.Transposed(y, {0, 1, 4, 2, 5, 3}));
    return node.Give("Out", node.Reshaped(y, {in[0], in[1] * r, in[2] * r, c}));
  }
  ASSIGN_OR_RETURN(ValueRef y, node.Reshaped(x, {in[0], c, r, r, in[2], in[3]}));
  ASSIGN_OR_RETURN(y, node.Transposed(y, {0, 1, 4, 2, 5, 3}));
  return node.Give("Out", node.Reshaped(y, {in[0], c, in[2] * r, in[3] * r}));
}

constexpr ImportRule kShapeRules[] = {
    {"assign", ImportAssign},
    {"cast", ImportCast},
    {"concat", ImportConcat},
    {"expand", ImportTile},
    {"expand_v2", ImportExpand},
    {"flatten", ImportFlatten},
    {"flatten2", ImportFlatten},
    {"flatten_contiguous_range", ImportFlattenRange},
    {"pixel_shuffle", ImportPixelShuffle},
    {"reshape", ImportReshape},
    {"reshape2", ImportReshape},
    {"shape", ImportShape},
    {"share_data", ImportAssign},
    {"shuffle_channel", ImportShuffleChannel},
    {"split", ImportSplit},
    {"squeeze", ImportSqueeze},
    {"squeeze2", ImportSqueeze},
    {"stack", ImportStack},
    {"tile", ImportTile},
    {"transpose", ImportTranspose},
    {"transpose2", ImportTranspose},
    {"unsqueeze", ImportUnsqueeze},
    {"unsqueeze2", ImportUnsqueeze},
};

}  // namespace

absl::Span<const ImportRule> ShapeRules() { return kShapeRules; }

}  // namespace npuc::paddle
