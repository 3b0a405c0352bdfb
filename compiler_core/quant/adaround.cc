#include "compiler_core/quant/adaround.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "compiler_core/base/status.h"
#include "compiler_core/ops/window.h"

namespace npuc {
namespace {

constexpr int64_t kMomentSamples = 32;
constexpr int64_t kMaxRows = 4096;
constexpr int kMaxSweeps = 50;

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

// Adds x x' of rows to the moments.
class MomentSum {
 public:
  MomentSum(int64_t inner, int64_t groups) : moments_{inner, groups, {}} {
    moments_.matrix.assign(groups * inner * inner, 0.0);
  }
  void Add(int64_t group, absl::Span<const float> row) {
    double* const matrix = moments_.matrix.data() + group * moments_.inner * moments_.inner;
    for (int64_t i = 0; i < moments_.inner; ++i) {
      if (row[i] == 0) continue;
      double* const line = matrix + i * moments_.inner;
      const double x = row[i];
      for (int64_t j = 0; j < moments_.inner; ++j) line[j] += x * row[j];
    }
  }
  OperandMoments Take() { return std::move(moments_); }

 private:
  OperandMoments moments_;
};

// The patches of a convolution's operand, every `skip`th pixel.
void AddPatches(const WindowGeometry& window, const Shape& shape, absl::Span<const float> x,
                bool depthwise, int64_t skip, int64_t& counter, MomentSum& sum) {
  const int64_t taps = window.kernel[0] * window.kernel[1];
  const int64_t channels = shape[3];
  std::vector<float> patch(taps * channels);
  std::vector<float> row(taps);
  for (int64_t n = 0; n < shape[0]; ++n) {
    for (int64_t oh = 0; oh < window.output[0]; ++oh) {
      for (int64_t ow = 0; ow < window.output[1]; ++ow) {
        if (counter++ % skip != 0) continue;
        std::fill(patch.begin(), patch.end(), 0.0f);
        const WindowGeometry::Taps h = window.TapsInside(0, oh);
        const WindowGeometry::Taps w = window.TapsInside(1, ow);
        for (int64_t i = h.first; i < h.last; ++i) {
          for (int64_t j = w.first; j < w.last; ++j) {
            const int64_t y = window.Start(0, oh) + i * window.dilation[0];
            const int64_t z = window.Start(1, ow) + j * window.dilation[1];
            const int64_t at = ((n * shape[1] + y) * shape[2] + z) * channels;
            std::copy_n(x.data() + at, channels,
                        patch.begin() + (i * window.kernel[1] + j) * channels);
          }
        }
        if (!depthwise) {
          sum.Add(0, patch);
          continue;
        }
        for (int64_t c = 0; c < channels; ++c) {
          for (int64_t t = 0; t < taps; ++t) row[t] = patch[t * channels + c];
          sum.Add(c, row);
        }
      }
    }
  }
}

// Lowers d' G d by moving single weights between floor and ceil. steps: w / scale; q: integers.
void Descend(const double* g, int64_t inner, const std::vector<double>& steps, int64_t qmin,
             int64_t qmax, std::vector<int64_t>& q) {
  std::vector<double> gradient(inner, 0.0);  // G d
  for (int64_t i = 0; i < inner; ++i) {
    const double d = static_cast<double>(q[i]) - steps[i];
    if (d == 0) continue;
    for (int64_t j = 0; j < inner; ++j) gradient[j] += d * g[i * inner + j];
  }
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    bool changed = false;
    for (int64_t i = 0; i < inner; ++i) {
      const double floor = std::floor(steps[i]);
      const int64_t other =
          static_cast<double>(q[i]) > floor ? static_cast<int64_t>(floor) : q[i] + 1;
      if (other < qmin || other > qmax || std::fabs(static_cast<double>(other) - steps[i]) > 1) {
        continue;
      }
      const auto move = static_cast<double>(other - q[i]);
      const double change = 2 * move * gradient[i] + move * move * g[i * inner + i];
      if (!(change < -1e-12 * (std::fabs(gradient[i]) + g[i * inner + i]))) continue;
      q[i] = other;
      changed = true;
      for (int64_t j = 0; j < inner; ++j) gradient[j] += move * g[i * inner + j];
    }
    if (!changed) return;
  }
}

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
  const bool matrix = root.op == "MatMul";
  std::optional<WindowGeometry> window;
  int64_t rows = ElementCount(shape) / std::max<int64_t>(layout.inner, 1);
  if (!matrix) {
    ASSIGN_OR_RETURN(window, MakeConvWindow(root, shape, state.graph->type(root.inputs[1]).shape));
    rows = shape[0] * window->output[0] * window->output[1];
  }
  const int64_t skip = std::max<int64_t>(rows * count / kMaxRows, 1);
  int64_t counter = 0;
  FloatExecutor::Arena arena = state.executor->MakeArena();
  std::vector<std::vector<float>> inputs;
  for (int64_t i = 0; i < count; ++i) {
    RETURN_IF_ERROR(samples.Read(i * samples.size() / count, inputs));
    for (size_t k = 0; k < inputs.size(); ++k) state.executor->SetInput(arena, k, inputs[k]);
    RETURN_IF_ERROR(state.executor->Run(arena, 0, state.layers[layer].root.value(), nullptr));
    const absl::Span<const float> x = state.executor->ValueOf(arena, operand);
    if (!matrix) {
      AddPatches(*window, shape, x, depthwise, skip, counter, sum);
      continue;
    }
    for (int64_t r = 0; r < rows; ++r) {
      if (counter++ % skip == 0) sum.Add(0, x.subspan(r * layout.inner, layout.inner));
    }
  }
  return sum.Take();
}

Tensor RoundAdaptively(const QuantState& state, int layer, const QuantParams& params,
                       const Tensor& weight, const OperandMoments& moments) {
  const ChannelLayout layout = LayoutOf(state, layer);
  const std::vector<float> values = weight.ToFloats();
  std::vector<float> rounded(values.size());
  std::vector<double> steps(layout.inner);
  std::vector<int64_t> q(layout.inner);
  for (int64_t o = 0; o < layout.channels; ++o) {
    const int64_t channel = params.axis < 0 ? 0 : o;
    const double scale = params.scale[channel];
    for (int64_t k = 0; k < layout.inner; ++k) {
      const double w = values[k * layout.step + o * layout.stride];
      steps[k] = w / scale;
      q[k] = QuantizeValue(params, channel, w);
    }
    const int64_t group = moments.groups == 1 ? 0 : o;
    Descend(moments.matrix.data() + group * layout.inner * layout.inner, layout.inner, steps,
            params.qmin, params.qmax, q);
    for (int64_t k = 0; k < layout.inner; ++k) {
      rounded[k * layout.step + o * layout.stride] =
          static_cast<float>(static_cast<double>(q[k]) * scale);
    }
  }
  return QuantizeTensor(params, rounded, weight.shape());
}

}  // namespace npuc
