#ifndef NPUC_COMPILER_CORE_IR_INTEGER_PORT_VALUES_H_
#define NPUC_COMPILER_CORE_IR_INTEGER_PORT_VALUES_H_

#include <cstdint>

#include "compiler_core/ir/cmd/command.h"
#include "compiler_core/ir/graph/types.h"

namespace npuc::integer {

// Between what an integer port's memory holds and the real values that it stands for:
// real = (stored - zero_point) * scale. Memory is little-endian, elements without gaps.

// The stored value nearest to a real one, ties to even, within the range of the port's type.
int64_t StoredValue(const PortTensor& port, double real);
float RealValue(const PortTensor& port, int64_t stored);

// Element i of i8, u8, i16, u16, i32 or i64.
int64_t LoadInteger(DType type, const void* bytes, int64_t i);
// The same for writing; `value` fits in the type.
void StoreInteger(DType type, int64_t value, void* bytes, int64_t i);

}  // namespace npuc::integer

#endif  // NPUC_COMPILER_CORE_IR_INTEGER_PORT_VALUES_H_
