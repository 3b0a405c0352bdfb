// Normalisations.
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/caffe/node_import.h"
#include "compiler_core/frontends/common/activations.h"
#include "compiler_core/frontends/common/windows.h"

namespace npuc::caffe {
namespace {

using frontend::AveragePooled;

// The mean or the variance: the blob divided by the factor, which is how often Caffe added to it.
absl::StatusOr<ValueRef> Statistic(LayerImporter& node, int blob, absl::string_view what,
                                   double factor) {
  ASSIGN_OR_RETURN(const ValueRef value, node.Blob(blob, what, {node.shape(0)[1]}));
  const Term scaled = Term(node, value) * (factor == 0 ? 0.0 : 1 / factor);
  RETURN_IF_ERROR(scaled.value.status());
  (*scaled.value)->source = value->source;
  return scaled.value;
}

// (x - mean) / sqrt(variance + eps). A Scale layer behind it has the factors and summands.
absl::Status ImportBatchNorm(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const bool is_global, node.BoolOr("use_global_stats", true));
  if (!is_global) {
    return node.FailMode("use_global_stats is false: mean and variance would come from the batch",
                         "set it to true, which is what a net in phase TEST does by itself");
  }
  ASSIGN_OR_RETURN(const double epsilon, node.FloatOr("eps", 1e-5));
  RETURN_IF_ERROR(node.ExpectBlobs(3));
  if (node.rank(0) < 2) return absl::InvalidArgumentError("the bottom has no channels");
  ASSIGN_OR_RETURN(const ValueRef factor_value, node.Blob(2, "factor", {1}));
  const double factor = factor_value->constant->at(0);
  ASSIGN_OR_RETURN(const ValueRef mean, Statistic(node, 0, "mean", factor));
  ASSIGN_OR_RETURN(const ValueRef variance, Statistic(node, 1, "variance", factor));
  const std::vector<double> ones(static_cast<size_t>(node.shape(0)[1]), 1);
  const std::vector<double> zeros(ones.size(), 0);
  ASSIGN_OR_RETURN(const ValueRef x, frontend::ChannelsLast(node, node.input(0)));
  ASSIGN_OR_RETURN(
      const ValueRef y,
      node.Emit("BatchNorm",
                {x, node.Floats({node.shape(0)[1]}, ones, DType::kFloat32),
                 node.Floats({node.shape(0)[1]}, zeros, DType::kFloat32), mean, variance},
                {{"epsilon", epsilon}}));
  return node.SetOutput(frontend::ChannelsFirst(node, y));
}

// (x - mean) / (deviation + eps) of each channel, or of each item. Source: mvn_layer.cpp.
absl::Status ImportMvn(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const bool has_variance, node.BoolOr("normalize_variance", true));
  ASSIGN_OR_RETURN(const bool is_across, node.BoolOr("across_channels", false));
  ASSIGN_OR_RETURN(const double epsilon, node.FloatOr("eps", 1e-9));
  if (node.rank(0) < 3) {
    return absl::InvalidArgumentError("the bottom has no spatial dimensions");
  }
  std::vector<int64_t> axes;
  for (int64_t i = is_across ? 1 : 2; i < node.rank(0); ++i) axes.push_back(i);
  const Term x(node, node.input(0));
  const Term centred = x - Reduced("ReduceMean", x, axes, true);
  if (!has_variance) return node.SetOutput(centred.value);
  const Term deviation =
      Apply("Sqrt", Reduced("ReduceMean", Apply("Square", centred), axes, true)) + epsilon;
  return node.SetOutput((centred / deviation).value);
}

// x / sqrt(sum of squares + eps) of each pixel, or of each item, times a factor a channel or one
// for all. Source: normalize_layer.cpp of SSD.
absl::Status ImportNormalize(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const bool is_across, node.BoolOr("across_spatial", true));
  ASSIGN_OR_RETURN(const bool is_shared, node.BoolOr("channel_shared", true));
  ASSIGN_OR_RETURN(const double epsilon, node.FloatOr("eps", 1e-10));
  RETURN_IF_ERROR(node.ExpectBlobs(1));
  if (node.rank(0) < 2) return absl::InvalidArgumentError("the bottom has no channels");
  std::vector<int64_t> axes = {1};
  for (int64_t i = 2; is_across && i < node.rank(0); ++i) axes.push_back(i);
  Shape shape;
  if (!is_shared) {
    shape.assign(static_cast<size_t>(node.rank(0) - 1), 1);
    shape[0] = node.shape(0)[1];
  }
  ASSIGN_OR_RETURN(const ValueRef scale, node.Blob(0, "scale", std::move(shape)));
  const Term x(node, node.input(0));
  const Term squares = Reduced("ReduceSum", Apply("Square", x), axes, true) + epsilon;
  const Term normal = x / Apply("Sqrt", squares);
  return node.SetOutput((normal * Term(node, scale)).value);
}

// The sum of squares of `size` neighbouring channels.
absl::StatusOr<ValueRef> SumAcrossChannels(LayerImporter& node, const ValueRef& squares,
                                           int64_t size) {
  std::vector<int64_t> paddings(2 * node.shape(0).size(), 0);
  paddings[2] = paddings[3] = (size - 1) / 2;
  ASSIGN_OR_RETURN(const ValueRef padded, node.Padded(squares, std::move(paddings), 0));
  ValueRef sum;
  for (int64_t i = 0; i < size; ++i) {
    ASSIGN_OR_RETURN(const ValueRef part, node.Sliced(padded, 1, i, node.shape(0)[1]));
    if (sum == nullptr) {
      sum = part;
      continue;
    }
    ASSIGN_OR_RETURN(sum, node.Emit("Add", {sum, part}));
  }
  return sum;
}

// x / (k + alpha * mean of neighbouring squares) ^ beta. The neighbours are channels, or pixels of
// a square window, with zeros around; of pixels k is 1. Source: lrn_layer.cpp.
absl::Status ImportLrn(LayerImporter& node) {
  constexpr absl::string_view kRegions[] = {"ACROSS_CHANNELS", "WITHIN_CHANNEL"};
  constexpr int64_t kMaxSize = 255;
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const int64_t size, node.BoundedOr("local_size", 5, 1));
  ASSIGN_OR_RETURN(const double alpha, node.FloatOr("alpha", 1));
  ASSIGN_OR_RETURN(const double beta, node.FloatOr("beta", 0.75));
  ASSIGN_OR_RETURN(double k, node.FloatOr("k", 1));
  ASSIGN_OR_RETURN(const int64_t region, node.ChoiceOr("norm_region", kRegions, 0));
  if (size % 2 == 0 || size > kMaxSize) {
    return node.BadAttribute(absl::InvalidArgumentError(
        absl::StrCat("parameter 'local_size' is ", size, "; it must be odd, at most ", kMaxSize)));
  }
  if (node.rank(0) != 4) return absl::InvalidArgumentError("the bottom must be an image");
  const Term x(node, node.input(0));
  const Term squares = Apply("Square", x);
  RETURN_IF_ERROR(squares.value.status());
  Term mean = squares;
  if (region == 0) {
    mean = Term(node, SumAcrossChannels(node, *squares.value, size)) *
           (alpha / static_cast<double>(size));
  } else {
    const std::vector<int64_t> pads(2, (size - 1) / 2);
    const frontend::WindowAttrs window{{size, size}, {1, 1}, {1, 1}, pads, pads};
    ASSIGN_OR_RETURN(ValueRef y, frontend::ChannelsLast(node, *squares.value));
    ASSIGN_OR_RETURN(y, AveragePooled(node, y, window, {pads, pads}));
    mean = Term(node, frontend::ChannelsFirst(node, y)) * alpha;
    k = 1;
  }
  return node.SetOutput((x / Pow(mean + k, beta)).value);
}

constexpr ImportRule kNormRules[] = {
    {"BatchNorm", ImportBatchNorm},
    {"LRN", ImportLrn},
    {"MVN", ImportMvn},
    {"Normalize", ImportNormalize},
};

}  // namespace

absl::Span<const ImportRule> NormRules() { return kNormRules; }

}  // namespace npuc::caffe
