#ifndef NPUC_COMPILER_CORE_SIM_INTEGER_KERNELS_H_
#define NPUC_COMPILER_CORE_SIM_INTEGER_KERNELS_H_

#include <cstdint>
#include <vector>

#include "compiler_core/ir/integer/command.h"

namespace npuc::integer {

// The arithmetic of the integer cores, as target/INTEGER_ISA.md states it. Operands are pointers
// to bytes whose ranges and fields the caller has checked. Rows and elements are computed in the
// command's order, each from what memory holds at that time: a result may lie over what is dead.

// A Convolve's constants, read once: weights widened, and for each result channel what does not
// depend on the operand: bias + pad_value * (sum of its weights).
struct ConvolveConstants {
  std::vector<int16_t> weights;
  std::vector<int64_t> offsets;
  std::vector<Factor> factors;
};
ConvolveConstants ReadConstants(const Convolve& c, const uint8_t* weights, const uint8_t* bias,
                                const uint8_t* factors);
std::vector<Factor> ReadFactors(const uint8_t* bytes, int64_t count);

void Run(const Convolve& c, const ConvolveConstants& constants, const uint8_t* a, uint8_t* d,
         bool descending);
void Run(const Pool& c, const std::vector<Factor>& factors, const uint8_t* a, uint8_t* d,
         bool descending);
void Run(const Combine& c, const std::vector<Factor>& factors, const uint8_t* a, const uint8_t* b,
         uint8_t* d, bool descending);
void Run(const Product& c, const std::vector<Factor>& factors, const uint8_t* a, const uint8_t* b,
         uint8_t* d, bool descending);
void Run(const Move& c, const std::vector<Factor>& factors, const uint8_t* a, uint8_t* d,
         bool descending);
void Run(const Fill& c, uint8_t* d);
void Run(const Lookup& c, const uint8_t* a, const uint8_t* table, uint8_t* d, bool descending);
void Run(const Softmax& c, const std::vector<Factor>& factors, const uint8_t* a,
         const uint8_t* table, uint8_t* d, bool descending);

}  // namespace npuc::integer

#endif  // NPUC_COMPILER_CORE_SIM_INTEGER_KERNELS_H_
