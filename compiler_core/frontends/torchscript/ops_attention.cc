// Attention as PyTorch's fast path for inference has it: what tracing nn.MultiheadAttention and
// nn.TransformerEncoderLayer in eval mode leaves. The definitions are those of torch.nn's modules.
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/activations.h"
#include "compiler_core/frontends/torchscript/choice.h"
#include "compiler_core/frontends/torchscript/layers.h"
#include "compiler_core/frontends/torchscript/op_call.h"
#include "compiler_core/frontends/torchscript/torch_type.h"

namespace npuc::pt {
namespace {

// The three projections in one [3 D, D], the one of the result [D, D], biases [3 D] and [D].
struct AttentionWeights {
  ValueRef in_weight;
  ValueRef in_bias;
  ValueRef out_weight;
  ValueRef out_bias;
};

struct Attended {
  ValueRef result;  // [N, T, D]
  ValueRef scores;  // [N * heads, T, S], each row a distribution
};

absl::StatusOr<AttentionWeights> ReadWeights(OpCall& call, int first) {
  AttentionWeights weights;
  ASSIGN_OR_RETURN(weights.in_weight, call.TensorArg(first));
  ASSIGN_OR_RETURN(weights.in_bias, call.TensorArg(first + 1));
  ASSIGN_OR_RETURN(weights.out_weight, call.TensorArg(first + 2));
  ASSIGN_OR_RETURN(weights.out_bias, call.TensorArg(first + 3));
  return weights;
}

// Part `index` of the three, of x [N, T, D], cut into heads: [N * heads, T, D / heads].
absl::StatusOr<ValueRef> Projected(OpCall& call, const ValueRef& x, const AttentionWeights& weights,
                                   int64_t index, int64_t heads) {
  const Shape& s = x->type.shape;
  ASSIGN_OR_RETURN(const ValueRef weight,
                   call.SlicedUnder(OpCall::kNoRow, weights.in_weight, 0, index * s[2], s[2]));
  ASSIGN_OR_RETURN(const ValueRef bias,
                   call.SlicedUnder(OpCall::kNoRow, weights.in_bias, 0, index * s[2], s[2]));
  ASSIGN_OR_RETURN(ValueRef y, Linear(call, x, weight, bias));
  ASSIGN_OR_RETURN(y, call.Reshaped(y, {s[0], s[1], heads, s[2] / heads}));
  ASSIGN_OR_RETURN(y, call.Transposed(y, {0, 2, 1, 3}));
  return call.Reshaped(y, {s[0] * heads, s[1], s[2] / heads});
}

absl::StatusOr<Attended> Attend(OpCall& call, const ValueRef& query, const ValueRef& key,
                                const ValueRef& value, int64_t heads,
                                const AttentionWeights& weights) {
  const Shape s = query->type.shape;
  for (const ValueRef& x : {query, key, value}) {
    const Shape& shape = x->type.shape;
    if (shape.size() != 3 || shape[0] != s[0] || shape[2] != s[2] || heads < 1 ||
        shape[2] % heads != 0 || weights.in_weight->type.shape != Shape{3 * shape[2], shape[2]} ||
        weights.in_bias->type.shape != Shape{3 * shape[2]}) {
      return absl::InvalidArgumentError(absl::StrCat("attention of ", heads, " heads over ",
                                                     TypeToString(x->type), " with a weight ",
                                                     TypeToString(weights.in_weight->type)));
    }
  }
  ASSIGN_OR_RETURN(ValueRef q, Projected(call, query, weights, 0, heads));
  ASSIGN_OR_RETURN(const ValueRef k, Projected(call, key, weights, 1, heads));
  ASSIGN_OR_RETURN(const ValueRef v, Projected(call, value, weights, 2, heads));
  const int64_t width = s[2] / heads;
  ASSIGN_OR_RETURN(q,
                   call.Emit("Mul", {q, call.Scalar(1 / std::sqrt(static_cast<double>(width)))}));
  Attended attended;
  ASSIGN_OR_RETURN(attended.scores,
                   call.Emit("MatMul", {q, k}, {{"transpose_a", false}, {"transpose_b", true}}));
  ASSIGN_OR_RETURN(attended.scores,
                   call.Emit("Softmax", {attended.scores}, {{"axis", int64_t{2}}}));
  ASSIGN_OR_RETURN(ValueRef y, call.Emit("MatMul", {attended.scores, v},
                                         {{"transpose_a", false}, {"transpose_b", false}}));
  ASSIGN_OR_RETURN(y, call.Reshaped(y, {s[0], heads, s[1], width}));
  ASSIGN_OR_RETURN(y, call.Transposed(y, {0, 2, 1, 3}));
  ASSIGN_OR_RETURN(y, call.Reshaped(y, s));
  ASSIGN_OR_RETURN(attended.result, Linear(call, y, weights.out_weight, weights.out_bias));
  return attended;
}

absl::Status RefuseMask(OpCall& call, int arg) {
  if (!call.Has(arg)) return absl::OkStatus();
  return call.FailMode("attention with a mask", "trace the model without a mask");
}

// query, key, value, size, heads, the four weights, mask, whether scores are wanted, and whether as
// the mean over the heads.
absl::StatusOr<ScriptValue> ImportAttention(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef query, call.TensorArg(0));
  ASSIGN_OR_RETURN(const ValueRef key, call.TensorArg(1));
  ASSIGN_OR_RETURN(const ValueRef value, call.TensorArg(2));
  ASSIGN_OR_RETURN(const int64_t heads, call.Int(4));
  ASSIGN_OR_RETURN(const AttentionWeights weights, ReadWeights(call, 5));
  RETURN_IF_ERROR(RefuseMask(call, 9));
  ASSIGN_OR_RETURN(const bool wants_scores, call.BoolOr(10, true));
  ASSIGN_OR_RETURN(const bool averages, call.BoolOr(11, true));
  ASSIGN_OR_RETURN(Attended attended, Attend(call, query, key, value, heads, weights));
  ScriptValue scores = ScriptValue::None();
  if (wants_scores) {
    const Shape& s = attended.scores->type.shape;
    ASSIGN_OR_RETURN(ValueRef y, call.Reshaped(attended.scores, {s[0] / heads, heads, s[1], s[2]}));
    if (averages) {
      ASSIGN_OR_RETURN(y, call.Reduced("ReduceMean", y, {1}, /*keep_dims=*/false));
    }
    scores = call.Result(std::move(y));
  }
  return call.state().heap.Tuple({call.Result(std::move(attended.result)), scores});
}

// src, size, heads, the four weights, use_gelu, norm_first, eps, the weights and biases of both
// norms and of both linear layers, mask.
absl::StatusOr<ScriptValue> ImportEncoderLayer(OpCall& call) {
  ASSIGN_OR_RETURN(ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const int64_t heads, call.Int(2));
  ASSIGN_OR_RETURN(const AttentionWeights weights, ReadWeights(call, 3));
  ASSIGN_OR_RETURN(const bool uses_gelu, call.BoolOr(7, false));
  ASSIGN_OR_RETURN(const bool norm_first, call.BoolOr(8, false));
  ASSIGN_OR_RETURN(const double epsilon, call.FloatOr(9, 1e-5));
  RETURN_IF_ERROR(RefuseMask(call, 18));
  std::vector<ValueRef> layers;  // norm 1, norm 2, linear 1, linear 2: a weight and a bias each
  for (int i = 10; i < 18; ++i) {
    ASSIGN_OR_RETURN(layers.emplace_back(), call.TensorArg(i));
  }
  const auto norm = [&](const ValueRef& y, size_t which) {
    return LayerNorm(call, y, 1, layers[2 * which], layers[2 * which + 1], epsilon);
  };
  ValueRef before = x;
  if (norm_first) {
    ASSIGN_OR_RETURN(before, norm(x, 0));
  }
  ASSIGN_OR_RETURN(const Attended attended, Attend(call, before, before, before, heads, weights));
  ASSIGN_OR_RETURN(x, call.Emit("Add", {x, attended.result}));
  if (!norm_first) {
    ASSIGN_OR_RETURN(x, norm(x, 0));
  }
  before = x;
  if (norm_first) {
    ASSIGN_OR_RETURN(before, norm(x, 1));
  }
  ASSIGN_OR_RETURN(ValueRef y, Linear(call, before, layers[4], layers[5]));
  const Term inner(call, y);
  ASSIGN_OR_RETURN(y, (uses_gelu ? frontend::Gelu(inner) : frontend::Relu(inner)).value);
  ASSIGN_OR_RETURN(y, Linear(call, y, layers[6], layers[7]));
  ASSIGN_OR_RETURN(x, call.Emit("Add", {x, y}));
  if (!norm_first) {
    ASSIGN_OR_RETURN(x, norm(x, 1));
  }
  return call.Result(std::move(x));
}

// 0 where a score counts, else a number whose exponential is 0 beside any score that float16 holds.
constexpr float kMasked = -30000;

// The mask as a summand of scores [..., T, S]; null: there is none.
absl::StatusOr<ValueRef> AddedMask(OpCall& call, int arg, bool is_causal, int64_t rows,
                                   int64_t columns) {
  if (is_causal) {
    RETURN_IF_ERROR(CheckShape({rows, columns}));
    std::vector<float> added(static_cast<size_t>(rows * columns), 0);
    for (int64_t i = 0; i < rows * columns; ++i) {
      if (i % columns > i / columns) added[static_cast<size_t>(i)] = kMasked;
    }
    return call.MakeConstant(Tensor::FromFloats({rows, columns}, added));
  }
  ASSIGN_OR_RETURN(const ValueRef mask, call.OptionalTensor(arg));
  if (mask == nullptr || !IsTruth(mask)) return mask;
  return Chosen(call, mask, call.Scalar(0), call.Scalar(kMasked));
}

// softmax(q k' * scale + mask) v over the last two axes.
absl::StatusOr<ScriptValue> ImportScaledDotProduct(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef query, call.TensorArg(0));
  ASSIGN_OR_RETURN(const ValueRef key, call.TensorArg(1));
  ASSIGN_OR_RETURN(const ValueRef value, call.TensorArg(2));
  ASSIGN_OR_RETURN(const double dropout, call.FloatOr(4, 0));
  ASSIGN_OR_RETURN(const bool is_causal, call.BoolOr(5, false));
  ASSIGN_OR_RETURN(const bool shares_keys, call.BoolOr(7, false));
  const Shape& q = query->type.shape;
  const Shape& k = key->type.shape;
  if (q.size() < 2 || k.size() != q.size() || value->type.shape.size() != q.size() ||
      q.back() != k.back() || q.back() < 1) {
    return absl::InvalidArgumentError(absl::StrCat("attention of ", TypeToString(query->type),
                                                   " over ", TypeToString(key->type)));
  }
  if (dropout != 0 || shares_keys) {
    return call.FailMode("attention with dropout, or with keys that heads share",
                         "save the model in evaluation mode, with as many keys as queries");
  }
  ASSIGN_OR_RETURN(const double scale,
                   call.FloatOr(6, 1 / std::sqrt(static_cast<double>(q.back()))));
  ASSIGN_OR_RETURN(const ValueRef scaled, call.Emit("Mul", {query, call.Scalar(scale)}));
  ASSIGN_OR_RETURN(ValueRef scores, call.Emit("MatMul", {scaled, key},
                                              {{"transpose_a", false}, {"transpose_b", true}}));
  ASSIGN_OR_RETURN(const ValueRef mask,
                   AddedMask(call, 3, is_causal, q[q.size() - 2], k[k.size() - 2]));
  if (mask != nullptr) {
    ASSIGN_OR_RETURN(scores, call.Emit("Add", {scores, mask}));
  }
  const auto last = static_cast<int64_t>(scores->type.shape.size()) - 1;
  ASSIGN_OR_RETURN(scores, call.Emit("Softmax", {scores}, {{"axis", last}}));
  return call.Result(
      call.Emit("MatMul", {scores, value}, {{"transpose_a", false}, {"transpose_b", false}}));
}

constexpr OpRule kAttentionRules[] = {
    {"_native_multi_head_attention",
     "query key value embed_dim num_head qkv_weight qkv_bias proj_weight proj_bias mask "
     "need_weights average_attn_weights mask_type",
     ImportAttention},
    {"_transformer_encoder_layer_fwd",
     "src embed_dim num_heads qkv_weight qkv_bias proj_weight proj_bias use_gelu norm_first eps "
     "norm_weight_1 norm_bias_1 norm_weight_2 norm_bias_2 ffn_weight_1 ffn_bias_1 ffn_weight_2 "
     "ffn_bias_2 mask mask_type",
     ImportEncoderLayer},
    {"scaled_dot_product_attention",
     "query key value attn_mask dropout_p is_causal scale enable_gqa", ImportScaledDotProduct},
};

}  // namespace

absl::Span<const OpRule> AttentionRules() { return kAttentionRules; }

}  // namespace npuc::pt
