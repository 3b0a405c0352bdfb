#include "compiler_core/quant/adaround.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "compiler_core/base/status.h"
#include "compiler_core/ops/window.h"

namespace npuc {
namespace {

constexpr int64_t kMomentSamples = 256;
constexpr int64_t kMaxRows = 8192;
constexpr int64_t kMostWork = int64_t{1} << 30;  // products in all
constexpr int kMaxSweeps = 50;
constexpr int kScaleParts = 11;

// Where the weights of a result channel lie: weight k of channel o is at k * step + o * stride.
struct ChannelLayout {
  int64_t channels = 0;
  int64_t inner = 0;
  int64_t step = 0;
  int64_t stride = 0;
};

ChannelLayout LayoutOf(const QuantState& state, int layer) {
  const Node& root = state.root(layer);
  const Shape& shape = state.graph->type(state.layers[layer].weight).shape;
  if (root.op == "Conv2D") {
    return {shape[3], shape[0] * shape[1] * shape[2], shape[3], 1};
  }
  if (root.op == "DepthwiseConv2D") return {shape[2], shape[0] * shape[1], shape[2], 1};
  const bool transposed = BoolAttrOr(root, "transpose_b", false);
  return transposed ? ChannelLayout{shape[0], shape[1], 1, shape[1]}
                    : ChannelLayout{shape[1], shape[0], shape[1], 1};
}

// Adds rows of operands to the moments.
class MomentSum {
 public:
  MomentSum(int64_t inner, int64_t groups) : moments_{inner, groups, {}, {}} {
    moments_.own.assign(groups * inner * inner, 0.0);
    moments_.cross.assign(groups * inner * inner, 0.0);
  }
  // y: with integers, x: in float.
  void Add(int64_t group, absl::Span<const float> y, absl::Span<const float> x) {
    const int64_t inner = moments_.inner;
    double* own = moments_.own.data() + group * inner * inner;
    double* cross = moments_.cross.data() + group * inner * inner;
    for (int64_t i = 0; i < inner; ++i, own += inner, cross += inner) {
      const double factor = y[i];
      if (factor == 0) continue;
      for (int64_t j = 0; j < inner; ++j) own[j] += factor * y[j];
      for (int64_t j = 0; j < inner; ++j) cross[j] += factor * x[j];
    }
  }
  // A part of the mean square is added to both diagonals: few rows must not let weights that
  // nothing was seen of go anywhere. Source: Frantar et al., GPTQ, 2022, section 3.3.
  OperandMoments Take() {
    constexpr double kDamping = 0.01;
    const int64_t inner = moments_.inner;
    for (int64_t group = 0; group < moments_.groups; ++group) {
      double* const own = moments_.own.data() + group * inner * inner;
      double* const cross = moments_.cross.data() + group * inner * inner;
      double sum = 0;
      for (int64_t i = 0; i < inner; ++i) sum += own[i * inner + i];
      for (int64_t i = 0; i < inner; ++i) {
        own[i * inner + i] += kDamping * sum / static_cast<double>(inner);
        cross[i * inner + i] += kDamping * sum / static_cast<double>(inner);
      }
    }
    return std::move(moments_);
  }

 private:
  OperandMoments moments_;
};

// The operands of one result pixel of a convolution; outside the operand 0.
void TakePatch(const WindowGeometry& window, const Shape& shape, absl::Span<const float> x,
               std::array<int64_t, 3> at, std::vector<float>& patch) {
  const int64_t channels = shape[3];
  std::fill(patch.begin(), patch.end(), 0.0f);
  const WindowGeometry::Taps h = window.TapsInside(0, at[1]);
  const WindowGeometry::Taps w = window.TapsInside(1, at[2]);
  for (int64_t i = h.first; i < h.last; ++i) {
    for (int64_t j = w.first; j < w.last; ++j) {
      const int64_t row = window.Start(0, at[1]) + i * window.dilation[0];
      const int64_t column = window.Start(1, at[2]) + j * window.dilation[1];
      const int64_t from = ((at[0] * shape[1] + row) * shape[2] + column) * channels;
      std::copy_n(x.data() + from, channels, patch.begin() + (i * window.kernel[1] + j) * channels);
    }
  }
}

// Every `skip`th row of one sample.
class RowTaker {
 public:
  RowTaker(const Shape& shape, const std::optional<WindowGeometry>& window, bool depthwise,
           int64_t skip, MomentSum& sum)
      : shape_(shape), window_(window), depthwise_(depthwise), skip_(skip), sum_(sum) {}

  void TakeRows(absl::Span<const float> y, absl::Span<const float> x, int64_t inner) {
    const int64_t rows = static_cast<int64_t>(x.size()) / inner;
    for (int64_t r = 0; r < rows; ++r) {
      if (counter_++ % skip_ != 0) continue;
      sum_.Add(0, y.subspan(r * inner, inner), x.subspan(r * inner, inner));
    }
  }

  void TakePatches(absl::Span<const float> y, absl::Span<const float> x) {
    const int64_t taps = window_->kernel[0] * window_->kernel[1];
    std::vector<float> of_y(taps * shape_[3]);
    std::vector<float> of_x(taps * shape_[3]);
    for (int64_t n = 0; n < shape_[0]; ++n) {
      for (int64_t oh = 0; oh < window_->output[0]; ++oh) {
        for (int64_t ow = 0; ow < window_->output[1]; ++ow) {
          if (counter_++ % skip_ != 0) continue;
          TakePatch(*window_, shape_, y, {n, oh, ow}, of_y);
          TakePatch(*window_, shape_, x, {n, oh, ow}, of_x);
          AddPatch(of_y, of_x, taps);
        }
      }
    }
  }

 private:
  void AddPatch(const std::vector<float>& y, const std::vector<float>& x, int64_t taps) {
    if (!depthwise_) return sum_.Add(0, y, x);
    const int64_t channels = shape_[3];
    std::vector<float> row_y(taps);
    std::vector<float> row_x(taps);
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t t = 0; t < taps; ++t) {
        row_y[t] = y[t * channels + c];
        row_x[t] = x[t * channels + c];
      }
      sum_.Add(c, row_y, row_x);
    }
  }

  const Shape& shape_;
  std::optional<WindowGeometry> window_;
  bool depthwise_;
  int64_t skip_;
  int64_t counter_ = 0;
  MomentSum& sum_;
};

// One result channel: its weights, and what the objective needs of them.
struct Channel {
  const double* own = nullptr;  // G [inner][inner]
  std::vector<double> weights;
  std::vector<double> target;  // C w
};

// Lowers the objective by moving single integers; returns it, less the constant. low, high: of the
// integers. Half of the gradient is kept as integers move.
double Descend(const Channel& channel, double scale, int64_t low, int64_t high,
               std::vector<int64_t>& q) {
  const auto inner = static_cast<int64_t>(channel.weights.size());
  const double* const g = channel.own;
  std::vector<double> gradient(inner);  // G v - C w
  for (int64_t i = 0; i < inner; ++i) gradient[i] = -channel.target[i];
  for (int64_t i = 0; i < inner; ++i) {
    const double v = static_cast<double>(q[i]) * scale;
    if (v == 0) continue;
    for (int64_t j = 0; j < inner; ++j) gradient[j] += v * g[i * inner + j];
  }
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    bool changed = false;
    for (int64_t i = 0; i < inner; ++i) {
      const double move = gradient[i] > 0 ? -scale : scale;
      const int64_t other = q[i] + (move > 0 ? 1 : -1);
      if (other < low || other > high) continue;
      const double change = 2 * move * gradient[i] + move * move * g[i * inner + i];
      if (!(change < -1e-9 * move * move * g[i * inner + i])) continue;
      q[i] = other;
      changed = true;
      for (int64_t j = 0; j < inner; ++j) gradient[j] += move * g[i * inner + j];
    }
    if (!changed) break;
  }
  double objective = 0;  // v' (G v - 2 C w)
  for (int64_t i = 0; i < inner; ++i) {
    objective += static_cast<double>(q[i]) * scale * (gradient[i] - channel.target[i]);
  }
  return objective;
}

// Of the parts of each channel's scale (of all channels' where they share it) the best.
class Rounder {
 public:
  // parts: of the scale that are tried, kLeastScalePart the last of them.
  Rounder(const ChannelLayout& layout, const OperandMoments& moments,
          const std::vector<float>& weights, int parts, QuantParams& params)
      : layout_(layout), moments_(moments), weights_(weights), parts_(parts), params_(params) {}

  std::vector<float> Round() {
    std::vector<float> rounded(weights_.size());
    if (params_.axis >= 0) {
      for (int64_t o = 0; o < layout_.channels; ++o) Settle(o, o + 1, o, rounded);
    } else {
      Settle(0, layout_.channels, 0, rounded);
    }
    return rounded;
  }

 private:
  // The channels [first, last), which have scale number `index`.
  void Settle(int64_t first, int64_t last, int64_t index, std::vector<float>& rounded) {
    const double widest = params_.scale[index];
    double least = HUGE_VAL;
    std::vector<std::vector<int64_t>> best;
    std::vector<Channel> channels;
    for (int64_t o = first; o < last; ++o) channels.push_back(ChannelOf(o));
    for (int part = 0; part < parts_; ++part) {
      const double scale = widest * (1 - (1 - kLeastScalePart) * part / (parts_ - 1));
      std::vector<std::vector<int64_t>> found;
      double objective = 0;
      for (const Channel& channel : channels) {
        std::vector<int64_t> q(layout_.inner);
        for (int64_t k = 0; k < layout_.inner; ++k) {
          q[k] = static_cast<int64_t>(std::clamp(std::nearbyint(channel.weights[k] / scale),
                                                 static_cast<double>(params_.qmin),
                                                 static_cast<double>(params_.qmax)));
        }
        objective += Descend(channel, scale, params_.qmin, params_.qmax, q);
        found.push_back(std::move(q));
      }
      if (!(objective < least)) continue;
      least = objective;
      best = std::move(found);
      params_.scale[index] = scale;
    }
    for (int64_t o = first; o < last; ++o) {
      for (int64_t k = 0; k < layout_.inner && !best.empty(); ++k) {
        rounded[k * layout_.step + o * layout_.stride] =
            static_cast<float>(static_cast<double>(best[o - first][k]) * params_.scale[index]);
      }
    }
  }

  Channel ChannelOf(int64_t o) const {
    const int64_t inner = layout_.inner;
    const int64_t group = moments_.groups == 1 ? 0 : o;
    Channel channel;
    channel.own = moments_.own.data() + group * inner * inner;
    channel.weights.resize(inner);
    channel.target.assign(inner, 0.0);
    for (int64_t k = 0; k < inner; ++k) {
      channel.weights[k] = weights_[k * layout_.step + o * layout_.stride];
    }
    const double* cross = moments_.cross.data() + group * inner * inner;
    for (int64_t i = 0; i < inner; ++i, cross += inner) {
      for (int64_t j = 0; j < inner; ++j) channel.target[i] += cross[j] * channel.weights[j];
    }
    return channel;
  }

  const ChannelLayout& layout_;
  const OperandMoments& moments_;
  const std::vector<float>& weights_;
  int parts_;
  QuantParams& params_;
};

}  // namespace

bool HasMoments(const QuantState& state, int layer) {
  const Layer& l = state.layers[layer];
  if (!l.weight.valid() || l.inputs.size() != 1) return false;
  const Node& root = state.root(layer);
  const Shape& input = state.graph->type(root.inputs[0]).shape;
  const Shape& weight = state.graph->type(l.weight).shape;
  if (root.op == "Conv2D" && weight[2] != input[3]) return false;
  if (root.op == "DepthwiseConv2D" && weight[3] != 1) return false;
  if (root.op == "MatMul" && (weight.size() != 2 || root.inputs[0] != l.inputs[0] ||
                              BoolAttrOr(root, "transpose_a", false))) {
    return false;
  }
  const bool known = root.op == "Conv2D" || root.op == "DepthwiseConv2D" || root.op == "MatMul";
  return known && LayoutOf(state, layer).inner <= kMaxInner;
}

absl::StatusOr<OperandMoments> MeasureMoments(const QuantState& state, int layer,
                                              const SampleSet& samples) {
  const Node& root = state.root(layer);
  const ValueId operand = root.inputs[0];
  const Shape& shape = state.graph->type(operand).shape;
  const bool depthwise = root.op == "DepthwiseConv2D";
  const ChannelLayout layout = LayoutOf(state, layer);
  MomentSum sum(layout.inner, depthwise ? layout.channels : 1);
  const int64_t count = std::min(kMomentSamples, samples.size());
  std::optional<WindowGeometry> window;
  int64_t rows = ElementCount(shape) / std::max<int64_t>(layout.inner, 1);
  const bool matrix = root.op == "MatMul";
  if (!matrix) {
    ASSIGN_OR_RETURN(window, MakeConvWindow(root, shape, state.graph->type(root.inputs[1]).shape));
    rows = shape[0] * window->output[0] * window->output[1];
  }
  const int64_t work = layout.inner * layout.inner * (depthwise ? layout.channels : 1);
  const int64_t most_rows =
      std::clamp<int64_t>(kMostWork / std::max<int64_t>(work, 1), 512, kMaxRows);
  RowTaker taker(shape, window, depthwise, std::max<int64_t>(rows * count / most_rows, 1), sum);
  FloatExecutor::Arena in_float = state.executor->MakeArena();
  FloatExecutor::Arena in_integers = state.quantized->MakeArena();
  const int stop = state.layers[layer].root.value();
  std::vector<std::vector<float>> inputs;
  for (int64_t i = 0; i < count; ++i) {
    RETURN_IF_ERROR(samples.Read(i * samples.size() / count, inputs));
    for (size_t k = 0; k < inputs.size(); ++k) {
      state.executor->SetInput(in_float, k, inputs[k]);
      state.quantized->SetInput(in_integers, k, inputs[k]);
    }
    RETURN_IF_ERROR(state.executor->Run(in_float, 0, stop, nullptr));
    RETURN_IF_ERROR(state.quantized->Run(in_integers, 0, stop, nullptr));
    const absl::Span<const float> x = state.executor->ValueOf(in_float, operand);
    const absl::Span<const float> y = state.quantized->ValueOf(in_integers, operand);
    if (matrix) {
      taker.TakeRows(y, x, layout.inner);
    } else {
      taker.TakePatches(y, x);
    }
  }
  return sum.Take();
}

Tensor RoundAdaptively(const QuantState& state, int layer, const Tensor& weight,
                       const OperandMoments& moments, QuantParams& params) {
  const ChannelLayout layout = LayoutOf(state, layer);
  const std::vector<float> values = weight.ToFloats();
  // A power of two stays one.
  const int parts = state.fixed_point ? 2 : kScaleParts;
  const std::vector<float> rounded = Rounder(layout, moments, values, parts, params).Round();
  return QuantizeTensor(params, rounded, weight.shape());
}

}  // namespace npuc
