#ifndef NPUC_COMPILER_CORE_OPS_ELEMENTWISE_H_
#define NPUC_COMPILER_CORE_OPS_ELEMENTWISE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler_core/ops/op.h"

namespace npuc {

// Element-wise operators: a struct derived from UnaryOp or BinaryOp gives Eval on doubles and,
// where TensorFlow defines the operator on integers, EvalInt on int64_t (the result wraps to the
// element type).

using UnaryFloatFn = double (*)(double);
using UnaryIntFn = int64_t (*)(int64_t);
using BinaryFloatFn = double (*)(double, double);
// nullopt: the operands have no result, e.g. a division by zero.
using BinaryIntFn = std::optional<int64_t> (*)(int64_t, int64_t);

// The operand's type; INVALID_ARGUMENT unless it is a float, or an integer where those are allowed.
absl::StatusOr<std::vector<TensorType>> InferUnary(const OpView& view, bool integers);
absl::StatusOr<std::vector<Tensor>> RunUnary(const Tensor& x, UnaryFloatFn f, UnaryIntFn g);
// Operands of one type whose shapes broadcast.
absl::StatusOr<std::vector<TensorType>> InferBinary(const OpView& view, bool integers);
absl::StatusOr<std::vector<Tensor>> RunBinary(const Tensor& a, const Tensor& b, BinaryFloatFn f,
                                              BinaryIntFn g);

template <typename T>
struct UnaryOp {
  static constexpr OpTraits kTraits = {
      .layout = LayoutRule::kElementwise, .integer = IntegerRule::kFunction, .is_pointwise = true};
  static constexpr UnaryIntFn IntFn() {
    if constexpr (requires { &T::EvalInt; }) return &T::EvalInt;
    return nullptr;
  }
  static absl::StatusOr<std::vector<TensorType>> InferShapes(const OpView& view) {
    return InferUnary(view, IntFn() != nullptr);
  }
  static void Facts(const OpView& view, FactMap& facts) {}
  static absl::StatusOr<std::vector<Tensor>> Reference(const Node& node,
                                                       absl::Span<const Tensor> inputs) {
    return RunUnary(inputs[0], &T::Eval, IntFn());
  }
};

template <typename T>
struct BinaryOp {
  static constexpr OpTraits kTraits = {
      .layout = LayoutRule::kBroadcast, .integer = IntegerRule::kFunction, .is_pointwise = true};
  static constexpr BinaryIntFn IntFn() {
    if constexpr (requires { &T::EvalInt; }) return &T::EvalInt;
    return nullptr;
  }
  static absl::StatusOr<std::vector<TensorType>> InferShapes(const OpView& view) {
    return InferBinary(view, IntFn() != nullptr);
  }
  static void Facts(const OpView& view, FactMap& facts) {
    facts["same_shape"] = view.inputs[0].shape == view.inputs[1].shape;
  }
  static absl::StatusOr<std::vector<Tensor>> Reference(const Node& node,
                                                       absl::Span<const Tensor> inputs) {
    return RunBinary(inputs[0], inputs[1], &T::Eval, IntFn());
  }
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_OPS_ELEMENTWISE_H_
