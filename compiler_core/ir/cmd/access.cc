#include "compiler_core/ir/cmd/access.h"

#include <array>

namespace npuc {
namespace {

using Kind = VectorCommand::Kind;

constexpr int64_t kHalfBytes = 2;
constexpr int64_t kFloatBytes = 4;

// Elements from the first to behind the last one of a strided walk.
int64_t WalkElements(int64_t outer, int64_t outer_stride, int64_t middle, int64_t middle_stride,
                     int64_t inner) {
  if (outer <= 0 || middle <= 0 || inner <= 0) return 0;
  return (outer - 1) * outer_stride + (middle - 1) * middle_stride + inner;
}

int64_t DestinationBytes(const VectorCommand& v) {
  const int64_t outer = v.extents[0];
  const int64_t middle = v.extents[1];
  const int64_t inner = v.extents[2];
  switch (v.kind) {
    case Kind::kPool: {
      if (v.window_h == 0 || v.window_w == 0) return 0;
      return kHalfBytes * WalkElements(outer / v.window_h, v.d_outer_stride, middle / v.window_w,
                                       v.d_middle_stride, inner);
    }
    case Kind::kReduce:
      if (v.reduce_middle) {
        return kHalfBytes * WalkElements(outer, v.d_outer_stride, 1, 0, inner);
      }
      return kHalfBytes * WalkElements(outer, v.d_outer_stride, middle, v.d_middle_stride, 1);
    case Kind::kFormat:
      return kFloatBytes * WalkElements(outer, v.d_outer_stride, middle, v.d_middle_stride, inner);
    default:
      return kHalfBytes * WalkElements(outer, v.d_outer_stride, middle, v.d_middle_stride, inner);
  }
}

void AddVectorAccesses(const VectorCommand& v, std::vector<Access>& out) {
  const int64_t walk = kHalfBytes * WalkElements(v.extents[0], v.a_outer_stride, v.extents[1],
                                                 v.a_middle_stride, v.extents[2]);
  const int64_t row = kHalfBytes * v.extents[2];
  if (v.a.present()) out.push_back({OperandRole::kA, v.a, false, walk});
  if (v.b.present()) {
    const int64_t size = v.kind == Kind::kTensorTensor ? walk : row;
    out.push_back({OperandRole::kB, v.b, false, size});
  }
  if (v.c.present()) out.push_back({OperandRole::kC, v.c, false, row});
  if (v.d.present()) out.push_back({OperandRole::kD, v.d, true, DestinationBytes(v)});
}

void AddFullyConnectedAccesses(const FullyConnectedCommand& fc, std::vector<Access>& out) {
  const int64_t n = fc.n;
  const int64_t k = fc.k;
  if (fc.a.present()) out.push_back({OperandRole::kA, fc.a, false, kHalfBytes * k});
  if (fc.codes.present()) {
    const int64_t size = fc.mask.present() ? Access::kUnknown : kHalfBytes * n * k;
    out.push_back({OperandRole::kCodes, fc.codes, false, size});
  }
  if (fc.mask.present()) {
    // One bit for each weight of whole 32 x 32 blocks.
    const int64_t blocks = ((n + 31) / 32) * ((k + 31) / 32);
    out.push_back({OperandRole::kMask, fc.mask, false, blocks * 32 * 32 / 8});
  }
  if (fc.d.present()) out.push_back({OperandRole::kD, fc.d, true, kHalfBytes * n});
}

}  // namespace

std::vector<Access> AccessesOf(const Command& command) {
  std::vector<Access> out;
  if (const auto* v = std::get_if<VectorCommand>(&command.body)) {
    AddVectorAccesses(*v, out);
  } else if (const auto* fc = std::get_if<FullyConnectedCommand>(&command.body)) {
    AddFullyConnectedAccesses(*fc, out);
  } else {
    const RawCommand& raw = std::get<RawCommand>(command.body);
    const auto add = [&out](OperandRole role, const Operand& operand, bool writes) {
      if (operand.present()) out.push_back({role, operand, writes, Access::kUnknown});
    };
    add(OperandRole::kA, raw.a, false);
    add(OperandRole::kCodes, raw.weights, false);
    add(OperandRole::kMask, raw.mask, false);
    add(OperandRole::kD, raw.d, true);
  }
  return out;
}

int64_t WorkOf(const Command& command) {
  if (const auto* v = std::get_if<VectorCommand>(&command.body)) {
    return int64_t{1} * v->extents[0] * v->extents[1] * v->extents[2];
  }
  if (const auto* fc = std::get_if<FullyConnectedCommand>(&command.body)) {
    return int64_t{1} * fc->n * fc->k;
  }
  return 0;
}

bool HasTwoSources(const VectorCommand& command) {
  return command.kind == Kind::kTensorVector || command.kind == Kind::kTensorTensor ||
         command.kind == Kind::kBatchNorm;
}

absl::string_view NameOf(OperandRole role) {
  constexpr std::array<absl::string_view, 6> kNames = {"a", "b", "c", "d", "codes", "mask"};
  return kNames[static_cast<size_t>(role)];
}

absl::string_view NameOf(Slot slot) {
  constexpr std::array<absl::string_view, kSlotCount> kNames = {
      "ops", "data", "cmd", "input", "output", "tmp", "weight", "completion", "immediate"};
  return kNames[static_cast<size_t>(slot)];
}

absl::string_view NameOf(VectorCommand::Kind kind) {
  constexpr std::array<absl::string_view, 9> kNames = {
      "activation",    "pool",          "copy",   "reduce",    "tensor_vector",
      "tensor_tensor", "tensor_scalar", "format", "batch_norm"};
  return kNames[static_cast<size_t>(kind)];
}

absl::string_view NameOf(Arithmetic arithmetic) {
  constexpr std::array<absl::string_view, 7> kNames = {"add", "sub", "mul", "div",
                                                       "pow", "exp", "log"};
  return kNames[static_cast<size_t>(arithmetic)];
}

absl::string_view NameOf(Activation activation) {
  constexpr std::array<absl::string_view, 5> kNames = {"none", "relu", "sigmoid", "tanh", "selu"};
  return kNames[static_cast<size_t>(activation)];
}

}  // namespace npuc
