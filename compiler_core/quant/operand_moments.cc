#include "compiler_core/quant/operand_moments.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/split_mix.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/layers.h"
#include "compiler_core/ops/window.h"
#include "compiler_core/quant/executor/gemm.h"

namespace npuc {
namespace {

constexpr int64_t kMomentSamples = 1024;
constexpr int64_t kMaxRows = 16384;
constexpr int64_t kMostWork = int64_t{1} << 33;  // products in all

// Adds rows of operands to the moments: products of kBatch rows in float, their sums in double.
class MomentSum {
 public:
  MomentSum(int64_t inner, int64_t groups) : batches_(groups) {
    moments_.inner = inner;
    moments_.groups = groups;
    moments_.own.assign(groups * inner * inner, 0.0);
    moments_.cross.assign(groups * inner * inner, 0.0);
    moments_.own_mean.assign(groups * inner, 0.0);
    moments_.float_mean.assign(groups * inner, 0.0);
  }
  // y: with integers, x: in float.
  void Add(int64_t group, absl::Span<const float> y, absl::Span<const float> x) {
    Batch& batch = batches_[group];
    batch.y.insert(batch.y.end(), y.begin(), y.end());
    batch.x.insert(batch.x.end(), x.begin(), x.end());
    ++batch.rows;
    if (++batch.waiting == kBatch) Flush(group);
  }
  OperandMoments Take(bool centred) {
    for (int64_t group = 0; group < moments_.groups; ++group) {
      Flush(group);
      if (centred) Centre(group);
      Damp(group);
    }
    moments_.centred = centred;
    return std::move(moments_);
  }

 private:
  static constexpr int64_t kBatch = 64;
  struct Batch {
    std::vector<float> y;
    std::vector<float> x;
    int64_t waiting = 0;  // rows in y and x
    int64_t rows = 0;     // seen in all
  };

  void Flush(int64_t group) {
    Batch& batch = batches_[group];
    const int64_t inner = moments_.inner;
    std::vector<float> transposed(inner * batch.waiting);
    for (int64_t r = 0; r < batch.waiting; ++r) {
      for (int64_t i = 0; i < inner; ++i) {
        transposed[i * batch.waiting + r] = batch.y[r * inner + i];
        moments_.own_mean[group * inner + i] += batch.y[r * inner + i];
        moments_.float_mean[group * inner + i] += batch.x[r * inner + i];
      }
    }
    AddProduct(transposed, batch.y, batch.waiting, moments_.own.data() + group * inner * inner);
    AddProduct(transposed, batch.x, batch.waiting, moments_.cross.data() + group * inner * inner);
    batch.y.clear();
    batch.x.clear();
    batch.waiting = 0;
  }

  // a [inner][rows] times b [rows][inner].
  void AddProduct(const std::vector<float>& a, const std::vector<float>& b, int64_t rows,
                  double* to) const {
    const int64_t inner = moments_.inner;
    GatherGemm gemm;
    gemm.run_offsets = {0};
    gemm.run_length = rows;
    gemm.columns = inner;
    gemm.Pack([&](int64_t i, int64_t j) { return b[i * inner + j]; });
    std::vector<int64_t> bases(inner);
    for (int64_t i = 0; i < inner; ++i) bases[i] = i * rows;
    std::vector<float> product(inner * inner);
    gemm.Run(a.data(), bases, product.data(), inner);
    for (int64_t i = 0; i < inner * inner; ++i) to[i] += product[i];
  }

  // Products of the distances from the means.
  void Centre(int64_t group) {
    const int64_t inner = moments_.inner;
    const auto rows = static_cast<double>(std::max<int64_t>(batches_[group].rows, 1));
    double* const y = moments_.own_mean.data() + group * inner;
    double* const x = moments_.float_mean.data() + group * inner;
    for (int64_t i = 0; i < inner; ++i) {
      y[i] /= rows;
      x[i] /= rows;
    }
    double* own = moments_.own.data() + group * inner * inner;
    double* cross = moments_.cross.data() + group * inner * inner;
    for (int64_t i = 0; i < inner; ++i, own += inner, cross += inner) {
      for (int64_t j = 0; j < inner; ++j) own[j] -= rows * y[i] * y[j];
      for (int64_t j = 0; j < inner; ++j) cross[j] -= rows * y[i] * x[j];
    }
  }

  // A part of the mean square is added to both diagonals: few rows must not let weights that
  // nothing was seen of go anywhere. Source: Frantar et al., GPTQ, 2022, section 3.3.
  void Damp(int64_t group) {
    constexpr double kDamping = 0.1;
    const int64_t inner = moments_.inner;
    double* const own = moments_.own.data() + group * inner * inner;
    double* const cross = moments_.cross.data() + group * inner * inner;
    double sum = 0;
    for (int64_t i = 0; i < inner; ++i) sum += own[i * inner + i];
    for (int64_t i = 0; i < inner; ++i) {
      own[i * inner + i] += kDamping * sum / static_cast<double>(inner);
      cross[i * inner + i] += kDamping * sum / static_cast<double>(inner);
    }
  }

  OperandMoments moments_;
  std::vector<Batch> batches_;
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

// One row of every `skip`, at a place in them that a hash gives: at even steps rows would come from
// the same columns of every picture, borders alone where the step is a multiple of the width.
class RowTaker {
 public:
  RowTaker(const Shape& shape, const std::optional<WindowGeometry>& window, bool depthwise,
           int64_t skip, MomentSum& sum)
      : shape_(shape), window_(window), depthwise_(depthwise), skip_(skip), sum_(sum) {}

  void TakeRows(absl::Span<const float> y, absl::Span<const float> x, int64_t inner) {
    const int64_t rows = static_cast<int64_t>(x.size()) / inner;
    for (int64_t r = 0; r < rows; ++r) {
      if (!IsNextTaken()) continue;
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
          if (!IsNextTaken()) continue;
          TakePatch(*window_, shape_, y, {n, oh, ow}, of_y);
          TakePatch(*window_, shape_, x, {n, oh, ow}, of_x);
          AddPatch(of_y, of_x, taps);
        }
      }
    }
  }

 private:
  bool IsNextTaken() {
    const int64_t stretch = counter_ / skip_;
    return counter_++ % skip_ ==
           static_cast<int64_t>(Mix(static_cast<uint64_t>(stretch)) % static_cast<uint64_t>(skip_));
  }
  // Number n of SplitMix64 with seed 0.
  static uint64_t Mix(uint64_t n) { return SplitMix64(n * SplitMix64::kStep).Next(); }

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

// Whether each result channel has an element of the bias for itself, which no other layer adds.
bool BiasTakesShift(const QuantState& state, int layer) {
  const Layer& l = state.layers[layer];
  if (!l.bias.valid()) return false;
  const Tensor& bias = state.executor->constant(l.bias);
  if (bias.dtype() != DType::kFloat32) return false;
  if (bias.element_count() != LayoutOf(state, layer).channels) return false;
  return std::count_if(state.layers.begin(), state.layers.end(),
                       [&](const Layer& other) { return other.bias == l.bias; }) == 1;
}

}  // namespace

ChannelLayout LayoutOf(const QuantState& state, int layer) {
  const Node& root = state.root(layer);
  const Shape& shape = state.graph->type(state.layers[layer].weight).shape;
  if (root.op == Op::kConv2D) {
    return {shape[3], shape[0] * shape[1] * shape[2], shape[3], 1};
  }
  if (root.op == Op::kDepthwiseConv2D) return {shape[2], shape[0] * shape[1], shape[2], 1};
  const bool transposed = BoolAttrOr(root, "transpose_b", false);
  return transposed ? ChannelLayout{shape[0], shape[1], 1, shape[1]}
                    : ChannelLayout{shape[1], shape[0], shape[1], 1};
}

bool HasMoments(const QuantState& state, int layer) {
  const Layer& l = state.layers[layer];
  if (!l.weight.valid() || l.inputs.size() != 1) return false;
  const Node& root = state.root(layer);
  const Shape& input = state.graph->type(root.inputs[0]).shape;
  const Shape& weight = state.graph->type(l.weight).shape;
  if (root.op == Op::kConv2D && weight[2] != input[3]) return false;
  if (root.op == Op::kDepthwiseConv2D && weight[3] != 1) return false;
  if (root.op == Op::kMatMul &&
      (!MultipliesByMatrix(*state.graph, root) || BoolAttrOr(root, "transpose_a", false))) {
    return false;
  }
  const bool known =
      root.op == Op::kConv2D || root.op == Op::kDepthwiseConv2D || root.op == Op::kMatMul;
  return known && LayoutOf(state, layer).inner <= kMaxInner;
}

absl::StatusOr<OperandMoments> MeasureMoments(const QuantState& state, int layer,
                                              const SampleSet& samples) {
  const Node& root = state.root(layer);
  const ValueId operand = root.inputs[0];
  const Shape& shape = state.graph->type(operand).shape;
  const bool depthwise = root.op == Op::kDepthwiseConv2D;
  const ChannelLayout layout = LayoutOf(state, layer);
  MomentSum sum(layout.inner, depthwise ? layout.channels : 1);
  const int64_t count = std::min(kMomentSamples, samples.size());
  std::optional<WindowGeometry> window;
  int64_t rows = ElementCount(shape) / std::max<int64_t>(layout.inner, 1);
  const bool matrix = root.op == Op::kMatMul;
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
  OperandMoments moments = sum.Take(BiasTakesShift(state, layer));
  for (const std::vector<double>* part : {&moments.own, &moments.cross}) {
    if (std::all_of(part->begin(), part->end(), [](double x) { return std::isfinite(x); }))
      continue;
    return absl::InvalidArgumentError(
        absl::StrCat("layer '", Printable(state.layers[layer].name),
                     "': adaround needs the products of its operands, and they are not finite"));
  }
  return moments;
}

}  // namespace npuc
