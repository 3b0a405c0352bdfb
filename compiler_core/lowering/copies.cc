#include "compiler_core/lowering/copies.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "compiler_core/base/rounding.h"
#include "compiler_core/ir/cmd/access.h"

namespace npuc {
namespace {

// Uses, commands and points of time that are looked at, in all.
constexpr int64_t kMaxSteps = 20'000'000;

// Bytes [begin, end) of a buffer that a command reads or writes: of them `rows` equal stretches,
// `stride` bytes from begin to begin.
struct Use {
  int32_t command = 0;
  int64_t begin = 0;
  int64_t end = 0;
  bool writes = false;
  int64_t rows = 1;
  int64_t stride = 0;
};
using Uses = std::vector<Use>;  // in the order of commands

bool Overlaps(const Use& use, int64_t begin, int64_t end) {
  if (use.begin >= end || begin >= use.end) return false;
  if (use.rows == 1) return true;
  const int64_t row_bytes = use.end - use.begin - (use.rows - 1) * use.stride;
  if (use.stride <= row_bytes) return true;
  // The first row that ends behind `begin`; there is one.
  const int64_t row = std::max<int64_t>(0, DivideUp(begin + 1 - use.begin - row_bytes, use.stride));
  return use.begin + row * use.stride < end;
}

// Commands [first, last] that together copy `bytes` contiguous bytes.
struct Copy {
  int32_t first = 0;
  int32_t last = 0;
  Operand a, d;
  int64_t bytes = 0;
};

// Bytes of a copy that is contiguous on both sides; 0 for other commands.
int64_t CopiedBytes(const Command& command) {
  const auto* v = std::get_if<VectorCommand>(&command.body);
  if (v == nullptr || v->kind != VectorCommand::Kind::kCopy) return 0;
  const int64_t row = v->extents[2];
  const int64_t plane = row * v->extents[1];
  const bool rows_meet =
      v->extents[1] == 1 || (v->a_middle_stride == row && v->d_middle_stride == row);
  const bool planes_meet =
      v->extents[0] == 1 || (v->a_outer_stride == plane && v->d_outer_stride == plane);
  return rows_meet && planes_meet ? kHalfBytes * plane * v->extents[0] : 0;
}

// True where the command computes each element of d from that of a, and of b, at the same place.
bool IsElementWise(const VectorCommand& v) {
  return v.kind == VectorCommand::Kind::kActivation ||
         v.kind == VectorCommand::Kind::kTensorScalar ||
         v.kind == VectorCommand::Kind::kTensorTensor;
}

// True where an element of the function takes no longer than one of a copy.
bool IsAsFastAsACopy(const VectorCommand& v) {
  return v.kind == VectorCommand::Kind::kActivation ? v.activation == Activation::kRelu
                                                    : v.arithmetic <= Arithmetic::kMul;
}

// The bytes of d that an element-wise command writes, where all its operands are contiguous; else
// 0.
int64_t ContiguousBytes(const Command& command) {
  const auto* v = std::get_if<VectorCommand>(&command.body);
  if (v == nullptr || !IsElementWise(*v)) return 0;
  VectorCommand walk = *v;
  walk.kind = VectorCommand::Kind::kCopy;
  Command copy;
  copy.body = walk;
  return CopiedBytes(copy);
}

// Calls visit(operand) with each operand of the command.
template <typename Visit>
void ForEachOperand(Command& command, const Visit& visit) {
  if (auto* v = std::get_if<VectorCommand>(&command.body)) {
    for (Operand* operand : {&v->a, &v->b, &v->c, &v->d}) visit(*operand);
  } else if (auto* fc = std::get_if<FullyConnectedCommand>(&command.body)) {
    for (Operand* operand : {&fc->a, &fc->d}) visit(*operand);
  } else {
    auto& raw = std::get<RawCommand>(command.body);
    for (Operand* operand : {&raw.a, &raw.d}) visit(*operand);
  }
}

// The bytes that command i reads or writes by `access` in a buffer of so many bytes.
Use UseOf(const Command& command, int32_t i, const Access& access, int64_t buffer_bytes) {
  Use use{i, access.operand.offset_bytes, buffer_bytes, access.writes};
  if (access.size_bytes == Access::kUnknown) return use;
  use.end = use.begin + access.size_bytes;
  const auto* v = std::get_if<VectorCommand>(&command.body);
  if (v == nullptr || access.role != OperandRole::kD ||
      (v->kind != VectorCommand::Kind::kCopy && !IsElementWise(*v))) {
    return use;
  }
  const bool by_outer = v->extents[0] > 1;
  use.rows = by_outer ? v->extents[0] : v->extents[1];
  use.stride = kHalfBytes * (by_outer ? v->d_outer_stride : v->d_middle_stride);
  return use;
}

class CopyDropper {
 public:
  explicit CopyDropper(Program& program)
      : program_(program),
        uses_(program.buffers.size()),
        under_(StatesUnderOutputs(program)),
        removed_(program.commands.size(), false),
        alive_(program.commands.size(), 0) {
    for (size_t i = 0; i < program.commands.size(); ++i) {
      for (const Access& access : AccessesOf(program.commands[i])) {
        const int32_t id = access.operand.buffer.value();
        const Buffer& buffer = program.buffers[id];
        if (!IsTracked(buffer.slot)) continue;
        uses_[id].push_back(
            UseOf(program.commands[i], static_cast<int32_t>(i), access, buffer.size_bytes));
      }
    }
    for (size_t i = 0; i < uses_.size(); ++i) Count(static_cast<int32_t>(i), 1);
    if (!alive_.empty()) peak_ = *std::max_element(alive_.begin(), alive_.end());
  }

  void Run() {
    // Outputs first: a result that is written there at once needs no other place.
    ForEachCopy(
        [&](const Copy& copy) { return SlotOf(copy.d) == Slot::kOutput && WriteInPlace(copy); });
    constexpr int kMostRounds = 4;
    bool changed = true;
    for (int round = 0; changed && round < kMostRounds; ++round) {
      changed =
          ForEachCopy([&](const Copy& copy) { return WriteInPlace(copy) || ReadOriginal(copy); });
    }
    const int32_t count = static_cast<int32_t>(program_.commands.size());
    for (int32_t i = 0; i < count && steps_ <= kMaxSteps; ++i) {
      ComputeInCopies(i);
    }
    for (int32_t i = 0; i < count && steps_ <= kMaxSteps; ++i) {
      if (!removed_[i] && Waits(i)) ComputeInParts(i);
    }
    Compact();
  }

 private:
  static bool IsTracked(Slot slot) {
    return slot == Slot::kData || slot == Slot::kInput || slot == Slot::kOutput;
  }
  Slot SlotOf(Operand operand) const { return program_.buffers[operand.buffer.value()].slot; }
  int64_t SizeOf(int32_t id) const { return program_.buffers[id].size_bytes; }
  bool Waits(int32_t i) const { return program_.commands[i].waits; }

  bool Spend(int64_t steps) {
    steps_ += steps;
    return steps_ <= kMaxSteps;
  }

  // Calls drop(copy) with each copy in order; whether it returned true for any.
  template <typename Drop>
  bool ForEachCopy(const Drop& drop) {
    bool dropped = false;
    const int32_t count = static_cast<int32_t>(program_.commands.size());
    for (int32_t i = 0; i < count && steps_ <= kMaxSteps; ++i) {
      const std::optional<Copy> copy = CopyFrom(i);
      if (!copy.has_value()) continue;
      i = copy->last;
      if (!EndsWithVectorWithout(*copy) || !drop(*copy)) continue;
      std::fill(removed_.begin() + copy->first, removed_.begin() + copy->last + 1, true);
      dropped = true;
    }
    return dropped;
  }

  // True where the program's last command is one of 0x01 without this copy, too: a stream must end
  // so.
  bool EndsWithVectorWithout(const Copy& copy) const {
    int32_t last = static_cast<int32_t>(program_.commands.size()) - 1;
    while (last >= 0 && (removed_[last] || (last >= copy.first && last <= copy.last))) --last;
    return last >= 0 && std::holds_alternative<VectorCommand>(program_.commands[last].body);
  }

  // The copy that begins with command i.
  std::optional<Copy> CopyFrom(int32_t i) const {
    const int64_t bytes = removed_[i] ? 0 : CopiedBytes(program_.commands[i]);
    if (bytes == 0) return std::nullopt;
    const auto& begin = std::get<VectorCommand>(program_.commands[i].body);
    Copy copy{i, i, begin.a, begin.d, bytes};
    const int32_t count = static_cast<int32_t>(program_.commands.size());
    for (int32_t next = i + 1; next < count && !removed_[next] && !Waits(next); ++next) {
      const int64_t more = CopiedBytes(program_.commands[next]);
      if (more == 0) break;
      const auto& v = std::get<VectorCommand>(program_.commands[next].body);
      if (v.a != copy.a.Plus(copy.bytes) || v.d != copy.d.Plus(copy.bytes)) break;
      copy.last = next;
      copy.bytes += more;
    }
    return copy;
  }

  // The first and the last command of the step that command i is in: these may run together.
  int32_t StepBegin(int32_t i) {
    const int32_t from = i;
    while (i > 0 && !Waits(i)) --i;
    Spend(from - i);
    return i;
  }
  int32_t StepEnd(int32_t i) {
    const int32_t from = i;
    const int32_t count = static_cast<int32_t>(program_.commands.size());
    while (i + 1 < count && !Waits(i + 1)) ++i;
    Spend(i - from);
    return i;
  }

  // Adds the buffer's bytes to those alive while it is used, or takes them away.
  void Count(int32_t id, int64_t sign) {
    if (program_.buffers[id].slot != Slot::kData || uses_[id].empty()) return;
    CountBytes(uses_[id].front().command, uses_[id].back().command, sign * SizeOf(id));
  }
  void CountBytes(int32_t first, int32_t last, int64_t bytes) {
    for (int32_t t = first; t <= last; ++t) alive_[t] += bytes;
    Spend(last - first);
  }

  // CanAfford: the bytes alive stay within the peak where `gone` is used no more and `kept` is used
  // in [first, last] as well.
  bool CanAfford(int32_t gone, int32_t kept, int32_t first, int32_t last) {
    if (program_.buffers[kept].slot != Slot::kData) return true;
    first = std::min(first, uses_[kept].front().command);
    last = std::max(last, uses_[kept].back().command);
    Count(gone, -1);
    Count(kept, -1);
    CountBytes(first, last, SizeOf(kept));
    const bool fits = *std::max_element(alive_.begin() + first, alive_.begin() + last + 1) <= peak_;
    CountBytes(first, last, -SizeOf(kept));
    Count(kept, 1);
    Count(gone, 1);
    return fits;
  }

  // Makes all uses of buffer `from`, but for the copy, uses of `to` that begin at its byte `at`.
  void Redirect(const Copy& copy, int32_t from, int32_t to, int64_t at) {
    const auto is_copy = [&](const Use& use) {
      return use.command >= copy.first && use.command <= copy.last;
    };
    Count(from, -1);
    Count(to, -1);
    std::erase_if(uses_[to], is_copy);
    std::erase_if(uses_[from], is_copy);
    for (Use& use : uses_[from]) {
      ForEachOperand(program_.commands[use.command], [&](Operand& operand) {
        if (operand.present() && operand.buffer.value() == from) {
          operand = {BufferId(to), operand.offset_bytes + at};
        }
      });
      use.begin += at;
      use.end += at;
    }
    Uses merged;
    merged.reserve(uses_[from].size() + uses_[to].size());
    std::merge(uses_[from].begin(), uses_[from].end(), uses_[to].begin(), uses_[to].end(),
               std::back_inserter(merged),
               [](const Use& x, const Use& y) { return x.command < y.command; });
    Spend(static_cast<int64_t>(merged.size()));
    uses_[to] = std::move(merged);
    uses_[from].clear();
    Count(to, 1);
  }

  // Adds the uses that command i makes of its operands, which its buffers do not have yet.
  void AddUses(int32_t i) {
    for (const Access& access : AccessesOf(program_.commands[i])) {
      const int32_t id = access.operand.buffer.value();
      if (!IsTracked(program_.buffers[id].slot)) continue;
      const Use use = UseOf(program_.commands[i], i, access, SizeOf(id));
      Uses& uses = uses_[id];
      uses.insert(
          std::upper_bound(uses.begin(), uses.end(), use,
                           [](const Use& x, const Use& y) { return x.command < y.command; }),
          use);
      Spend(static_cast<int64_t>(uses.size()));
    }
  }
  void RemoveUses(int32_t i) {
    for (const Access& access : AccessesOf(program_.commands[i])) {
      Uses& uses = uses_[access.operand.buffer.value()];
      Spend(static_cast<int64_t>(uses.size()));
      std::erase_if(uses, [i](const Use& use) { return use.command == i; });
    }
  }

  // Element-wise commands [first, last] that together write all of one buffer from its begin on,
  // and nothing else.
  struct Producer {
    int32_t first = 0;
    int32_t last = 0;
    Operand a, b;  // that belong to the buffer's begin
  };
  std::optional<Producer> ProducerOf(int32_t buffer, int32_t i) {
    if (removed_[i]) return std::nullopt;
    const auto* begin = std::get_if<VectorCommand>(&program_.commands[i].body);
    if (begin == nullptr) return std::nullopt;
    Producer producer{i, i, begin->a, begin->b};
    int64_t bytes = 0;
    for (int32_t at = i; bytes < SizeOf(buffer); ++at) {
      if (at >= static_cast<int32_t>(program_.commands.size()) || removed_[at] ||
          (at > i && Waits(at))) {
        return std::nullopt;
      }
      const int64_t more = ContiguousBytes(program_.commands[at]);
      if (more == 0) return std::nullopt;
      VectorCommand v = std::get<VectorCommand>(program_.commands[at].body);
      const bool follows = v.d == Operand{BufferId(buffer), bytes} &&
                           (!v.a.present() || v.a == producer.a.Plus(bytes)) &&
                           (!v.b.present() || v.b == producer.b.Plus(bytes));
      if (!follows || !IsSameFunction(v, *begin)) return std::nullopt;
      producer.last = at;
      bytes += more;
    }
    return bytes == SizeOf(buffer) ? std::optional(producer) : std::nullopt;
  }

  static bool IsSameFunction(const VectorCommand& x, const VectorCommand& y) {
    return x.kind == y.kind && x.arithmetic == y.arithmetic && x.activation == y.activation &&
           x.immediate == y.immediate && x.a_is_immediate == y.a_is_immediate &&
           x.a.present() == y.a.present() && x.b.present() == y.b.present();
  }

  // The last command that reads input `id`, -1 where none does.
  int32_t LastRead(int32_t id) const {
    return id < 0 || uses_[id].empty() ? -1 : uses_[id].back().command;
  }

  // Drops a copy of a whole buffer: the commands that write the buffer write to the copy's place.
  bool WriteInPlace(const Copy& copy) {
    const int32_t from = copy.a.buffer.value();
    const int32_t to = copy.d.buffer.value();
    const int64_t begin = copy.d.offset_bytes;
    const int64_t end = begin + copy.bytes;
    const bool is_output = SlotOf(copy.d) == Slot::kOutput;
    if (SlotOf(copy.a) != Slot::kData || from == to || copy.a.offset_bytes != 0 ||
        copy.bytes != SizeOf(from) || (!is_output && SlotOf(copy.d) != Slot::kData)) {
      return false;
    }
    const Uses& uses = uses_[from];
    if (!Spend(static_cast<int64_t>(uses.size() + uses_[to].size()))) return false;
    const int32_t first = StepBegin(uses.front().command);
    const int32_t last = StepEnd(uses.back().command);
    bool is_only_copied = true;
    for (const Use& use : uses) {
      if (use.writes && use.command >= copy.first) return false;
      if (!use.writes && (use.command < copy.first || use.command > copy.last)) {
        is_only_copied = false;
      }
    }
    if (!uses.front().writes || (is_output && !is_only_copied)) return false;
    if (is_output && first <= LastRead(under_[to])) return false;
    for (const Use& use : uses_[to]) {
      const bool is_copy = use.command >= copy.first && use.command <= copy.last;
      if (is_copy || use.command < first || !Overlaps(use, begin, end)) continue;
      if (use.command < copy.first || (use.writes && use.command <= last)) return false;
    }
    if (!CanAfford(from, to, uses.front().command, uses.back().command)) return false;
    Redirect(copy, from, to, begin);
    return true;
  }

  // Drops a copy into a buffer that nothing else writes: its readers read the original.
  bool ReadOriginal(const Copy& copy) {
    const int32_t from = copy.a.buffer.value();
    const int32_t to = copy.d.buffer.value();
    const int64_t begin = copy.a.offset_bytes;
    const int64_t end = begin + copy.bytes;
    if (SlotOf(copy.d) != Slot::kData || from == to || copy.d.offset_bytes != 0 ||
        copy.bytes != SizeOf(to) ||
        (SlotOf(copy.a) != Slot::kData && SlotOf(copy.a) != Slot::kInput)) {
      return false;
    }
    const Uses& uses = uses_[to];
    if (!Spend(static_cast<int64_t>(uses.size() + uses_[from].size()))) return false;
    for (const Use& use : uses) {
      const bool is_copy = use.command >= copy.first && use.command <= copy.last;
      if (use.writes && !is_copy) return false;
    }
    const int32_t last = StepEnd(uses.back().command);
    for (const Use& use : uses_[from]) {
      if (use.writes && use.command >= copy.first && use.command <= last &&
          Overlaps(use, begin, end)) {
        return false;
      }
    }
    if (SlotOf(copy.a) == Slot::kInput && IsStateWrittenBy(from, last)) return false;
    if (!CanAfford(to, from, copy.first, uses.back().command)) return false;
    Redirect(copy, to, from, begin);
    return true;
  }

  // An element-wise result that is only copied, row by row to rows of another length: the copies,
  // of which command i is the first, compute it in their place.
  bool ComputeInCopies(int32_t i) {
    const VectorCommand* copy = CopyAt(i);
    if (copy == nullptr || SlotOf(copy->a) != Slot::kData) return false;
    const int32_t from = copy->a.buffer.value();
    const Uses& uses = uses_[from];
    if (!Spend(static_cast<int64_t>(uses.size()))) return false;
    const auto write =
        std::find_if(uses.rbegin(), uses.rend(), [](const Use& u) { return u.writes; });
    if (write == uses.rend() || write->command >= i) return false;
    const std::optional<Producer> producer = ProducerOf(from, StepBegin(write->command));
    if (!producer.has_value() || producer->last != write->command) return false;
    // Behind the producer only copies use the buffer.
    const bool in_place = IsIn(producer->a, from) || IsIn(producer->b, from);
    std::vector<int32_t> copies;
    int64_t elements = 0;
    for (const Use& use : uses) {
      if (use.command >= producer->first && use.command <= producer->last) continue;
      if (use.command < producer->first) {
        if (!in_place) return false;
        continue;
      }
      const VectorCommand* v = CopyAt(use.command);
      if (v == nullptr || IsIn(v->d, from)) return false;
      elements += int64_t{1} * v->extents[0] * v->extents[1] * v->extents[2];
      copies.push_back(use.command);
    }
    // A slow function is not computed more often than before.
    const auto& function = std::get<VectorCommand>(program_.commands[producer->first].body);
    const bool is_more = kHalfBytes * elements > SizeOf(from);
    if (copies.front() != i || (is_more && !IsAsFastAsACopy(function))) return false;
    int longer = 0;  // sources that would live on; one alone is known to fit beside the others
    for (const Operand& source : {producer->a, producer->b}) {
      if (!source.present() || !IsTracked(SlotOf(source))) continue;
      if (!CanReadLater(*producer, source, from, copies)) return false;
      longer += uses_[source.buffer.value()].back().command < copies.back() ? 1 : 0;
    }
    if (longer > 1) return false;
    MoveIntoCopies(*producer, copies);
    return true;
  }

  // A function of what copies alone gathered, from command i on: the copies compute it at once.
  bool ComputeInParts(int32_t i) {
    const auto* v = std::get_if<VectorCommand>(&program_.commands[i].body);
    if (v == nullptr || !IsElementWise(*v) || !v->a.present() || v->b.present() ||
        SlotOf(v->a) != Slot::kData || SlotOf(v->d) != Slot::kData) {
      return false;
    }
    const int32_t from = v->a.buffer.value();
    const int32_t to = v->d.buffer.value();
    const std::optional<Producer> function = ProducerOf(to, i);
    if (!function.has_value() || from == to || v->a.offset_bytes != 0 ||
        SizeOf(from) != SizeOf(to) ||
        !Spend(static_cast<int64_t>(uses_[from].size() + uses_[to].size()))) {
      return false;
    }
    std::vector<int32_t> copies;
    int64_t elements = 0;
    for (const Use& use : uses_[from]) {
      if (!use.writes && use.command >= i && use.command <= function->last) continue;
      const VectorCommand* copy = CopyAt(use.command);
      if (!use.writes || use.command > i || copy == nullptr || IsIn(copy->a, to)) return false;
      elements += int64_t{1} * copy->extents[0] * copy->extents[1] * copy->extents[2];
      copies.push_back(use.command);
    }
    if (copies.empty() || kHalfBytes * elements != SizeOf(from)) return false;
    for (const Use& use : uses_[to]) {
      if (use.command >= copies.front() && use.command < i) return false;
    }
    if (!CanAfford(from, to, copies.front(), function->last)) return false;
    MoveInto(copies, *function, {from, to}, [&](const VectorCommand& copy, VectorCommand& made) {
      made.a = copy.a;
      made.d = {BufferId(to), copy.d.offset_bytes};
    });
    return true;
  }

  // Command i where it is a copy, else nullptr.
  const VectorCommand* CopyAt(int32_t i) const {
    const auto* v = std::get_if<VectorCommand>(&program_.commands[i].body);
    return !removed_[i] && v != nullptr && v->kind == VectorCommand::Kind::kCopy ? v : nullptr;
  }

  static bool IsIn(Operand operand, int32_t buffer) {
    return operand.present() && operand.buffer.value() == buffer;
  }

  // True where what the producer reads from `source` is still there for the copies of its result
  // `from`, and may stay there.
  bool CanReadLater(const Producer& producer, Operand source, int32_t from,
                    const std::vector<int32_t>& copies) {
    const int32_t id = source.buffer.value();
    const int32_t last = copies.back();
    for (const int32_t i : copies) {
      if (IsIn(CopyAt(i)->d, id)) return false;
    }
    if (id == from) return source.offset_bytes == 0;
    const int64_t begin = source.offset_bytes;
    if (!Spend(static_cast<int64_t>(uses_[id].size()))) return false;
    for (const Use& use : uses_[id]) {
      if (use.writes && use.command >= producer.first && use.command <= last &&
          Overlaps(use, begin, begin + SizeOf(from))) {
        return false;
      }
    }
    if (SlotOf(source) == Slot::kInput && IsStateWrittenBy(id, last)) return false;
    return CanAfford(from, id, producer.first, last);
  }

  void MoveIntoCopies(const Producer& producer, const std::vector<int32_t>& copies) {
    std::vector<int32_t> ids = {
        std::get<VectorCommand>(program_.commands[producer.first].body).d.buffer.value()};
    for (const Operand& source : {producer.a, producer.b}) {
      if (source.present() && IsTracked(SlotOf(source))) ids.push_back(source.buffer.value());
    }
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    MoveInto(copies, producer, ids, [&](const VectorCommand& copy, VectorCommand& made) {
      if (made.a.present()) made.a = producer.a.Plus(copy.a.offset_bytes);
      if (made.b.present()) made.b = producer.b.Plus(copy.a.offset_bytes);
      made.d = copy.d;
    });
  }

  // Replaces the copies by `function` and removes its own commands; set(copy, made) sets the
  // operands of what replaces a copy. ids: the buffers whose uses change.
  template <typename Set>
  void MoveInto(const std::vector<int32_t>& copies, const Producer& function,
                const std::vector<int32_t>& ids, const Set& set) {
    const Command computes = program_.commands[function.first];
    for (const int32_t id : ids) Count(id, -1);
    for (int32_t i = function.first; i <= function.last; ++i) {
      RemoveUses(i);
      removed_[i] = true;
    }
    for (const int32_t i : copies) {
      RemoveUses(i);
      Command& command = program_.commands[i];
      command.node = computes.node;
      auto& made = std::get<VectorCommand>(command.body);
      const VectorCommand copy = made;
      made = std::get<VectorCommand>(computes.body);
      made.extents = copy.extents;
      made.a_middle_stride = copy.a_middle_stride;
      made.a_outer_stride = copy.a_outer_stride;
      made.d_middle_stride = copy.d_middle_stride;
      made.d_outer_stride = copy.d_outer_stride;
      set(copy, made);
      AddUses(i);
    }
    for (const int32_t id : ids) Count(id, 1);
  }

  // True where an output that may lie over input `id` is written by command `last` or before.
  bool IsStateWrittenBy(int32_t id, int32_t last) const {
    for (size_t output = 0; output < under_.size(); ++output) {
      const Uses& uses = uses_[output];
      if (under_[output] == id && !uses.empty() && uses.front().command <= last) return true;
    }
    return false;
  }

  // Takes the dropped commands out. What follows one in its step waits in its place.
  void Compact() {
    std::vector<Command> kept;
    kept.reserve(program_.commands.size());
    bool waits = false;
    for (size_t i = 0; i < program_.commands.size(); ++i) {
      Command& command = program_.commands[i];
      if (removed_[i]) {
        waits = waits || command.waits;
        continue;
      }
      command.waits = command.waits || waits;
      waits = false;
      kept.push_back(std::move(command));
    }
    program_.commands = std::move(kept);
    // A buffer that no command uses needs no place.
    for (size_t id = 0; id < uses_.size(); ++id) {
      Buffer& buffer = program_.buffers[id];
      if (buffer.slot == Slot::kData && uses_[id].empty()) buffer.size_bytes = 0;
    }
  }

  Program& program_;
  std::vector<Uses> uses_;      // by buffer
  std::vector<int32_t> under_;  // by buffer: the state under an output
  std::vector<bool> removed_;   // by command
  std::vector<int64_t> alive_;  // by command: bytes of data buffers
  int64_t peak_ = 0;            // of the program as it was
  int64_t steps_ = 0;
};

// Moves the commands that copy to outputs.
class OutputMover {
 public:
  explicit OutputMover(Program& program)
      : program_(program),
        count_(static_cast<int32_t>(program.commands.size())),
        under_(StatesUnderOutputs(program)),
        last_use_(program.buffers.size(), -1),
        last_read_(program.buffers.size(), -1),
        uses_(program.buffers.size()),
        to_output_(program.commands.size(), false) {
    for (int32_t i = 0; i < count_; ++i) to_output_[i] = OutputOf(i) >= 0;
    for (int32_t i = 0; i < count_; ++i) {
      for (const Access& access : AccessesOf(program.commands[i])) {
        const int32_t id = access.operand.buffer.value();
        const Buffer& buffer = program.buffers[id];
        if (!to_output_[i]) last_use_[id] = i;
        if (!access.writes) last_read_[id] = i;
        if (buffer.slot != Slot::kOutput) continue;
        uses_[id].push_back(UseOf(program.commands[i], i, access, buffer.size_bytes));
      }
    }
  }

  void Run() {
    // Each command's place: behind which command, and its own number.
    std::vector<std::pair<int32_t, int32_t>> places;
    for (int32_t begin = 0; begin < count_;) {
      int32_t end = begin + 1;
      while (end < count_ && !program_.commands[end].waits) ++end;
      const int32_t behind = PlaceOf(begin, end);
      for (int32_t i = begin; i < end; ++i) places.emplace_back(behind < 0 ? i : behind, i);
      begin = end;
    }
    std::stable_sort(places.begin(), places.end());
    std::vector<int32_t> order(places.size());
    std::vector<int32_t> old_order(places.size());
    std::iota(old_order.begin(), old_order.end(), 0);
    std::transform(places.begin(), places.end(), order.begin(),
                   [](const auto& place) { return place.second; });
    if (order == old_order || PeakOf(order) >= PeakOf(old_order)) return;
    // A stream must end with a command of 0x01.
    if (!std::holds_alternative<VectorCommand>(program_.commands[order.back()].body)) return;
    std::vector<Command> commands;
    commands.reserve(order.size());
    for (const int32_t i : order) commands.push_back(std::move(program_.commands[i]));
    program_.commands = std::move(commands);
  }

 private:
  // The output buffer to which command i copies data, perhaps as float32; -1: none.
  int32_t OutputOf(int32_t i) const {
    const auto* v = std::get_if<VectorCommand>(&program_.commands[i].body);
    if (v == nullptr || !v->a.present() || !v->d.present()) return -1;
    const bool moves =
        v->kind == VectorCommand::Kind::kCopy || v->kind == VectorCommand::Kind::kFormat;
    const bool fits = program_.buffers[v->a.buffer.value()].slot == Slot::kData &&
                      program_.buffers[v->d.buffer.value()].slot == Slot::kOutput;
    return moves && fits ? v->d.buffer.value() : -1;
  }

  // The end of the step behind which the step [begin, end) can run; -1: it stays.
  int32_t PlaceOf(int32_t begin, int32_t end) {
    int32_t behind = -1;
    for (int32_t i = begin; i < end; ++i) {
      if (!to_output_[i]) return -1;
      const auto& v = std::get<VectorCommand>(program_.commands[i].body);
      behind = std::max(behind, last_use_[v.a.buffer.value()]);
      const int32_t state = under_[v.d.buffer.value()];
      if (state >= 0) behind = std::max(behind, last_read_[state]);
      behind = std::max(behind, LastUseOfWrittenBytes(i, begin));
    }
    while (behind >= 0 && behind + 1 < begin && !program_.commands[behind + 1].waits) ++behind;
    return behind + 1 < begin ? behind : -1;
  }

  // The last command before `begin` that uses bytes of the output which command i writes; -1: none.
  int32_t LastUseOfWrittenBytes(int32_t i, int32_t begin) {
    const Command& command = program_.commands[i];
    const int32_t id = std::get<VectorCommand>(command.body).d.buffer.value();
    const auto is_before = [](const Use& use, int32_t at) { return use.command < at; };
    const Uses& uses = uses_[id];
    const auto written = std::find_if(std::lower_bound(uses.begin(), uses.end(), i, is_before),
                                      uses.end(), [](const Use& use) { return use.writes; });
    const int64_t row_bytes = written->end - written->begin - (written->rows - 1) * written->stride;
    for (auto use = std::lower_bound(uses.begin(), uses.end(), begin, is_before);
         use != uses.begin();) {
      --use;
      for (int64_t row = 0; row < written->rows; ++row) {
        const int64_t at = written->begin + row * written->stride;
        if (++steps_ > kMaxSteps || Overlaps(*use, at, at + row_bytes)) return use->command;
      }
    }
    return -1;
  }

  // The most bytes of data alive at once where the commands run in this order.
  int64_t PeakOf(const std::vector<int32_t>& order) const {
    std::vector<int32_t> first(program_.buffers.size(), -1);
    std::vector<int32_t> last(program_.buffers.size(), -1);
    for (size_t t = 0; t < order.size(); ++t) {
      for (const Access& access : AccessesOf(program_.commands[order[t]])) {
        const int32_t id = access.operand.buffer.value();
        if (first[id] < 0) first[id] = static_cast<int32_t>(t);
        last[id] = static_cast<int32_t>(t);
      }
    }
    std::vector<int64_t> change(order.size() + 1, 0);
    for (size_t id = 0; id < first.size(); ++id) {
      if (first[id] < 0 || program_.buffers[id].slot != Slot::kData) continue;
      change[first[id]] += program_.buffers[id].size_bytes;
      change[last[id] + 1] -= program_.buffers[id].size_bytes;
    }
    int64_t alive = 0;
    int64_t peak = 0;
    for (const int64_t bytes : change) {
      alive += bytes;
      peak = std::max(peak, alive);
    }
    return peak;
  }

  Program& program_;
  const int32_t count_;
  std::vector<int32_t> under_;      // by buffer: the state under an output
  std::vector<int32_t> last_use_;   // by buffer: of the commands that do not copy to outputs
  std::vector<int32_t> last_read_;  // by buffer
  std::vector<Uses> uses_;          // by buffer: of outputs
  std::vector<bool> to_output_;     // by command
  int64_t steps_ = 0;
};

}  // namespace

void DropCopies(Program& program) {
  CopyDropper(program).Run();
  OutputMover(program).Run();
}

}  // namespace npuc
