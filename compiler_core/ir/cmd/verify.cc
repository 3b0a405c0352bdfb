#include "compiler_core/ir/cmd/verify.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/cmd/access.h"
#include "compiler_core/ir/cmd/raw_forms.h"

namespace npuc {
namespace {

using Kind = VectorCommand::Kind;
using Problems = std::vector<std::string>;

constexpr size_t kMaxReported = 20;

bool Writable(Slot slot) {
  return slot == Slot::kData || slot == Slot::kOutput || slot == Slot::kTmp;
}

void CheckPresence(absl::string_view name, const Operand& operand, bool wanted,
                   Problems& problems) {
  if (operand.present() == wanted) return;
  problems.push_back(
      absl::StrCat("operand ", name, wanted ? " is missing" : " has no meaning here"));
}

void CheckVectorOperands(const VectorCommand& v, Problems& problems) {
  const bool needs_b = HasTwoSources(v);
  CheckPresence("a", v.a, !v.a_is_immediate, problems);
  CheckPresence("b", v.b, needs_b, problems);
  CheckPresence("c", v.c, v.kind == Kind::kBatchNorm, problems);
  CheckPresence("d", v.d, true, problems);
  if (v.a_is_immediate && v.kind != Kind::kTensorTensor) {
    problems.push_back("only tensor_tensor takes an immediate in place of operand a");
  }
}

void CheckVectorFields(const VectorCommand& v, Problems& problems) {
  constexpr std::array<int, 3> kMaxExtent = {4095, 4095, 255};
  constexpr std::array<absl::string_view, 3> kExtentName = {"outer", "middle", "inner"};
  for (size_t i = 0; i < v.extents.size(); ++i) {
    if (v.extents[i] >= 1 && v.extents[i] <= kMaxExtent[i]) continue;
    problems.push_back(
        absl::StrCat(kExtentName[i], " extent ", v.extents[i], " is outside 1..", kMaxExtent[i]));
  }
  if (v.kind == Kind::kPool) {
    if (v.window_h < 1 || v.window_h > 15 || v.window_w < 1 || v.window_w > 15) {
      problems.push_back(
          absl::StrCat("pool window ", v.window_h, "x", v.window_w, " is outside 1..15 each way"));
    } else if (v.window_h > v.extents[0] || v.window_w > v.extents[1]) {
      problems.push_back(absl::StrCat("pool window ", v.window_h, "x", v.window_w,
                                      " is larger than its input ", v.extents[0], "x",
                                      v.extents[1]));
    }
  }
  const Arithmetic op = v.arithmetic;
  if ((v.kind == Kind::kTensorVector || v.kind == Kind::kTensorTensor) && op > Arithmetic::kDiv) {
    problems.push_back(absl::StrCat(NameOf(v.kind), " has no ", NameOf(op)));
  }
}

void CheckFullyConnected(const FullyConnectedCommand& fc, Problems& problems) {
  CheckPresence("a", fc.a, true, problems);
  CheckPresence("codes", fc.codes, true, problems);
  CheckPresence("d", fc.d, true, problems);
  constexpr int kMaxBlocks = 255;  // the block counts have 8 bits
  if (fc.n < 1 || fc.n > 32 * kMaxBlocks) {
    problems.push_back(absl::StrCat("n = ", fc.n, " is outside 1..", 32 * kMaxBlocks));
  }
  if (fc.k < 1 || fc.k > 32 * kMaxBlocks) {
    problems.push_back(absl::StrCat("k = ", fc.k, " is outside 1..", 32 * kMaxBlocks));
  }
  const absl::StatusOr<WeightForm> form = ParseWeightForm(WordOf(fc.form), fc.mask.present());
  if (!form.ok()) problems.push_back(std::string(form.status().message()));
  if (fc.form.book_bits > 0 && (fc.min != 0 || fc.step != 0)) {
    problems.push_back("weights have both a book and a range");
  }
  const int64_t bits = int64_t{1024} * ((fc.n + 31) / 32) * ((fc.k + 31) / 32);
  if (fc.mask.present() && bits > 65535) {
    problems.push_back(absl::StrCat("n x k, each rounded up to 32, is ", bits,
                                    "; compressed weights allow 65535"));
  }
}

void CheckAccess(absl::Span<const Buffer> buffers, const Access& access, Problems& problems) {
  const absl::string_view name = NameOf(access.role);
  const Operand& operand = access.operand;
  if (static_cast<size_t>(operand.buffer.value()) >= buffers.size()) {
    problems.push_back(absl::StrCat("operand ", name, " names buffer ", operand.buffer.value(),
                                    " of ", buffers.size()));
    return;
  }
  const Buffer& buffer = buffers[static_cast<size_t>(operand.buffer.value())];
  const int64_t size = access.size_bytes == Access::kUnknown ? 1 : access.size_bytes;
  if (operand.offset_bytes < 0 || operand.offset_bytes > buffer.size_bytes ||
      size > buffer.size_bytes - operand.offset_bytes) {
    problems.push_back(absl::StrCat("operand ", name, " takes ", size, " bytes at ",
                                    NameOf(buffer.slot), "+", operand.offset_bytes,
                                    " of a buffer of ", buffer.size_bytes, " bytes"));
  }
  if (operand.offset_bytes % 2 != 0 && access.role != OperandRole::kCodes &&
      access.role != OperandRole::kMask) {
    problems.push_back(absl::StrCat("operand ", name, " is at odd offset ", operand.offset_bytes));
  }
  if (access.writes && !Writable(buffer.slot)) {
    problems.push_back(absl::StrCat("operand ", name, " is written in slot ", NameOf(buffer.slot)));
  }
  if (!access.writes && (buffer.slot == Slot::kCompletion || buffer.slot == Slot::kImmediate)) {
    problems.push_back(absl::StrCat("operand ", name, " is read from slot ", NameOf(buffer.slot)));
  }
}

int64_t SlotBytes(const Program& program, Slot slot) {
  const auto ports = [](const std::vector<PortTensor>& tensors) {
    int64_t end = 0;
    for (const PortTensor& port : tensors) {
      end = std::max(end, port.offset_bytes + ElementCount(port.shape) * SizeOf(port.dtype));
    }
    return end;
  };
  switch (slot) {
    case Slot::kData:
      return program.data_bytes;
    case Slot::kWeight:
      return static_cast<int64_t>(program.weights.size());
    case Slot::kInput:
      return ports(program.inputs);
    case Slot::kOutput:
      return ports(program.outputs);
    default:
      return 0;
  }
}

}  // namespace

std::vector<std::string> CommandProblems(absl::Span<const Buffer> buffers, const Command& command) {
  Problems problems;
  if (const auto* v = std::get_if<VectorCommand>(&command.body)) {
    CheckVectorOperands(*v, problems);
    CheckVectorFields(*v, problems);
  } else if (const auto* fc = std::get_if<FullyConnectedCommand>(&command.body)) {
    CheckFullyConnected(*fc, problems);
  } else {
    const RawCommand& raw = std::get<RawCommand>(command.body);
    CheckPresence("a", raw.a, true, problems);
    CheckPresence("d", raw.d, true, problems);
    CheckPresence("weights", raw.weights, raw.opcode != 0x43, problems);
    if (raw.opcode != 0x41) CheckPresence("mask", raw.mask, false, problems);
  }
  for (const Access& access : AccessesOf(command)) CheckAccess(buffers, access, problems);
  return problems;
}

absl::Status VerifyProgram(const Program& program) {
  Problems all;
  size_t count = 0;
  const auto add = [&](std::string problem) {
    if (++count <= kMaxReported) all.push_back(std::move(problem));
  };
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& buffer = program.buffers[i];
    const std::string where = absl::StrCat("buffer ", i, " (", Printable(buffer.name), "): ");
    if (buffer.size_bytes < 0) add(absl::StrCat(where, "negative size ", buffer.size_bytes));
    if (buffer.offset_bytes < 0) continue;
    const int64_t slot_bytes = SlotBytes(program, buffer.slot);
    if (buffer.offset_bytes > slot_bytes || buffer.size_bytes > slot_bytes - buffer.offset_bytes) {
      add(absl::StrCat(where, buffer.size_bytes, " bytes at ", NameOf(buffer.slot), "+",
                       buffer.offset_bytes, ", but the slot has ", slot_bytes));
    }
  }
  for (size_t i = 0; i < program.commands.size(); ++i) {
    const Command& command = program.commands[i];
    for (const std::string& problem : CommandProblems(program.buffers, command)) {
      add(absl::StrCat("command ", i, " (node ", Printable(command.node), "): ", problem));
    }
  }
  if (count == 0) return absl::OkStatus();
  if (count > all.size()) all.push_back(absl::StrCat("and ", count - all.size(), " more"));
  return absl::InternalError(absl::StrCat("faulty program: ", absl::StrJoin(all, "; ")));
}

}  // namespace npuc
