#ifndef NPUC_COMPILER_CORE_FRONTENDS_ONNX_INTEGER_PRODUCTS_H_
#define NPUC_COMPILER_CORE_FRONTENDS_ONNX_INTEGER_PRODUCTS_H_

#include <functional>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "compiler_core/frontends/common/operand_node.h"
#include "compiler_core/ops/quantize.h"

namespace npuc::onnx {

// Sums of products of integers that the model turns back into floats. A quantizer writes
//   Mul(Cast(MatMulInteger(q, w)), scale of q * scale of w)  with q, scale = quantized x
// which is the product of x and of the floats behind w. A bias b may be added to the sums as
//   Reshape(Cast(Floor(b / (scale of q * scale of w))))
// which is b there, or as constant integers where the scales are known. The nodes of such a chain
// are known by their values while the model is imported; the last one becomes that product, and
// what computed the integers is read by nothing.
class IntegerProducts {
 public:
  // Integers, and the floats for which they stand.
  struct Source {
    frontend::ValueRef value;           // the integers; where the scale is computed, the floats
    frontend::ValueRef scale;           // one number, a constant or computed at run time
    frontend::ValueRef zero;            // null: 0
    std::optional<QuantParams> params;  // of the integers
  };
  using Compute =
      std::function<absl::StatusOr<frontend::ValueRef>(frontend::ValueRef, frontend::ValueRef)>;
  struct Product {
    Source x;
    frontend::ValueRef weight;  // constant integers
    frontend::ValueRef weight_zero;
    int channel_axis = 0;               // of the weight
    int result_axis = 0;                // of the sums, counted from the end: -1, -3
    Compute compute;                    // of x and the weight, both as floats
    frontend::ValueRef bias = nullptr;  // the integers that are added; null: none
  };

  void SetQuantized(const frontend::ValueRef& integers, Source source);
  // Null where nothing is known of the integers.
  const Source* FindQuantized(const frontend::ValueRef& integers) const;
  void SetSums(const frontend::ValueRef& sums, Product product);
  // `cast` holds the numbers of `value`.
  void SetCast(const frontend::ValueRef& value, const frontend::ValueRef& cast);
  // `result` is a + b.
  void SetSum(const frontend::ValueRef& a, const frontend::ValueRef& b,
              const frontend::ValueRef& result);
  // `result` is a * b. Known products of a computed scale and a constant serve as the second
  // operand of Mul above.
  void SetScales(const frontend::ValueRef& a, const frontend::ValueRef& b,
                 const frontend::ValueRef& result);
  // The value of a * b where that ends such a chain, else nullopt.
  std::optional<absl::StatusOr<frontend::ValueRef>> Ended(frontend::Emitter& node,
                                                          const frontend::ValueRef& a,
                                                          const frontend::ValueRef& b) const;

 private:
  template <typename T>
  struct Known {
    frontend::ValueRef pin;  // so that its address is not used again
    T value;
  };
  struct Scales {
    frontend::ValueRef computed;
    frontend::ValueRef constant;
  };
  template <typename T>
  using Map = absl::flat_hash_map<const frontend::ImportValue*, Known<T>>;

  // The floats behind the bias of a product, where its integers count steps of the product of the
  // two scales; else null.
  static frontend::ValueRef RealBias(frontend::Emitter& node, const Product& product,
                                     const Scales& scales);
  absl::StatusOr<frontend::ValueRef> RealWeight(frontend::Emitter& node, const Product& product,
                                                const Tensor& scale, double divisor) const;
  // The product of the floats behind both operands, plus `bias` where that is not null.
  absl::StatusOr<frontend::ValueRef> Real(frontend::Emitter& node, const Product& product,
                                          const Tensor& factor, double divisor,
                                          const frontend::ValueRef& bias) const;
  std::optional<absl::StatusOr<frontend::ValueRef>> Finish(frontend::Emitter& node,
                                                           const frontend::ValueRef& sums,
                                                           const Product& product,
                                                           const frontend::ValueRef& scale) const;

  Map<Source> quantized_;
  Map<Product> sums_;
  Map<Scales> scales_;
};

}  // namespace npuc::onnx

#endif  // NPUC_COMPILER_CORE_FRONTENDS_ONNX_INTEGER_PRODUCTS_H_
