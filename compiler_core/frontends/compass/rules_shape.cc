// Layer types that move elements: slices, pads, repetitions, lookups, resizing. Source of the
// attributes and of what they mean: the operators of Arm-China/Compass_Optimizer, since Compass
// does not publish its IR definition.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/gather.h"
#include "compiler_core/frontends/common/image.h"
#include "compiler_core/frontends/common/resize.h"
#include "compiler_core/frontends/common/selection.h"
#include "compiler_core/frontends/compass/layer_import.h"

namespace npuc::compass {
namespace {

constexpr int64_t kMaxRepeats = 4096;

absl::Status RefuseMode(LayerImporter& node, absl::string_view key, const std::string& what) {
  return node.FailAt(key, DiagnosticKind::kUnsupportedOperatorMode, what, kCut);
}

absl::StatusOr<ValueRef> ImportPad(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const std::vector<Shape> pairs, node.Pairs("pads", node.rank(0)));
  std::vector<int64_t> paddings;
  for (const Shape& pair : pairs) {
    if (pair[0] < 0 || pair[1] < 0) return node.FailInvalid("pads", "has a number below 0");
    paddings.insert(paddings.end(), pair.begin(), pair.end());
  }
  const std::string mode = absl::AsciiStrToUpper(node.TextOr("mode", "CONSTANT"));
  if (mode == "CONSTANT") {
    ASSIGN_OR_RETURN(const double fill, node.RealOr("constant_value", 0));
    return node.Padded(node.input(0), std::move(paddings), fill);
  }
  if (mode == "REFLECT" || mode == "SYMMETRIC") {
    return frontend::MirrorPadded(node, node.input(0), paddings, mode == "SYMMETRIC");
  }
  return RefuseMode(node, "mode",
                    absl::StrCat("'", Printable(mode, 40),
                                 "' is none of CONSTANT, "
                                 "REFLECT, SYMMETRIC"));
}

// Where a slice of a dimension begins and how many elements it has: numbers below 0 count from the
// end, and what is outside is cut off.
struct Run {
  int64_t begin = 0;
  int64_t size = 0;
};
Run RunOf(int64_t dim, int64_t begin, int64_t end, int64_t stride) {
  end = std::min(end, dim);
  if ((begin >= dim && end >= dim) || (begin < -dim && end < -dim)) return {};
  begin = std::clamp<int64_t>(begin < 0 ? begin + dim : begin, 0, dim - 1);
  end = std::clamp<int64_t>(end < 0 ? end + dim : end, -1, dim);
  const int64_t distance = stride > 0 ? end - begin : begin - end;
  const int64_t step = std::abs(stride);
  return {begin, distance > 0 ? (distance + step - 1) / step : 0};
}

absl::StatusOr<ValueRef> ImportSlice(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  const int64_t rank = node.rank(0);
  ASSIGN_OR_RETURN(std::vector<int64_t> begin, node.Ints("begin", rank));
  ASSIGN_OR_RETURN(const std::vector<int64_t> end, node.Ints("end", rank));
  ASSIGN_OR_RETURN(std::vector<int64_t> strides, node.Ints("strides", rank));
  std::vector<int64_t> size;
  for (size_t d = 0; d < begin.size(); ++d) {
    if (strides[d] == 0) return node.FailInvalid("strides", "has a 0");
    const Run run = RunOf(node.shape(0)[d], begin[d], end[d], strides[d]);
    begin[d] = run.begin;
    size.push_back(run.size);
  }
  return node.Emit(
      "Slice", {node.input(0)},
      {{"begin", std::move(begin)}, {"size", std::move(size)}, {"strides", std::move(strides)}});
}

absl::StatusOr<ValueRef> ImportCrop(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const std::vector<Shape> crops, node.Pairs("crops", node.rank(0)));
  ValueRef value = node.input(0);
  for (size_t d = 0; d < crops.size(); ++d) {
    const Run run = RunOf(node.shape(0)[d], crops[d][0], crops[d][1], 1);
    ASSIGN_OR_RETURN(value, node.Sliced(value, static_cast<int64_t>(d), run.begin, run.size));
  }
  return value;
}

absl::StatusOr<std::vector<ValueRef>> ImportSplit(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const int64_t axis, node.AxisOr("axis", 0));
  ASSIGN_OR_RETURN(std::vector<int64_t> sizes,
                   node.Ints("splits", static_cast<int64_t>(node.top_count())));
  return node.EmitAll("Split", {node.input(0)}, {{"axis", axis}, {"sizes", std::move(sizes)}});
}

absl::StatusOr<ValueRef> ImportTile(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const std::vector<int64_t> repeats, node.Ints("repeats", node.rank(0)));
  ValueRef value = node.input(0);
  for (size_t d = 0; d < repeats.size(); ++d) {
    if (repeats[d] < 1 || repeats[d] > kMaxRepeats) {
      return node.FailInvalid("repeats",
                              absl::StrCat("has ", repeats[d], "; allowed: 1..", kMaxRepeats));
    }
    if (repeats[d] == 1) continue;
    const std::vector<ValueRef> copies(static_cast<size_t>(repeats[d]), value);
    ASSIGN_OR_RETURN(value, node.Joined(copies, static_cast<int64_t>(d)));
  }
  return value;
}

absl::StatusOr<ValueRef> ImportGather(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const int64_t axis, node.AxisOr("axis", 0));
  if (node.NumberOr("batch_dims", 0) != 0) {
    return RefuseMode(node, "batch_dims", "lookups of a batch's own indices");
  }
  if (!IsInteger(node.type(1).dtype)) {
    return node.FailInvalid("layer_bottom_type", "the second bottom has no whole numbers");
  }
  if (!node.IsConstant(1)) {
    return frontend::LookedUp(node, node.input(0), node.input(1), axis, true);
  }
  const int64_t size = node.shape(0)[static_cast<size_t>(axis)];
  ASSIGN_OR_RETURN(std::vector<int64_t> indices, node.ConstantInts(1, "indices"));
  for (int64_t& index : indices) {
    if (index < -size || index >= size) {
      return node.FailInvalid("layer_bottom",
                              absl::StrCat("index ", index, " is outside a dimension of ", size));
    }
    if (index < 0) index += size;
  }
  ASSIGN_OR_RETURN(const ValueRef found, frontend::GatherAxis(node, node.input(0), axis, indices));
  Shape shape = node.shape(0);
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, node.shape(1).begin(), node.shape(1).end());
  return node.Reshaped(found, std::move(shape));
}

// "squeeze" and its like: the elements stay where they are.
absl::StatusOr<ValueRef> ImportSqueeze(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  return node.Reshaped(node.input(0), node.top().type.shape);
}

absl::StatusOr<int64_t> BlockOf(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  const int64_t block = node.NumberOr("block_size_x", 0);
  if (node.rank(0) != 4 || block < 1 || block > kMaxRepeats) {
    return node.FailInvalid("block_size_x",
                            absl::StrCat("is ", block, " of ", PrintShape(node.shape(0)),
                                         "; it must be 1..", kMaxRepeats, " of [n,h,w,c]"));
  }
  if (node.NumberOr("block_size_y", block) == block) return block;
  return RefuseMode(node, "block_size_y", "blocks that are not square");
}

absl::StatusOr<ValueRef> ImportDepthToSpace(LayerImporter& node) {
  ASSIGN_OR_RETURN(const int64_t block, BlockOf(node));
  if (absl::AsciiStrToUpper(node.TextOr("mode", "DCR")) != "DCR") {
    return RefuseMode(node, "mode", "another order of channels than DCR");
  }
  return frontend::DepthToSpace(node, node.input(0), block);
}

absl::StatusOr<ValueRef> ImportSpaceToDepth(LayerImporter& node) {
  ASSIGN_OR_RETURN(const int64_t block, BlockOf(node));
  return frontend::SpaceToDepth(node, node.input(0), block);
}

absl::StatusOr<std::string> WordOf(LayerImporter& node, absl::string_view key,
                                   absl::string_view fallback,
                                   std::initializer_list<absl::string_view> words) {
  const std::string word = absl::AsciiStrToLower(node.TextOr(key, fallback));
  if (std::find(words.begin(), words.end(), word) != words.end()) return word;
  return RefuseMode(node, key, absl::StrCat("'", Printable(word, 40), "' is not supported"));
}

absl::StatusOr<ValueRef> ImportResize(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  if (node.rank(0) != 4 || node.top().type.shape.size() != 4) {
    return node.FailInvalid("layer_bottom_shape", "resizing is of [n,h,w,c]");
  }
  ASSIGN_OR_RETURN(const std::string method,
                   WordOf(node, "method", "bilinear", {"bilinear", "nearest"}));
  frontend::ResizeMode mode;
  mode.mode = method == "nearest" ? "nearest" : "linear";
  ASSIGN_OR_RETURN(mode.coordinates,
                   WordOf(node, "mode", "half_pixel",
                          {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel",
                           "half_pixel_symmetric", "tf_half_pixel_for_nn"}));
  ASSIGN_OR_RETURN(mode.nearest,
                   WordOf(node, "nearest_mode", "round_prefer_floor",
                          {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}));
  ASSIGN_OR_RETURN(mode.antialias, node.FlagOr("antialias", false));
  ValueRef value = node.input(0);
  constexpr absl::string_view kRatios[] = {"ratio_y", "ratio_x"};
  for (size_t i = 0; i < 2; ++i) {
    frontend::ResizeAxis axis;
    axis.in = node.shape(0)[i + 1];
    axis.out = node.top().type.shape[i + 1];
    if (axis.in < 1 || axis.out < 1) return node.FailInvalid("layer_top_shape", "has a 0");
    const double ratio = static_cast<double>(axis.out) / static_cast<double>(axis.in);
    ASSIGN_OR_RETURN(axis.scale, node.RealOr(kRatios[i], ratio));
    if (axis.scale <= 0 || std::floor(static_cast<double>(axis.in) * axis.scale + 1e-3) !=
                               static_cast<double>(axis.out)) {
      return node.FailInvalid(kRatios[i],
                              absl::StrCat("does not make ", axis.out, " of ", axis.in));
    }
    ASSIGN_OR_RETURN(value, frontend::ResizeAlong(node, std::move(value), i + 1, mode, axis));
  }
  return value;
}

// Layers behind a detector, which no core computes.
absl::StatusOr<std::vector<ValueRef>> RefuseDetection(LayerImporter& node) {
  return node.FailAt(
      "layer_type", DiagnosticKind::kUnsupportedOperatorMode,
      "decodes boxes or picks them by their scores, which no core computes",
      "end the model before the layer with OUTPUT_OPS, and decode with DETECTION_POSTPROCESS");
}

constexpr ImportRule kShapeRules[] = {
    {"Crop", ImportCrop},
    {"DecodeBox", nullptr, RefuseDetection},
    {"DepthToSpace", ImportDepthToSpace},
    {"DetectionOutput", nullptr, RefuseDetection},
    {"Gather", ImportGather},
    {"Interp", ImportResize},
    {"NMS", nullptr, RefuseDetection},
    {"Pad", ImportPad},
    {"Proposal", nullptr, RefuseDetection},
    {"Region", nullptr, RefuseDetection},
    {"Resize", ImportResize},
    {"Slice", ImportSlice},
    {"SpaceToDepth", ImportSpaceToDepth},
    {"Split", nullptr, ImportSplit},
    {"Squeeze", ImportSqueeze},
    {"StridedSlice", ImportSlice},
    {"Tile", ImportTile},
};

}  // namespace

absl::Span<const ImportRule> ShapeRules() { return kShapeRules; }

}  // namespace npuc::compass
