#include "compiler_core/quant/executor/kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "compiler_core/base/status.h"
#include "compiler_core/ops/numeric.h"
#include "compiler_core/ops/shape_util.h"
#include "compiler_core/ops/window.h"
#include "compiler_core/quant/executor/gemm.h"

namespace npuc {
namespace {

using Bases = std::vector<int64_t>;

// No fast kernel for this form of the node: the caller takes the Reference.
Kernel None() { return {}; }

bool AllFloat32(const OpView& view) {
  for (const TensorType& type : view.inputs) {
    if (type.dtype != DType::kFloat32) return false;
  }
  return true;
}

// --- Convolution ---------------------------------------------------------------------------------

// An image [h,w,c] with its padding written out, so that every window is whole.
struct PaddedImage {
  int64_t height = 0;  // padded
  int64_t width = 0;
  int64_t channels = 0;
  bool padded = false;
  WindowGeometry window;

  explicit PaddedImage(const WindowGeometry& geometry, int64_t c) : channels(c), window(geometry) {
    height = window.input[0] + window.pad_before[0] + window.pad_after[0];
    width = window.input[1] + window.pad_before[1] + window.pad_after[1];
    padded = height != window.input[0] || width != window.input[1];
  }
  int64_t elements() const { return padded ? height * width * channels : 0; }

  const float* Pad(const float* x, float* room) const {
    if (!padded) return x;
    std::fill_n(room, elements(), 0.0f);
    const int64_t row = window.input[1] * channels;
    for (int64_t y = 0; y < window.input[0]; ++y) {
      float* to = room + ((y + window.pad_before[0]) * width + window.pad_before[1]) * channels;
      std::copy_n(x + y * row, row, to);
    }
    return room;
  }
  // Where each result pixel's window begins.
  Bases PixelBases() const {
    Bases bases;
    bases.reserve(window.output[0] * window.output[1]);
    for (int64_t h = 0; h < window.output[0]; ++h) {
      for (int64_t w = 0; w < window.output[1]; ++w) {
        bases.push_back((h * window.stride[0] * width + w * window.stride[1]) * channels);
      }
    }
    return bases;
  }
  Bases TapOffsets() const {
    Bases offsets;
    for (int64_t i = 0; i < window.kernel[0]; ++i) {
      for (int64_t j = 0; j < window.kernel[1]; ++j) {
        offsets.push_back((i * window.dilation[0] * width + j * window.dilation[1]) * channels);
      }
    }
    return offsets;
  }
};

// weight [kh,kw,c/groups,o] as [tap][channel of the group][o].
struct Convolution {
  PaddedImage image;
  std::vector<GatherGemm> groups;
  Bases bases;
  int64_t images = 0;
  int64_t out_channels = 0;

  void Run(const KernelArgs& args) const {
    const int64_t pixels = static_cast<int64_t>(bases.size());
    const int64_t in_elements = image.window.input[0] * image.window.input[1] * image.channels;
    for (int64_t n = 0; n < images; ++n) {
      const float* x = image.Pad(args.inputs[0] + n * in_elements, args.scratch);
      float* out = args.outputs[0] + n * pixels * out_channels;
      int64_t column = 0;
      for (const GatherGemm& group : groups) {
        group.Run(x, bases, out + column, out_channels);
        column += group.columns;
      }
    }
  }
};

GatherGemm MakeGroup(const PaddedImage& image, const std::vector<float>& weight,
                     const std::vector<float>& bias, const Shape& shape, int64_t group,
                     int64_t group_columns) {
  const int64_t group_in = shape[2];
  const int64_t out = shape[3];
  GatherGemm gemm;
  gemm.columns = group_columns;
  const bool whole_rows = group_in == image.channels && image.window.dilation[1] == 1;
  if (whole_rows) {  // the taps of a kernel's row lie side by side
    gemm.run_length = shape[1] * group_in;
    for (int64_t i = 0; i < shape[0]; ++i) {
      gemm.run_offsets.push_back(i * image.window.dilation[0] * image.width * image.channels);
    }
  } else {
    gemm.run_length = group_in;
    gemm.run_offsets = image.TapOffsets();
    for (int64_t& offset : gemm.run_offsets) offset += group * group_in;
  }
  // Either way inner index i is tap * group_in + channel.
  gemm.Pack([&](int64_t i, int64_t j) { return weight[i * out + group * group_columns + j]; });
  if (!bias.empty()) {
    gemm.bias.assign(bias.begin() + group * group_columns,
                     bias.begin() + (group + 1) * group_columns);
  }
  return gemm;
}

absl::StatusOr<Kernel> MakeConvolution(const OpView& view) {
  if (view.constants[1] == nullptr) return None();
  const bool has_bias = view.inputs.size() > 2;
  if (has_bias && view.constants[2] == nullptr) return None();
  const Shape& shape = view.inputs[0].shape;
  Shape weight_shape = view.inputs[1].shape;
  ASSIGN_OR_RETURN(const WindowGeometry window, MakeConvWindow(view.node, shape, weight_shape));
  const PaddedImage image(window, shape[3]);
  const std::vector<float> weight = view.constants[1]->ToFloats();
  const std::vector<float> bias = has_bias ? view.constants[2]->ToFloats() : std::vector<float>();
  const int64_t images = shape[0];
  if (view.node.op == Op::kDepthwiseConv2D && weight_shape[3] == 1) {
    auto rows = std::make_shared<DepthwiseRows>();
    rows->tap_offsets = image.TapOffsets();
    rows->channels = shape[3];
    rows->weight = weight;
    rows->bias = bias;
    const Bases bases = image.PixelBases();
    const int64_t in_elements = ElementCount(shape) / std::max<int64_t>(images, 1);
    const int64_t out_elements = static_cast<int64_t>(bases.size()) * shape[3];
    return Kernel{[=](const KernelArgs& args) {
                    for (int64_t n = 0; n < images; ++n) {
                      const float* x = image.Pad(args.inputs[0] + n * in_elements, args.scratch);
                      rows->Run(x, bases, args.outputs[0] + n * out_elements);
                    }
                    return absl::OkStatus();
                  },
                  image.elements()};
  }
  if (view.node.op == Op::kDepthwiseConv2D) {
    weight_shape = {weight_shape[0], weight_shape[1], 1, weight_shape[2] * weight_shape[3]};
  }
  const int64_t group_count = shape[3] / weight_shape[2];
  auto conv = std::make_shared<Convolution>(
      Convolution{image, {}, image.PixelBases(), images, weight_shape[3]});
  for (int64_t g = 0; g < group_count; ++g) {
    conv->groups.push_back(
        MakeGroup(image, weight, bias, weight_shape, g, weight_shape[3] / group_count));
  }
  return Kernel{[conv](const KernelArgs& args) {
                  conv->Run(args);
                  return absl::OkStatus();
                },
                image.elements()};
}

// a [..., m, k] times a constant b [k, n].
absl::StatusOr<Kernel> MakeMatMul(const OpView& view) {
  const Tensor* b = view.constants[1];
  if (b == nullptr || b->shape().size() != 2 || BoolAttrOr(view.node, "transpose_a", false)) {
    return None();
  }
  const bool transposed = BoolAttrOr(view.node, "transpose_b", false);
  const int64_t inner = b->shape()[transposed ? 1 : 0];
  const std::vector<float> weight = b->ToFloats();
  auto gemm = std::make_shared<GatherGemm>();
  gemm->columns = b->shape()[transposed ? 0 : 1];
  gemm->run_length = inner;
  gemm->run_offsets = {0};
  gemm->Pack([&](int64_t i, int64_t j) {
    return transposed ? weight[j * inner + i] : weight[i * gemm->columns + j];
  });
  const int64_t rows = ElementCount(
      absl::MakeConstSpan(view.inputs[0].shape).first(view.inputs[0].shape.size() - 1));
  Bases bases(rows);
  for (int64_t i = 0; i < rows; ++i) bases[i] = i * inner;
  return Kernel{[gemm, bases](const KernelArgs& args) {
                  gemm->Run(args.inputs[0], bases, args.outputs[0], gemm->columns);
                  return absl::OkStatus();
                },
                0};
}

// --- Pooling -------------------------------------------------------------------------------------

// Adds (or takes the greater of) whole pixels, all channels at once, in row-major order of taps.
template <bool kMax>
void PoolPixel(const WindowGeometry& window, const float* image, int64_t channels, int64_t oh,
               int64_t ow, float* out) {
  const WindowGeometry::Taps h = window.TapsInside(0, oh);
  const WindowGeometry::Taps w = window.TapsInside(1, ow);
  bool first = true;
  for (int64_t i = h.first; i < h.last; ++i) {
    for (int64_t j = w.first; j < w.last; ++j) {
      const float* x =
          image +
          ((window.Start(0, oh) + i) * window.input[1] + window.Start(1, ow) + j) * channels;
      if (first) {
        std::copy_n(x, channels, out);
      } else if constexpr (kMax) {
        for (int64_t c = 0; c < channels; ++c) {
          if (x[c] > out[c] || std::isnan(x[c])) out[c] = x[c];
        }
      } else {
        for (int64_t c = 0; c < channels; ++c) out[c] += x[c];
      }
      first = false;
    }
  }
  if constexpr (!kMax) {
    const float count = static_cast<float>((h.last - h.first) * (w.last - w.first));
    for (int64_t c = 0; c < channels; ++c) out[c] /= count;
  }
}

template <bool kMax>
absl::StatusOr<Kernel> MakePool(const OpView& view) {
  const Shape shape = view.inputs[0].shape;
  ASSIGN_OR_RETURN(const WindowGeometry window, MakePoolWindow(view.node, shape));
  return Kernel{[=](const KernelArgs& args) {
                  const int64_t in_elements = shape[1] * shape[2] * shape[3];
                  float* out = args.outputs[0];
                  for (int64_t n = 0; n < shape[0]; ++n) {
                    for (int64_t h = 0; h < window.output[0]; ++h) {
                      for (int64_t w = 0; w < window.output[1]; ++w, out += shape[3]) {
                        PoolPixel<kMax>(window, args.inputs[0] + n * in_elements, shape[3], h, w,
                                        out);
                      }
                    }
                  }
                  return absl::OkStatus();
                },
                0};
}

// --- Element by element --------------------------------------------------------------------------

template <typename F>
Kernel Unary(int64_t count, F f) {
  return {[=](const KernelArgs& args) {
            const float* x = args.inputs[0];
            float* out = args.outputs[0];
            for (int64_t i = 0; i < count; ++i) out[i] = f(x[i]);
            return absl::OkStatus();
          },
          0};
}

// Operands of one shape, or one of them repeated along the other's leading dimensions.
template <typename F>
Kernel Binary(const OpView& view, F f) {
  const int64_t count = view.outputs[0].element_count();
  const int64_t a_count = view.inputs[0].element_count();
  const int64_t b_count = view.inputs[1].element_count();
  // Leading ones and then the result's own trailing dimensions: the operand repeats as a block.
  const auto repeats = [&](const Shape& shape) {
    const Shape& out = view.outputs[0].shape;
    size_t i = 0;
    while (i < shape.size() && shape[i] == 1) ++i;
    const size_t left = shape.size() - i;
    return left <= out.size() && std::equal(shape.begin() + i, shape.end(), out.end() - left);
  };
  if (count == 0 || !repeats(view.inputs[0].shape) || !repeats(view.inputs[1].shape)) return None();
  const bool a_full = a_count == count;
  const bool b_full = b_count == count;
  if (!a_full && !b_full) return None();
  const int64_t block = std::min(a_count, b_count);
  return {[=](const KernelArgs& args) {
            const float* a = args.inputs[0];
            const float* b = args.inputs[1];
            float* out = args.outputs[0];
            for (int64_t at = 0; at < count; at += block) {
              const float* left = a_full ? a + at : a;
              const float* right = b_full ? b + at : b;
              for (int64_t i = 0; i < block; ++i) out[at + i] = f(left[i], right[i]);
            }
            return absl::OkStatus();
          },
          0};
}

Kernel Copy(int64_t count) {
  return {[=](const KernelArgs& args) {
            std::copy_n(args.inputs[0], count, args.outputs[0]);
            return absl::OkStatus();
          },
          0};
}

absl::StatusOr<Kernel> FastKernel(const OpView& view) {
  const Op op = view.node.op;
  if (view.outputs.size() != 1 || view.outputs[0].element_count() == 0) return None();
  const int64_t count = view.outputs[0].element_count();
  if (op == Op::kConv2D || op == Op::kDepthwiseConv2D) return MakeConvolution(view);
  if (op == Op::kMatMul) return MakeMatMul(view);
  if (op == Op::kMaxPool) return MakePool<true>(view);
  if (op == Op::kAvgPool) return MakePool<false>(view);
  if (op == Op::kIdentity || op == Op::kReshape) return Copy(count);
  if (op == Op::kRelu) return Unary(count, [](float x) { return x < 0 ? 0.0f : x; });
  if (op == Op::kRelu6)
    return Unary(count, [](float x) { return x < 0 ? 0.0f : (x > 6 ? 6.0f : x); });
  if (op == Op::kNeg) return Unary(count, [](float x) { return -x; });
  if (op == Op::kSquare) return Unary(count, [](float x) { return x * x; });
  if (op == Op::kAdd) return Binary(view, [](float a, float b) { return a + b; });
  if (op == Op::kSub) return Binary(view, [](float a, float b) { return a - b; });
  if (op == Op::kMaximum) {
    return Binary(view, [](float a, float b) { return std::isnan(a) || a > b ? a : b; });
  }
  if (op == Op::kMinimum) {
    return Binary(view, [](float a, float b) { return std::isnan(a) || a < b ? a : b; });
  }
  if (op == Op::kMul) return Binary(view, [](float a, float b) { return a * b; });
  return None();
}

}  // namespace

Kernel MakeReferenceKernel(const OpView& view) {
  const OpDef* def = &DefOf(view.node.op);
  const Node* node = &view.node;
  std::vector<TensorType> inputs(view.inputs.begin(), view.inputs.end());
  std::vector<Tensor> constants;
  for (const Tensor* constant : view.constants) {
    constants.push_back(constant == nullptr ? Tensor() : *constant);
  }
  return {
      [=](const KernelArgs& args) -> absl::Status {
        std::vector<Tensor> operands;
        for (size_t i = 0; i < inputs.size(); ++i) {
          if (constants[i].dtype() != DType::kInvalid) {
            operands.push_back(constants[i]);
          } else {
            operands.push_back(Tensor::FromFloats(
                inputs[i].shape, absl::MakeConstSpan(args.inputs[i], inputs[i].element_count())));
          }
        }
        ASSIGN_OR_RETURN(const std::vector<Tensor> results, def->reference(*node, operands));
        for (size_t k = 0; k < results.size(); ++k) {
          const absl::Span<const uint8_t> bytes = results[k].bytes();
          if (!bytes.empty()) std::memcpy(args.outputs[k], bytes.data(), bytes.size());
        }
        return absl::OkStatus();
      },
      0};
}

absl::StatusOr<Kernel> MakeKernel(const OpView& view) {
  if (AllFloat32(view)) {
    ASSIGN_OR_RETURN(Kernel fast, FastKernel(view));
    if (fast.run != nullptr) return fast;
  }
  return MakeReferenceKernel(view);
}

}  // namespace npuc
