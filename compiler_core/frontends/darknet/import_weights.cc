// Layers with weights of their own.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/windows.h"
#include "compiler_core/frontends/darknet/layer_import.h"

namespace npuc::darknet {
namespace {

// Scales, mean and variance, which lie in a row in the file.
absl::Status TakeNorm(LayerImporter& node, absl::string_view prefix, int64_t count, Norm& norm) {
  ASSIGN_OR_RETURN(norm.scales, node.Weights(absl::StrCat(prefix, "scales"), {count}));
  ASSIGN_OR_RETURN(norm.mean, node.Weights(absl::StrCat(prefix, "mean"), {count}));
  ASSIGN_OR_RETURN(norm.variance, node.Weights(absl::StrCat(prefix, "variance"), {count}));
  return absl::OkStatus();
}

// x [..., C] normalised as Darknet does on a processor: the original divides by
// sqrt(variance) + 1e-6, the fork by sqrt(variance + 1e-5). Sources: blas.c, normalize_cpu, of
// both, and the fork's network.c, fuse_conv_batchnorm. (OpenCV has 1e-6 under the root for both.)
absl::StatusOr<ValueRef> Normalized(LayerImporter& node, const ValueRef& x, const Norm& norm) {
  std::vector<float> values = norm.variance->constant->ToFloats();
  for (size_t i = 0; i < values.size(); ++i) {
    if (!(values[i] >= 0)) {
      return node.Fail(DiagnosticKind::kBadTensor,
                       absl::StrCat("variance ", i, " of ", values.size(), " is ", values[i],
                                    ", which no data can have"),
                       "give the .weights that were trained with this .cfg");
    }
    if (node.dialect() == Dialect::kFork) continue;
    values[i] = static_cast<float>(std::pow(std::sqrt(static_cast<double>(values[i])) + 1e-6, 2));
  }
  const Shape shape = norm.variance->type.shape;
  const ValueRef variance =
      frontend::ConstantValue(Tensor::FromFloats(shape, values), norm.variance->source);
  return node.Emit("BatchNorm", {x, norm.scales, norm.biases, norm.mean, variance},
                   {{"epsilon", node.dialect() == Dialect::kFork ? 1e-5 : 0.0}});
}

struct Convolution {
  int64_t filters = 1;
  int64_t size = 1;
  int64_t stride_x = 1;
  int64_t stride_y = 1;
  int64_t dilation = 1;
  int64_t padding = 0;
  int64_t groups = 1;
  bool batch_normalize = false;
  bool flipped = false;
  std::string activation;

  frontend::WindowAttrs Window() const {
    const int64_t pad = padding * dilation;
    return {.kernel = {size, size},
            .strides = {stride_y, stride_x},
            .dilations = {dilation, dilation},
            .before = {pad, pad},
            .after = {pad, pad}};
  }
  // The result of an image's side, as Darknet computes it: as if the window had no gaps.
  int64_t ResultSide(int64_t side, int64_t stride) const {
    return side + 2 * padding < size ? 0 : (side + 2 * padding - size) / stride + 1;
  }
};

Convolution ReadConvolution(LayerOptions& options) {
  Convolution c;
  c.filters = options.Int("filters", 1, 1);
  c.size = options.Int("size", 1, 1);
  const int64_t stride = options.Int("stride", 1, 1);
  c.stride_x = options.Int("stride_x", stride, 1);
  c.stride_y = options.Int("stride_y", stride, 1);
  c.dilation = options.Int("dilation", 1, 1);
  if (c.size == 1) c.dilation = 1;
  c.padding = options.Int("padding", 0);
  if (options.Flag("pad")) c.padding = c.size / 2;
  c.groups = options.Int("groups", 1, 1);
  c.batch_normalize = options.Flag("batch_normalize");
  c.flipped = options.Flag("flipped");
  c.activation = ReadActivation(options, "logistic");
  return c;
}

void PlanConvolutional(LayerPlanner& planner) {
  LayerOptions& options = planner.options();
  const Convolution c = ReadConvolution(options);
  options.Refuse("binary", "weights of one bit are not read");
  options.Refuse("xnor", "weights of one bit are not read");
  options.Refuse("cbn", "statistics of several batches are not read");
  options.Refuse("antialiasing", "the blur behind the layer is not computed");
  options.Refuse("share_index", "weights of another layer are not read");
  options.Refuse("deform", "turned weights are not computed");
  const Size in = planner.ImageIn();
  if (in.c % c.groups != 0 || c.filters % c.groups != 0) {
    planner.FailSize(absl::StrCat(c.groups, " groups do not divide ", in.c, " channels and ",
                                  c.filters, " filters"));
  }
  const int64_t h = c.ResultSide(in.h, c.stride_y);
  const int64_t w = c.ResultSide(in.w, c.stride_x);
  // The fork's own buffers do not fit where these differ.
  const frontend::WindowAttrs window = c.Window();
  const auto side = [&](int64_t size, size_t i) {
    const int64_t room = size + 2 * window.before[i] - window.Extent(i);
    return room < 0 ? 0 : room / window.strides[i] + 1;
  };
  if (side(in.h, 0) != h || side(in.w, 1) != w) {
    planner.FailMode("dilation", absl::StrCat("dilation ", c.dilation, " with padding ", c.padding,
                                              " does not fit a window of ", c.size));
  }
  planner.SetOut(Size::Image(c.filters, h, w));
  planner.AddWeights({c.batch_normalize ? 4 : 1, c.filters});
  planner.AddWeights({c.filters, in.c / c.groups, c.size, c.size});
}

absl::StatusOr<ValueRef> FinishConvolution(LayerImporter& node, const Convolution& c,
                                           absl::StatusOr<ValueRef> sums, const Norm& norm) {
  ASSIGN_OR_RETURN(ValueRef y, std::move(sums));
  if (c.batch_normalize) {
    ASSIGN_OR_RETURN(y, Normalized(node, y, norm));
  }
  ASSIGN_OR_RETURN(y, node.Activated(y, c.activation, 3));
  return ChannelsFirst(node, y);
}

absl::StatusOr<Norm> TakeBiases(LayerImporter& node, const Convolution& c) {
  Norm norm;
  ASSIGN_OR_RETURN(norm.biases, node.Weights("biases", {c.filters}));
  if (c.batch_normalize) RETURN_IF_ERROR(TakeNorm(node, "", c.filters, norm));
  return norm;
}

absl::Status ImportConvolutional(LayerImporter& node) {
  const Convolution c = ReadConvolution(node.options());
  ASSIGN_OR_RETURN(const Norm norm, TakeBiases(node, c));
  const int64_t channels = node.in().c / c.groups;
  const Shape shape = {c.filters, channels, c.size, c.size};
  const int64_t taps = channels * c.size * c.size;
  ASSIGN_OR_RETURN(ValueRef weight,
                   node.Weights("weights", c.flipped ? Shape{taps, c.filters} : shape));
  if (c.flipped) {
    ASSIGN_OR_RETURN(weight, node.Transposed(weight, {1, 0}));
    ASSIGN_OR_RETURN(weight, node.Reshaped(weight, shape));
  }
  ASSIGN_OR_RETURN(weight, WeightLast(node, weight));
  ASSIGN_OR_RETURN(const ValueRef x, ChannelsLast(node, node.input(0)));
  return node.SetOutput(FinishConvolution(
      node, c, Convolved(node, x, weight, c.batch_normalize ? nullptr : norm.biases, c.Window()),
      norm));
}

void PlanDeconvolutional(LayerPlanner& planner) {
  const Convolution c = ReadConvolution(planner.options());
  const Size in = planner.ImageIn();
  const auto side = [&](int64_t size) { return (size - 1) * c.stride_x + c.size - 2 * c.padding; };
  planner.SetOut(
      Size::Image(c.filters, std::max<int64_t>(side(in.h), 0), std::max<int64_t>(side(in.w), 0)));
  if (c.groups != 1 || c.dilation != 1 || c.stride_x != c.stride_y || c.flipped) {
    planner.FailMode("", "groups, dilation, flipped or two strides in a transposed convolution");
  }
  if (c.stride_x > 64) planner.FailMode("stride", "a stride above 64");
  planner.AddWeights({c.batch_normalize ? 4 : 1, c.filters});
  planner.AddWeights({in.c, c.filters, c.size, c.size});
}

absl::Status ImportDeconvolutional(LayerImporter& node) {
  const Convolution c = ReadConvolution(node.options());
  ASSIGN_OR_RETURN(const Norm norm, TakeBiases(node, c));
  ASSIGN_OR_RETURN(const ValueRef weight,
                   node.Weights("weights", {node.in().c, c.filters, c.size, c.size}));
  ASSIGN_OR_RETURN(const ValueRef x, ChannelsLast(node, node.input(0)));
  const ValueRef bias = c.batch_normalize ? nullptr : norm.biases;
  return node.SetOutput(
      FinishConvolution(node, c, ConvolvedBack(node, x, weight, bias, 1, c.Window()), norm));
}

Connected ReadConnected(LayerOptions& options, const Size& in) {
  return {.name = "",
          .in = in.count,
          .out = options.Int("output", 1, 1),
          .batch_normalize = options.Flag("batch_normalize"),
          .activation = ReadActivation(options, "logistic")};
}

void PlanConnected(LayerPlanner& planner) {
  const Connected c = ReadConnected(planner.options(), planner.in());
  planner.SetOut(Size::Image(c.out, 1, 1));
  planner.AddWeights({c.out, c.in});
  planner.AddWeights({c.batch_normalize ? 4 : 1, c.out});
}

absl::Status ImportConnected(LayerImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.Row(node.input(0)));
  const Connected connected = ReadConnected(node.options(), node.in());
  ASSIGN_OR_RETURN(const ConnectedWeights weights, TakeConnected(node, connected));
  ASSIGN_OR_RETURN(const ValueRef y, ApplyConnected(node, x, connected, weights));
  return node.SetOutput(node.AsOut(y));
}

// [batchnorm]: the fork stores biases in front, the original has none.
void PlanBatchNorm(LayerPlanner& planner) {
  const Size in = planner.ImageIn();
  planner.AddWeights({planner.dialect() == Dialect::kFork ? 4 : 3, in.c});
}

absl::Status ImportBatchNorm(LayerImporter& node) {
  const int64_t channels = node.in().c;
  Norm norm;
  norm.biases = node.Floats({channels}, std::vector<double>(static_cast<size_t>(channels), 0),
                            DType::kFloat32);
  if (node.dialect() == Dialect::kFork) {
    ASSIGN_OR_RETURN(norm.biases, node.Weights("biases", {channels}));
  }
  RETURN_IF_ERROR(TakeNorm(node, "", channels, norm));
  ASSIGN_OR_RETURN(const ValueRef x, ChannelsLast(node, node.input(0)));
  ASSIGN_OR_RETURN(const ValueRef y, Normalized(node, x, norm));
  return node.SetOutput(ChannelsFirst(node, y));
}

// [local]: a convolution with weights of its own at each place.
struct Local {
  int64_t filters = 1;
  int64_t size = 1;
  int64_t stride = 1;
  int64_t pad = 0;  // places, in spite of its name in [convolutional]
  std::string activation;
};

Local ReadLocal(LayerOptions& options) {
  Local local;
  local.filters = options.Int("filters", 1, 1);
  local.size = options.Int("size", 1, 1, 64);
  local.stride = options.Int("stride", 1, 1);
  local.pad = options.Int("pad", 0);
  local.activation = ReadActivation(options, "logistic");
  return local;
}

void PlanLocal(LayerPlanner& planner) {
  const Local local = ReadLocal(planner.options());
  const Size in = planner.ImageIn();
  // Two formulas of Darknet's, which must agree: of the result, and of the places that it reads.
  const auto side = [&](int64_t size) {
    const int64_t room = size - (local.pad != 0 ? 1 : local.size);
    const int64_t read = size + 2 * local.pad - local.size;
    return room == read && room >= 0 ? room / local.stride + 1 : 0;
  };
  planner.SetOut(Size::Image(local.filters, side(in.h), side(in.w)));
  if (side(in.h) * side(in.w) == 0) {
    planner.FailMode("pad",
                     absl::StrCat("pad ", local.pad, " does not fit a window of ", local.size));
  }
  const int64_t places = side(in.h) * side(in.w);
  planner.AddWeights({places, local.filters});
  planner.AddWeights({places, local.filters, in.c, local.size, local.size});
}

// Each place's window as a row: [places, batch, c * size * size].
absl::StatusOr<ValueRef> WindowRows(LayerImporter& node, const Local& local) {
  const Size& out = node.out();
  const int64_t pad = local.pad;
  ASSIGN_OR_RETURN(const ValueRef padded,
                   node.Padded(node.input(0), {0, 0, 0, 0, pad, pad, pad, pad}, 0));
  std::vector<ValueRef> taps;
  for (int64_t y = 0; y < local.size; ++y) {
    ASSIGN_OR_RETURN(const ValueRef rows,
                     node.Sliced(padded, 2, y, out.h, out.h == 1 ? 1 : local.stride));
    for (int64_t x = 0; x < local.size; ++x) {
      ASSIGN_OR_RETURN(const ValueRef tap,
                       node.Sliced(rows, 3, x, out.w, out.w == 1 ? 1 : local.stride));
      ASSIGN_OR_RETURN(taps.emplace_back(),
                       node.Reshaped(tap, {node.batch(), node.in().c, 1, out.h * out.w}));
    }
  }
  ASSIGN_OR_RETURN(ValueRef all, node.Joined(taps, 2));
  const int64_t values = node.in().c * local.size * local.size;
  ASSIGN_OR_RETURN(all, node.Reshaped(all, {node.batch(), values, out.h * out.w}));
  return node.Transposed(all, {2, 0, 1});
}

absl::Status ImportLocal(LayerImporter& node) {
  const Local local = ReadLocal(node.options());
  const Size& out = node.out();
  const int64_t places = out.h * out.w;
  const int64_t values = node.in().c * local.size * local.size;
  ASSIGN_OR_RETURN(const ValueRef biases, node.Weights("biases", {local.filters, out.h, out.w}));
  ASSIGN_OR_RETURN(ValueRef weight, node.Weights("weights", {places, local.filters, values}));
  ASSIGN_OR_RETURN(weight, node.Transposed(weight, {0, 2, 1}));
  ASSIGN_OR_RETURN(const ValueRef rows, WindowRows(node, local));
  ASSIGN_OR_RETURN(ValueRef y, node.Emit("MatMul", {rows, weight}));  // [places,batch,filters]
  ASSIGN_OR_RETURN(y, node.Transposed(y, {1, 2, 0}));
  ASSIGN_OR_RETURN(y, node.AsOut(y));
  ASSIGN_OR_RETURN(y, node.Emit("Add", {y, biases}));
  return node.SetOutput(node.Activated(y, local.activation, 1));
}

constexpr LayerType kWeightTypes[] = {
    {"batchnorm", PlanBatchNorm, ImportBatchNorm, LayerRole::kComputes, true},
    {"connected", PlanConnected, ImportConnected},
    {"convolutional", PlanConvolutional, ImportConvolutional},
    {"deconvolutional", PlanDeconvolutional, ImportDeconvolutional},
    {"local", PlanLocal, ImportLocal},
};

}  // namespace

absl::Span<const LayerType> WeightTypes() { return kWeightTypes; }

// Biases, weights, and then the normalisation: another order than a convolution's.
absl::StatusOr<ConnectedWeights> TakeConnected(LayerImporter& node, const Connected& connected) {
  const std::string prefix = connected.name.empty() ? "" : absl::StrCat(connected.name, "_");
  const int64_t in = connected.in;
  const int64_t out = connected.out;
  const bool turned = node.has_turned_rows();
  ConnectedWeights weights;
  ASSIGN_OR_RETURN(weights.norm.biases, node.Weights(absl::StrCat(prefix, "biases"), {out}));
  ASSIGN_OR_RETURN(weights.weight, node.Weights(absl::StrCat(prefix, "weights"),
                                                turned ? Shape{in, out} : Shape{out, in}));
  if (!turned) {
    ASSIGN_OR_RETURN(weights.weight, node.Transposed(weights.weight, {1, 0}));
  }
  if (connected.batch_normalize) RETURN_IF_ERROR(TakeNorm(node, prefix, out, weights.norm));
  return weights;
}

absl::StatusOr<ValueRef> ApplyConnected(LayerImporter& node, const ValueRef& x,
                                        const Connected& connected,
                                        const ConnectedWeights& weights) {
  ASSIGN_OR_RETURN(ValueRef y, node.Emit("MatMul", {x, weights.weight}));
  if (connected.batch_normalize) {
    ASSIGN_OR_RETURN(y, Normalized(node, y, weights.norm));
  } else {
    ASSIGN_OR_RETURN(y, node.Emit("Add", {y, weights.norm.biases}));
  }
  return node.Activated(y, connected.activation, 1);
}

}  // namespace npuc::darknet
