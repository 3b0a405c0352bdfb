#include "compiler_core/ir/cmd/access.h"

#include <array>

#include "compiler_core/ir/cmd/raw_forms.h"

namespace npuc {
namespace {

using Kind = VectorCommand::Kind;

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

// Sizes of a raw command's operands; kUnknown where its words say too little.
struct RawSizes {
  int64_t a = Access::kUnknown;
  int64_t weights = Access::kUnknown;
  int64_t mask = Access::kUnknown;
  int64_t d = Access::kUnknown;
  int64_t work = 0;
};

RawSizes SizesOf(const RawCommand& raw) {
  RawSizes sizes;
  if (raw.opcode == 0x41) {
    const absl::StatusOr<ConvolutionForm> form = ParseConvolution(raw);
    if (!form.ok()) return sizes;
    const int64_t outputs = int64_t{1} * form->out_h * form->out_w * form->out_c;
    const int64_t taps = int64_t{1} * form->kernel_h * form->kernel_w * form->in_c;
    sizes.a = kHalfBytes * form->in_h * form->in_w * form->in_c;
    sizes.d = kHalfBytes * outputs;
    sizes.work = outputs * taps;
    sizes.mask = (form->mask_bits + 7) / 8;
    if (!form->compressed) {
      sizes.weights = kHalfBytes * (taps * form->out_c + (form->bias ? form->out_c : 0));
    }
  } else if (raw.opcode == 0x42) {
    const absl::StatusOr<DepthwiseForm> form = ParseDepthwise(raw);
    if (!form.ok()) return sizes;
    const int64_t channels = int64_t{1} * form->channels * form->multiplier;
    const int64_t taps = int64_t{1} * form->kernel_h * form->kernel_w;
    sizes.a = kHalfBytes * form->channels * form->in_h * form->in_w;
    sizes.d = kHalfBytes * channels * form->out_h * form->out_w;
    sizes.weights = kHalfBytes * channels * (taps + (form->bias ? 1 : 0));
    sizes.work = channels * form->out_h * form->out_w * taps;
  } else {
    const absl::StatusOr<TransposeForm> form = ParseTranspose(raw);
    if (!form.ok()) return sizes;
    sizes.work = int64_t{1} * form->rows * form->columns;
    sizes.a = sizes.d = kHalfBytes * sizes.work;
  }
  return sizes;
}

void AddRawAccesses(const RawCommand& raw, std::vector<Access>& out) {
  const RawSizes sizes = SizesOf(raw);
  if (raw.a.present()) out.push_back({OperandRole::kA, raw.a, false, sizes.a});
  if (raw.weights.present()) {
    out.push_back({OperandRole::kCodes, raw.weights, false, sizes.weights});
  }
  if (raw.mask.present()) out.push_back({OperandRole::kMask, raw.mask, false, sizes.mask});
  if (raw.d.present()) out.push_back({OperandRole::kD, raw.d, true, sizes.d});
}

}  // namespace

std::vector<Access> AccessesOf(const Command& command) {
  constexpr size_t kMostOperands = 4;
  std::vector<Access> out;
  out.reserve(kMostOperands);
  if (const auto* v = std::get_if<VectorCommand>(&command.body)) {
    AddVectorAccesses(*v, out);
  } else if (const auto* fc = std::get_if<FullyConnectedCommand>(&command.body)) {
    AddFullyConnectedAccesses(*fc, out);
  } else {
    AddRawAccesses(std::get<RawCommand>(command.body), out);
  }
  return out;
}

std::vector<int32_t> StatesUnderOutputs(const Program& program) {
  std::vector<int32_t> inputs;
  std::vector<int32_t> under(program.buffers.size(), -1);
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    if (program.buffers[i].slot == Slot::kInput) inputs.push_back(static_cast<int32_t>(i));
  }
  size_t output = 0;  // buffers of outputs come in their order
  for (size_t i = 0; i < program.buffers.size() && output < program.outputs.size(); ++i) {
    if (program.buffers[i].slot != Slot::kOutput) continue;
    const int state = program.outputs[output++].state_input;
    if (state >= 0 && static_cast<size_t>(state) < inputs.size()) under[i] = inputs[state];
  }
  return under;
}

int64_t WorkOf(const Command& command) {
  if (const auto* v = std::get_if<VectorCommand>(&command.body)) {
    return int64_t{1} * v->extents[0] * v->extents[1] * v->extents[2];
  }
  if (const auto* fc = std::get_if<FullyConnectedCommand>(&command.body)) {
    return int64_t{1} * fc->n * fc->k;
  }
  return SizesOf(std::get<RawCommand>(command.body)).work;
}

bool HasTwoSources(const VectorCommand& command) {
  return command.kind == Kind::kTensorVector || command.kind == Kind::kTensorTensor ||
         command.kind == Kind::kBatchNorm;
}

absl::string_view NameOf(const Command& command) {
  if (const auto* v = std::get_if<VectorCommand>(&command.body)) return NameOf(v->kind);
  if (std::holds_alternative<FullyConnectedCommand>(command.body)) return "fully_connected";
  return NameOfOpcode(std::get<RawCommand>(command.body).opcode);
}

absl::string_view NameOfOpcode(uint8_t opcode) {
  switch (opcode) {
    case 0x41:
      return "convolution";
    case 0x42:
      return "depthwise";
    case 0x43:
      return "transpose";
    default:
      return "raw";
  }
}

absl::string_view NameOf(OperandRole role) {
  constexpr std::array<absl::string_view, 10> kNames = {
      "a", "b", "c", "d", "codes", "mask", "weights", "bias", "factors", "table"};
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
