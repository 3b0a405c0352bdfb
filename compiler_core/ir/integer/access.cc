#include "compiler_core/ir/integer/access.h"

#include <algorithm>
#include <initializer_list>

#include "absl/types/span.h"
#include "compiler_core/ir/integer/fields.h"
#include "compiler_core/ir/integer/weight_code.h"

namespace npuc::integer {

int64_t CappedProduct(std::initializer_list<int64_t> factors) {
  constexpr int64_t kCap = int64_t{1} << 60;
  int64_t product = 1;
  for (const int64_t factor : factors) {
    int64_t next = 0;
    if (__builtin_mul_overflow(product, std::max<int64_t>(factor, 0), &next) || next > kCap) {
      return kCap;
    }
    product = next;
  }
  return product;
}

namespace {

int64_t ProductOf(absl::Span<const int32_t> extents) {
  int64_t product = 1;
  for (const int32_t extent : extents) product = CappedProduct({product, extent});
  return product;
}

class Accesses {
 public:
  void Add(OperandRole role, const Operand& operand, int64_t bytes, bool writes = false) {
    if (operand.present()) list_.push_back({role, operand, writes, bytes});
  }

  // Elements of `type` along strides; negative ones reach below the operand.
  void Walk(OperandRole role, const Operand& operand, DType type, const Extents& extents,
            const Extents& strides, bool writes = false) {
    int64_t low = 0;
    int64_t high = 0;
    for (int i = 0; i < kMaxExtents; ++i) {
      const int64_t reach = int64_t{extents[i] - 1} * strides[i];  // below 2^57
      (reach < 0 ? low : high) += reach;
    }
    const int64_t size = SizeOf(type);
    Add(role, operand.Plus(low * size), (high - low + 1) * size, writes);
  }

  // Pixels of `channels` elements, `pixel` elements from one to the next.
  void WritePixels(const Result& result, int64_t pixels, int64_t channels, int64_t pixel) {
    const int64_t gaps = CappedProduct({pixels - 1, pixel - channels});
    Write(result, CappedProduct({pixels, channels}) + gaps);
  }

  void Write(const Result& result, int64_t count) {
    Add(OperandRole::kD, result.d, CappedProduct({count, SizeOf(result.type)}), true);
  }

  std::vector<Access> Take() { return std::move(list_); }

 private:
  std::vector<Access> list_;
};

struct AccessVisitor {
  Accesses& out;

  void operator()(const Convolve& c) const {
    out.Add(OperandRole::kA, c.a, CappedProduct({c.n, c.in_h, c.in_w, c.in_c, SizeOf(c.a_type)}));
    out.Add(
        OperandRole::kWeights, c.weights,
        c.coded_bytes > 0 ? c.coded_bytes : CappedProduct({WeightCount(c), SizeOf(c.weight_type)}));
    out.Add(OperandRole::kTable, c.table, kCodeTableBytes);
    out.Add(OperandRole::kBias, c.bias, CappedProduct({c.out_c, BiasBytes(c)}));
    out.Add(OperandRole::kFactors, c.factors, CappedProduct({c.factor_count, kFactorBytes}));
    out.WritePixels(c.result, CappedProduct({c.n, c.out_h, c.out_w}), c.out_c, PixelElements(c));
  }
  void operator()(const Pool& c) const {
    out.Add(OperandRole::kA, c.a, CappedProduct({c.n, c.in_h, c.in_w, c.c, SizeOf(c.a_type)}));
    out.Add(OperandRole::kFactors, c.factors, CappedProduct({c.factor_count, kFactorBytes}));
    out.Write(c.result, CappedProduct({c.n, c.out_h, c.out_w, c.c}));
  }
  void operator()(const Combine& c) const {
    out.Walk(OperandRole::kA, c.a, c.a_type, c.extents, c.a_strides);
    out.Walk(OperandRole::kB, c.b, c.b_type, c.extents, c.b_strides);
    out.Add(OperandRole::kFactors, c.factors, 3 * kFactorBytes);
    out.Walk(OperandRole::kD, c.result.d, c.result.type, c.extents, c.d_strides, true);
  }
  void operator()(const Move& c) const {
    out.Walk(OperandRole::kA, c.a, c.a_type, c.extents, c.a_strides);
    out.Add(OperandRole::kFactors, c.factors, kFactorBytes);
    out.Walk(OperandRole::kD, c.result.d, c.result.type, c.extents, c.d_strides, true);
  }
  void operator()(const Product& c) const {
    out.Walk(OperandRole::kA, c.a, c.a_type, c.extents, c.a_strides);
    out.Walk(OperandRole::kB, c.b, c.b_type, c.extents, c.b_strides);
    out.Add(OperandRole::kFactors, c.factors, kFactorBytes);
    out.Write(c.result, ProductOf(absl::MakeConstSpan(c.extents).first(kMaxExtents - 1)));
  }
  void operator()(const Fill& c) const { out.Write(c.result, c.count); }
  void operator()(const Lookup& c) const {
    out.Add(OperandRole::kA, c.a, CappedProduct({c.count, SizeOf(c.a_type)}));
    out.Add(OperandRole::kTable, c.table,
            TableEntries(c.a_type, c.index_bits) * SizeOf(c.result.type));
    out.Write(c.result, c.count);
  }
  void operator()(const Softmax& c) const {
    out.Add(OperandRole::kA, c.a, CappedProduct({c.rows, c.length, SizeOf(c.a_type)}));
    out.Add(OperandRole::kTable, c.table, TableEntries(c.a_type, c.index_bits) * 4);
    out.Add(OperandRole::kFactors, c.factors, kFactorBytes);
    out.Write(c.result, CappedProduct({c.rows, c.length}));
  }
};

struct WorkVisitor {
  int64_t operator()(const Convolve& c) const {
    const int64_t group_c = c.groups > 0 ? c.in_c / c.groups : 0;
    return CappedProduct({c.n, c.out_h, c.out_w, c.out_c, c.window.kernel_h, c.window.kernel_w,
                          std::max<int64_t>(group_c, 1)});
  }
  int64_t operator()(const Pool& c) const {
    return CappedProduct({c.n, c.out_h, c.out_w, c.c, c.window.kernel_h, c.window.kernel_w});
  }
  int64_t operator()(const Combine& c) const { return ProductOf(c.extents); }
  int64_t operator()(const Move& c) const { return ProductOf(c.extents); }
  int64_t operator()(const Product& c) const { return ProductOf(c.extents); }
  int64_t operator()(const Fill& c) const { return c.count; }
  int64_t operator()(const Lookup& c) const { return c.count; }
  int64_t operator()(const Softmax& c) const { return CappedProduct({c.rows, c.length, 3}); }
};

}  // namespace

int64_t WeightCount(const Convolve& convolve) {
  const int64_t group_c = convolve.groups > 0 ? convolve.in_c / convolve.groups : 0;
  return CappedProduct(
      {convolve.out_c, convolve.window.kernel_h, convolve.window.kernel_w, group_c});
}

int64_t PixelElements(const Convolve& convolve) {
  return convolve.d_pixel > 0 ? convolve.d_pixel : convolve.out_c;
}

int64_t TableEntries(DType operand, int32_t index_bits) {
  return SizeOf(operand) == 1 ? 256 : (int64_t{1} << std::clamp(index_bits, 0, 16)) + 1;
}

std::vector<Access> AccessesOf(const Body& body) {
  Accesses accesses;
  std::visit(AccessVisitor{accesses}, body);
  return accesses.Take();
}

int64_t WorkOf(const Body& body) { return std::visit(WorkVisitor{}, body); }

bool MultipliesAndAdds(const Body& body) {
  return std::holds_alternative<Convolve>(body) || std::holds_alternative<Product>(body);
}

absl::string_view NameOf(const Body& body) { return kOpcodes[body.index()].name; }

int64_t LowestValue(DType type) {
  if (type == DType::kInt8) return INT8_MIN;
  if (type == DType::kInt16) return INT16_MIN;
  return type == DType::kInt32 ? INT32_MIN : 0;
}

int64_t HighestValue(DType type) {
  switch (type) {
    case DType::kInt8:
      return INT8_MAX;
    case DType::kUint8:
      return UINT8_MAX;
    case DType::kInt16:
      return INT16_MAX;
    case DType::kUint16:
      return UINT16_MAX;
    case DType::kInt32:
      return INT32_MAX;
    default:
      return 0;
  }
}

bool HasWideSums(const Convolve& convolve) {
  return SizeOf(convolve.a_type) != 1 || SizeOf(convolve.weight_type) != 1;
}

int64_t BiasBytes(const Convolve& convolve) { return HasWideSums(convolve) ? 6 : 4; }

}  // namespace npuc::integer
