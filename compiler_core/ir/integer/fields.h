#ifndef NPUC_COMPILER_CORE_IR_INTEGER_FIELDS_H_
#define NPUC_COMPILER_CORE_IR_INTEGER_FIELDS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "compiler_core/ir/integer/command.h"

namespace npuc::integer {

// The fields of every command, once: encoder, decoder, printer and checks all walk these. A field
// is one 32-bit word, in this order; extents and strides are six words each. d_pixel of a convolve
// has its mask bit in the command's header.
// A visitor has, for a body B or const B:
//   Place(name, operand)           Type(name, dtype)            Choice(name, enum, count)
//   Number(name, value, lo, hi)    Walk(name, extents, lo, hi)

// Of elements, sides and strides: as many as a tensor may have.
inline constexpr int32_t kMaxNumber = static_cast<int32_t>(kMaxElements);

template <typename V, typename R>
void VisitResult(V& v, R& result) {
  v.Place("d", result.d);
  v.Type("d_type", result.type);
  v.Number("d_zero", result.zero, -65536, 65535);
  v.Number("min", result.min, -32768, 65535);
  v.Number("max", result.max, -32768, 65535);
}

template <typename V, typename W>
void VisitWindow(V& v, W& window) {
  v.Number("kernel_h", window.kernel_h, 1, 65535);
  v.Number("kernel_w", window.kernel_w, 1, 65535);
  v.Number("stride_h", window.stride_h, 1, 65535);
  v.Number("stride_w", window.stride_w, 1, 65535);
  v.Number("dilation_h", window.dilation_h, 1, 65535);
  v.Number("dilation_w", window.dilation_w, 1, 65535);
  v.Number("pad_top", window.pad_top, 0, 65535);
  v.Number("pad_left", window.pad_left, 0, 65535);
}

constexpr int kRoundings = 3;

template <typename V, typename C>
void VisitConvolve(V& v, C& c) {
  v.Place("a", c.a);
  v.Type("a_type", c.a_type);
  v.Number("pad_value", c.pad_value, -32768, 65535);
  v.Place("weights", c.weights);
  v.Type("weight_type", c.weight_type);
  v.Number("coded_bytes", c.coded_bytes, 0, kMaxNumber);
  v.Place("table", c.table);
  v.Place("bias", c.bias);
  v.Place("factors", c.factors);
  v.Number("factor_count", c.factor_count, 1, kMaxNumber);
  v.Choice("rounding", c.rounding, kRoundings);
  v.Number("n", c.n, 1, kMaxNumber);
  v.Number("in_h", c.in_h, 1, kMaxNumber);
  v.Number("in_w", c.in_w, 1, kMaxNumber);
  v.Number("in_c", c.in_c, 1, kMaxNumber);
  v.Number("out_h", c.out_h, 1, kMaxNumber);
  v.Number("out_w", c.out_w, 1, kMaxNumber);
  v.Number("out_c", c.out_c, 1, kMaxNumber);
  v.Number("groups", c.groups, 1, kMaxNumber);
  VisitWindow(v, c.window);
  VisitResult(v, c.result);
  v.Number("d_pixel", c.d_pixel, 0, kMaxNumber);
}

template <typename V, typename C>
void VisitPool(V& v, C& c) {
  v.Choice("kind", c.kind, 3);
  v.Place("a", c.a);
  v.Type("a_type", c.a_type);
  v.Number("a_zero", c.a_zero, -32768, 65535);
  v.Place("factors", c.factors);
  v.Number("factor_count", c.factor_count, 0, kMaxNumber);
  v.Choice("rounding", c.rounding, kRoundings);
  v.Number("n", c.n, 1, kMaxNumber);
  v.Number("in_h", c.in_h, 1, kMaxNumber);
  v.Number("in_w", c.in_w, 1, kMaxNumber);
  v.Number("c", c.c, 1, kMaxNumber);
  v.Number("out_h", c.out_h, 1, kMaxNumber);
  v.Number("out_w", c.out_w, 1, kMaxNumber);
  VisitWindow(v, c.window);
  VisitResult(v, c.result);
}

template <typename V, typename C>
void VisitCombine(V& v, C& c) {
  v.Choice("kind", c.kind, 6);
  v.Place("a", c.a);
  v.Type("a_type", c.a_type);
  v.Number("a_zero", c.a_zero, -32768, 65535);
  v.Place("b", c.b);
  v.Type("b_type", c.b_type);
  v.Number("b_zero", c.b_zero, -32768, 65535);
  v.Number("left", c.left, 0, 30);
  v.Place("factors", c.factors);
  v.Choice("rounding", c.rounding, kRoundings);
  v.Walk("extents", c.extents, 1);
  v.Walk("a_strides", c.a_strides, 0);
  v.Walk("b_strides", c.b_strides, 0);
  v.Walk("d_strides", c.d_strides, 0);
  VisitResult(v, c.result);
}

template <typename V, typename C>
void VisitMove(V& v, C& c) {
  v.Place("a", c.a);
  v.Type("a_type", c.a_type);
  v.Number("a_zero", c.a_zero, -32768, 65535);
  v.Place("factors", c.factors);
  v.Choice("rounding", c.rounding, kRoundings);
  v.Walk("extents", c.extents, 1);
  v.Walk("a_strides", c.a_strides, -kMaxNumber);
  v.Walk("d_strides", c.d_strides, 0);
  VisitResult(v, c.result);
}

template <typename V, typename C>
void VisitFill(V& v, C& c) {
  v.Number("count", c.count, 1, kMaxNumber);
  VisitResult(v, c.result);
}

template <typename V, typename C>
void VisitLookup(V& v, C& c) {
  v.Place("a", c.a);
  v.Type("a_type", c.a_type);
  v.Place("table", c.table);
  v.Number("index_bits", c.index_bits, 4, 16);
  v.Number("count", c.count, 1, kMaxNumber);
  VisitResult(v, c.result);
}

template <typename V, typename C>
void VisitSoftmax(V& v, C& c) {
  v.Choice("kind", c.kind, 2);
  v.Place("a", c.a);
  v.Type("a_type", c.a_type);
  v.Place("table", c.table);
  v.Number("index_bits", c.index_bits, 4, 16);
  v.Number("multiplier", c.multiplier, 0, INT32_MAX);
  v.Number("left", c.left, 0, 31);
  v.Number("diff_min", c.diff_min, INT32_MIN, 0);
  v.Place("factors", c.factors);
  v.Choice("rounding", c.rounding, kRoundings);
  v.Number("rows", c.rows, 1, kMaxNumber);
  v.Number("length", c.length, 1, kMaxNumber);
  VisitResult(v, c.result);
}

template <typename V, typename C>
void VisitProduct(V& v, C& c) {
  v.Place("a", c.a);
  v.Type("a_type", c.a_type);
  v.Number("a_zero", c.a_zero, -32768, 65535);
  v.Place("b", c.b);
  v.Type("b_type", c.b_type);
  v.Number("b_zero", c.b_zero, -32768, 65535);
  v.Place("factors", c.factors);
  v.Choice("rounding", c.rounding, kRoundings);
  v.Walk("extents", c.extents, 1);
  v.Walk("a_strides", c.a_strides, 0);
  v.Walk("b_strides", c.b_strides, 0);
  VisitResult(v, c.result);
}

// Calls the function above that fits.
template <typename V>
struct FieldWalker {
  V& v;
  template <typename C>
  void operator()(C& c) const {
    using B = std::remove_const_t<C>;
    if constexpr (std::is_same_v<B, Convolve>) VisitConvolve(v, c);
    if constexpr (std::is_same_v<B, Pool>) VisitPool(v, c);
    if constexpr (std::is_same_v<B, Combine>) VisitCombine(v, c);
    if constexpr (std::is_same_v<B, Move>) VisitMove(v, c);
    if constexpr (std::is_same_v<B, Fill>) VisitFill(v, c);
    if constexpr (std::is_same_v<B, Lookup>) VisitLookup(v, c);
    if constexpr (std::is_same_v<B, Softmax>) VisitSoftmax(v, c);
    if constexpr (std::is_same_v<B, Product>) VisitProduct(v, c);
  }
};
template <typename V, typename BodyType>  // Body or const Body
void VisitFields(V& v, BodyType& body) {
  std::visit(FieldWalker<V>{v}, body);
}

// Opcodes and names, in Body's order.
struct Opcode {
  uint8_t code;
  absl::string_view name;
};
inline constexpr std::array<Opcode, std::variant_size_v<Body>> kOpcodes = {
    Opcode{0x80, "convolve"}, Opcode{0x81, "pool"},   Opcode{0x82, "combine"},
    Opcode{0x83, "move"},     Opcode{0x84, "fill"},   Opcode{0x85, "lookup"},
    Opcode{0x86, "softmax"},  Opcode{0x87, "product"}};

// A body of the opcode's kind with default fields; false where no command has it.
bool MakeBody(uint8_t code, Body& body);

}  // namespace npuc::integer

#endif  // NPUC_COMPILER_CORE_IR_INTEGER_FIELDS_H_
