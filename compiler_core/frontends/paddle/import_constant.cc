// Operators whose results depend on no values: constants and prior boxes.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/evaluator.h"
#include "compiler_core/frontends/paddle/op_import.h"

namespace npuc::paddle {
namespace {

absl::StatusOr<DType> StatedType(OpImporter& node) {
  ASSIGN_OR_RETURN(const int64_t type, node.IntOr("dtype", 5));
  const DType dtype = DTypeFromWire(static_cast<int>(std::clamp<int64_t>(type, -1, 1000)));
  if (dtype != DType::kInvalid) return dtype;
  return node.FailMode(absl::StrCat("a constant of ", DataTypeName(static_cast<int>(type))),
                       "export the model without it");
}

absl::Status GiveFilled(OpImporter& node, const Shape& shape, double value) {
  ASSIGN_OR_RETURN(const DType dtype, StatedType(node));
  RETURN_IF_ERROR(CheckShape(shape));
  const int64_t count = ElementCount(shape);
  if (count > kMaxEvaluatedElements) return absl::InvalidArgumentError("a constant too large");
  return node.Give(
      "Out", node.Floats(shape, std::vector<double>(static_cast<size_t>(count), value), dtype));
}

absl::StatusOr<double> FillValue(OpImporter& node) {
  ASSIGN_OR_RETURN(const std::string text, node.StringOr("str_value", ""));
  double value = 0;
  if (!text.empty() && absl::SimpleAtod(text, &value)) return value;
  return node.FloatAt("ValueTensor", "value", 0);
}

absl::Status ImportFillConstant(OpImporter& node) {
  ASSIGN_OR_RETURN(const Shape shape, node.IntsAt("ShapeTensor", "ShapeTensorList", "shape"));
  ASSIGN_OR_RETURN(const double value, FillValue(node));
  return GiveFilled(node, shape, value);
}

// One dimension, mostly the batch, is that of the operand.
absl::Status ImportFillLike(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef like, node.In("Input"));
  ASSIGN_OR_RETURN(Shape shape, node.RequiredInts("shape"));
  ASSIGN_OR_RETURN(const double value, FillValue(node));
  ASSIGN_OR_RETURN(const int64_t from, node.IntOr("input_dim_idx", 0));
  ASSIGN_OR_RETURN(const int64_t to, node.IntOr("output_dim_idx", 0));
  if (from < 0 || from >= static_cast<int64_t>(like->type.shape.size()) || to < 0 ||
      to >= static_cast<int64_t>(shape.size())) {
    return absl::InvalidArgumentError("the batch is no dimension of the operand");
  }
  shape[static_cast<size_t>(to)] = like->type.shape[static_cast<size_t>(from)];
  return GiveFilled(node, shape, value);
}

absl::Status ImportFillAnyLike(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef like, node.In("X"));
  ASSIGN_OR_RETURN(const double value, node.FloatOr("value", 0));
  const int64_t count = like->type.element_count();
  if (count > kMaxEvaluatedElements) return absl::InvalidArgumentError("a constant too large");
  return node.Give(
      "Out", node.Floats(like->type.shape, std::vector<double>(static_cast<size_t>(count), value),
                         like->type.dtype));
}

absl::Status ImportAssignValue(OpImporter& node) {
  ASSIGN_OR_RETURN(const Shape shape, node.RequiredInts("shape"));
  ASSIGN_OR_RETURN(const DType dtype, StatedType(node));
  std::vector<double> values;
  for (const char* key : {"fp32_values", "int32_values", "int64_values", "bool_values"}) {
    if (!values.empty() || !node.node().HasAttr(key)) continue;
    if (key[0] == 'f') {
      ASSIGN_OR_RETURN(values, node.FloatsOr(key, {}));
      continue;
    }
    const absl::StatusOr<std::vector<int64_t>> whole = node.node().Ints(key);
    if (whole.ok()) values.assign(whole->begin(), whole->end());
  }
  RETURN_IF_ERROR(CheckShape(shape));
  if (ElementCount(shape) != static_cast<int64_t>(values.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat(values.size(), " values for ", ShapeToString(shape)));
  }
  return node.Give("Out", node.Floats(shape, values, dtype));
}

absl::Status ImportRange(OpImporter& node) {
  std::vector<Tensor> ends;
  for (const char* parameter : {"Start", "End", "Step"}) {
    ASSIGN_OR_RETURN(const ValueRef operand, node.In(parameter));
    ASSIGN_OR_RETURN(const Tensor value, node.Constant(node.At(parameter), parameter));
    if (value.element_count() != 1) return absl::InvalidArgumentError("a list for a number");
    ends.push_back(value.WithShape({}));
  }
  ASSIGN_OR_RETURN(Tensor range, EvaluateRange(ends[0], ends[1], ends[2]));
  return node.Give("Out", node.MakeConstant(std::move(range)));
}

// The boxes of one place: half widths and half heights. Source: prior_box_op.h, ExpandAspectRatios
// and PriorBoxOpKernel.
absl::StatusOr<std::vector<std::pair<double, double>>> HalfSizes(OpImporter& node) {
  ASSIGN_OR_RETURN(const std::vector<double> least, node.FloatsOr("min_sizes", {}));
  ASSIGN_OR_RETURN(const std::vector<double> most, node.FloatsOr("max_sizes", {}));
  ASSIGN_OR_RETURN(const std::vector<double> stated, node.FloatsOr("aspect_ratios", {1}));
  ASSIGN_OR_RETURN(const bool flip, node.BoolOr("flip", false));
  ASSIGN_OR_RETURN(const bool both_first, node.BoolOr("min_max_aspect_ratios_order", false));
  std::vector<double> ratios = {1};
  for (const double ratio : stated) {
    const bool is_known = std::any_of(ratios.begin(), ratios.end(), [ratio](double known) {
      return std::fabs(ratio - known) < 1e-6;
    });
    if (is_known) continue;
    if (!(ratio > 0)) return absl::InvalidArgumentError("an aspect ratio that is not positive");
    ratios.push_back(ratio);
    if (flip) ratios.push_back(1 / ratio);
  }
  if (least.empty() || (!most.empty() && most.size() != least.size()) ||
      least.size() * (ratios.size() + 1) > 256) {
    return absl::InvalidArgumentError("min_sizes, max_sizes and aspect_ratios do not fit");
  }
  std::vector<std::pair<double, double>> sizes;
  for (size_t i = 0; i < least.size(); ++i) {
    const auto add_ratio = [&](double ratio) {
      sizes.emplace_back(least[i] * std::sqrt(ratio) / 2, least[i] / std::sqrt(ratio) / 2);
    };
    const auto add_most = [&] {
      if (most.empty()) return;
      const double side = std::sqrt(least[i] * most[i]) / 2;
      sizes.emplace_back(side, side);
    };
    if (both_first) {
      sizes.emplace_back(least[i] / 2, least[i] / 2);
      add_most();
    }
    for (const double ratio : ratios) {
      if (!both_first || std::fabs(ratio - 1) >= 1e-6) add_ratio(ratio);
    }
    if (!both_first) add_most();
  }
  return sizes;
}

// Boxes [H,W,boxes,4] around each place of the feature map, as parts of the image, and their
// variances: both follow from the shapes alone.
absl::Status ImportPriorBox(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef map, node.In("Input"));
  ASSIGN_OR_RETURN(const ValueRef image, node.In("Image"));
  if (map->type.shape.size() != 4 || image->type.shape.size() != 4) {
    return absl::InvalidArgumentError("prior boxes of what is no image");
  }
  ASSIGN_OR_RETURN(const auto sizes, HalfSizes(node));
  ASSIGN_OR_RETURN(double step_w, node.FloatOr("step_w", 0));
  ASSIGN_OR_RETURN(double step_h, node.FloatOr("step_h", 0));
  ASSIGN_OR_RETURN(const double offset, node.FloatOr("offset", 0.5));
  ASSIGN_OR_RETURN(const bool clip, node.BoolOr("clip", false));
  ASSIGN_OR_RETURN(const std::vector<double> variances,
                   node.FloatsOr("variances", {0.1, 0.1, 0.2, 0.2}));
  const int64_t h = map->type.shape[2];
  const int64_t w = map->type.shape[3];
  const auto image_h = static_cast<double>(image->type.shape[2]);
  const auto image_w = static_cast<double>(image->type.shape[3]);
  const Shape shape = {h, w, static_cast<int64_t>(sizes.size()), 4};
  RETURN_IF_ERROR(CheckShape(shape));
  if (variances.size() != 4 || ElementCount(shape) > kMaxEvaluatedElements) {
    return absl::InvalidArgumentError("prior boxes with other variances than 4, or too many");
  }
  if (step_w == 0 || step_h == 0) {
    step_w = image_w / static_cast<double>(w);
    step_h = image_h / static_cast<double>(h);
  }
  std::vector<double> boxes;
  std::vector<double> spread;
  for (int64_t y = 0; y < h; ++y) {
    for (int64_t x = 0; x < w; ++x) {
      const double center_x = (static_cast<double>(x) + offset) * step_w;
      const double center_y = (static_cast<double>(y) + offset) * step_h;
      for (const auto& [half_w, half_h] : sizes) {
        for (const double side : {(center_x - half_w) / image_w, (center_y - half_h) / image_h,
                                  (center_x + half_w) / image_w, (center_y + half_h) / image_h}) {
          boxes.push_back(clip ? std::clamp(side, 0.0, 1.0) : side);
        }
        spread.insert(spread.end(), variances.begin(), variances.end());
      }
    }
  }
  RETURN_IF_ERROR(node.Give("Boxes", node.Floats(shape, boxes, DType::kFloat32)));
  return node.Give("Variances", node.Floats(shape, spread, DType::kFloat32));
}

constexpr ImportRule kConstantRules[] = {
    {"assign_value", ImportAssignValue},   {"fill_any_like", ImportFillAnyLike},
    {"fill_constant", ImportFillConstant}, {"fill_constant_batch_size_like", ImportFillLike},
    {"prior_box", ImportPriorBox},         {"range", ImportRange},
};

}  // namespace

absl::Span<const ImportRule> ConstantRules() { return kConstantRules; }

}  // namespace npuc::paddle
