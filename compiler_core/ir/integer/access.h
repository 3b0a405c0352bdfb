#ifndef NPUC_COMPILER_CORE_IR_INTEGER_ACCESS_H_
#define NPUC_COMPILER_CORE_IR_INTEGER_ACCESS_H_

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler_core/ir/cmd/access.h"
#include "compiler_core/ir/integer/command.h"

namespace npuc::integer {

// The product of numbers >= 0, at most 2^60.
int64_t CappedProduct(std::initializer_list<int64_t> factors);

// The operands that are present, reads before writes, each with the bytes from its lowest to behind
// its highest element touched (strides leave gaps). Any field values are accepted; sizes are
// capped at 2^60.
std::vector<Access> AccessesOf(const Body& body);

// Multiply-adds of a Convolve or a Product, else elements read or written, whichever are more;
// capped at 2^60.
int64_t WorkOf(const Body& body);

// True where WorkOf counts multiply-adds.
bool MultipliesAndAdds(const Body& body);

absl::string_view NameOf(const Body& body);  // "convolve" ...

// Weights of a Convolve; capped at 2^60.
int64_t WeightCount(const Convolve& convolve);

// Elements from one pixel of a Convolve's result to the next.
int64_t PixelElements(const Convolve& convolve);

// Entries of a look-up table: 256 for an 8-bit operand, else 2^index_bits + 1.
int64_t TableEntries(DType operand, int32_t index_bits);

// The smallest and largest value of i8, u8, i16, u16, i32 (else 0).
int64_t LowestValue(DType type);
int64_t HighestValue(DType type);

// True where the sums of a Convolve have 48 bits, not 32.
bool HasWideSums(const Convolve& convolve);

// Bytes of one bias of a Convolve: 4, or 6 where its sums have 48 bits.
int64_t BiasBytes(const Convolve& convolve);

}  // namespace npuc::integer

#endif  // NPUC_COMPILER_CORE_IR_INTEGER_ACCESS_H_
