#ifndef NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_TORCH_TYPE_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_TORCH_TYPE_H_

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "compiler_core/frontends/common/import_state.h"
#include "compiler_core/ir/graph/quantization.h"

namespace npuc::pt {

// The types of torch's tensors, by torch's numbers. Every run-time value of a TorchScript graph is
// f32; the type that it has in torch is a fact beside it. A constant has the type of its elements,
// unless a fact says otherwise.
inline constexpr int64_t kTorchLong = 4;
inline constexpr int64_t kTorchHalf = 5;
inline constexpr int64_t kTorchFloat = 6;
inline constexpr int64_t kTorchDouble = 7;
inline constexpr int64_t kTorchBool = 11;
inline constexpr int64_t kTorchBFloat16 = 15;

// This front end's facts of a value.
struct TorchFacts : frontend::ImportValue::Facts {
  int64_t type = kTorchFloat;
  std::optional<QuantParams> quantization;  // of a quantized tensor
};
// Null where nothing is known.
const TorchFacts* FactsOf(const frontend::ValueRef& value);

// The number of a type of the IR; floats that torch lacks count as float32.
int64_t TorchTypeOf(DType dtype);
int64_t TorchTypeOf(const frontend::ValueRef& value);
bool IsTorchFloat(int64_t type);
bool IsTruth(const frontend::ValueRef& value);
// The type that the elements of a constant of that type get; kInvalid where there is none.
DType ElementTypeOf(int64_t type);
// A copy of the value under that type; itself where it has it.
frontend::ValueRef WithTorchType(const frontend::ValueRef& value, int64_t type);

// The type that holds values of all these, by torch's rules of promotion, sizes of integers apart.
int64_t CommonType(absl::Span<const frontend::ValueRef> values);
// The type of an f32 result of an operator of the IR.
int64_t ResultType(Op op, absl::Span<const frontend::ValueRef> operands);

}  // namespace npuc::pt

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_TORCH_TYPE_H_
