#include "compiler_core/frontends/torchscript/torch_type.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <vector>

namespace npuc::pt {
namespace {

using frontend::ImportValue;
using frontend::ValueRef;

// Operators whose results are elements of their operands.
bool PicksElements(Op op) {
  constexpr Op kOps[] = {Op::kConcat,  Op::kGather,    Op::kIdentity, Op::kMaximum,
                         Op::kMinimum, Op::kReduceMax, Op::kReshape,  Op::kSelect,
                         Op::kSlice,   Op::kSplit,     Op::kTranspose};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

// Operators that give whole numbers of whole numbers.
bool KeepsWhole(Op op) {
  constexpr Op kOps[] = {Op::kAbs, Op::kAdd,       Op::kMul,    Op::kNeg,
                         Op::kPad, Op::kReduceSum, Op::kSquare, Op::kSub};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

}  // namespace

const TorchFacts* FactsOf(const ValueRef& value) {
  if (value == nullptr || value->facts == nullptr) return nullptr;
  return &static_cast<const TorchFacts&>(*value->facts);
}

int64_t TorchTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return 0;
    case DType::kInt8:
      return 1;
    case DType::kInt16:
      return 2;
    case DType::kInt32:
      return 3;
    case DType::kInt64:
      return kTorchLong;
    case DType::kFloat64:
      return kTorchDouble;
    case DType::kBool:
      return kTorchBool;
    default:
      return kTorchFloat;
  }
}

int64_t TorchTypeOf(const ValueRef& value) {
  const TorchFacts* const facts = FactsOf(value);
  return facts != nullptr ? facts->type : TorchTypeOf(value->type.dtype);
}

bool IsTorchFloat(int64_t type) {
  return type == kTorchHalf || type == kTorchFloat || type == kTorchDouble ||
         type == kTorchBFloat16;
}

bool IsTruth(const ValueRef& value) { return TorchTypeOf(value) == kTorchBool; }

DType ElementTypeOf(int64_t type) {
  constexpr DType kTypes[] = {DType::kUint8, DType::kInt8,    DType::kInt16,   DType::kInt32,
                              DType::kInt64, DType::kFloat32, DType::kFloat32, DType::kFloat64};
  if (type == kTorchBool) return DType::kBool;
  if (type == kTorchBFloat16) return DType::kFloat32;
  return type >= 0 && type <= kTorchDouble ? kTypes[type] : DType::kInvalid;
}

ValueRef WithTorchType(const ValueRef& value, int64_t type) {
  if (TorchTypeOf(value) == type) return value;
  auto facts = std::make_shared<TorchFacts>();
  if (const TorchFacts* const known = FactsOf(value)) *facts = *known;
  facts->type = type;
  auto typed = std::make_shared<ImportValue>(*value);
  typed->facts = std::move(facts);
  return typed;
}

int64_t CommonType(absl::Span<const ValueRef> values) {
  const int64_t first = TorchTypeOf(values[0]);
  int64_t common = first;
  int64_t of_floats = -1;  // there is none yet
  for (const ValueRef& value : values) {
    const int64_t type = TorchTypeOf(value);
    if (type != first) common = kTorchLong;
    if (!IsTorchFloat(type) || of_floats == kTorchDouble) continue;
    const bool is_first = of_floats < 0 || type == of_floats;
    of_floats = is_first || type == kTorchDouble ? type : kTorchFloat;
  }
  return of_floats < 0 ? common : of_floats;
}

int64_t ResultType(Op op, absl::Span<const ValueRef> operands) {
  if (operands.empty()) return kTorchFloat;
  if (op == Op::kGather) return TorchTypeOf(operands[0]);
  if (op == Op::kSelect) return CommonType(operands.subspan(1));
  // A known number beside data of a float type takes that type.
  std::vector<ValueRef> counted;
  for (const ValueRef& operand : operands) {
    const bool is_number = frontend::IsKnown(operand) && IsTorchFloat(TorchTypeOf(operand));
    if (!is_number) counted.push_back(operand);
  }
  const int64_t of_data = counted.empty() ? kTorchFloat : CommonType(counted);
  const bool all_counted = counted.size() == operands.size();
  if (IsTorchFloat(of_data)) return of_data;
  if (!all_counted) return kTorchFloat;
  if (PicksElements(op) || (op == Op::kMul && of_data == kTorchBool)) return of_data;
  return KeepsWhole(op) ? kTorchLong : kTorchFloat;
}

}  // namespace npuc::pt
