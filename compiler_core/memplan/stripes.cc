#include "compiler_core/memplan/stripes.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "compiler_core/base/rounding.h"
#include "compiler_core/ir/integer/access.h"
#include "compiler_core/ir/integer/pieces.h"
#include "compiler_core/ir/integer/steps.h"

namespace npuc {
namespace {

using integer::ByteRange;

constexpr int32_t kOutputs = 1;

// Units [first, end) of a command's result.
struct UnitRange {
  int64_t first = 0;
  int64_t end = 0;
  bool empty() const { return first >= end; }
  int64_t size() const { return empty() ? 0 : end - first; }
};

UnitRange HullOfUnits(const UnitRange& a, const UnitRange& b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  return {std::min(a.first, b.first), std::max(a.end, b.end)};
}

// One command of a chain, and how far its result is.
struct Link {
  const integer::Command* command = nullptr;
  integer::Units units;
  Operand d;
  StripeKeep keep = StripeKeep::kWhole;
  bool is_needed_behind = false;
  UnitRange done;      // of all stripes so far
  UnitRange kept;      // in `buffer`: what this stripe, or the last one that needed some, holds
  BufferId buffer;     // of the stripe; not of kWhole
  UnitRange needed;    // by this stripe
  UnitRange computed;  // by this stripe
};

class StripeCutter {
 public:
  StripeCutter(const integer::Program& program, const BufferUses& uses, const StripedChain& chain,
               int32_t first_buffer)
      : program_(program), uses_(uses), chain_(chain), first_buffer_(first_buffer) {}

  std::optional<Stripes> Run() {
    if (!TakeLinks()) return std::nullopt;
    const int64_t count = links_.back().units.count;
    stripes_.count = DivideUp(count, chain_.units);
    for (int64_t i = 0; i < stripes_.count; ++i) {
      const int64_t first = (chain_.upwards ? stripes_.count - 1 - i : i) * chain_.units;
      const UnitRange last = {first, std::min(first + chain_.units, count)};
      if (!FindNeeds(last, i + 1 == stripes_.count) || !Emit()) return std::nullopt;
      if (stripes_.commands.size() > kMaxPieces) return std::nullopt;
    }
    return std::move(stripes_);
  }

 private:
  bool TakeLinks() {
    for (size_t i = chain_.first; i < chain_.end; ++i) {
      Link link;
      link.command = &program_.commands[i];
      const std::optional<integer::Units> units = integer::UnitsOf(link.command->body);
      link.d = integer::ResultOf(link.command->body).d;
      if (!units.has_value() || !IsWrittenOnce(link.d.buffer, i)) return false;
      link.units = *units;
      link.keep = chain_.keeps[i - chain_.first];
      link.is_needed_behind = uses_.IsNeededBehind(link.d.buffer, chain_.end);
      if (link.keep != StripeKeep::kWhole && link.is_needed_behind) return false;
      links_.push_back(link);
    }
    return !links_.empty() && chain_.units > 0;
  }

  // The chain writes a buffer by one command; where it reads it, too, nothing else writes it, and
  // what reads it comes later.
  bool IsWrittenOnce(BufferId buffer, size_t command) const {
    const auto in_chain = [&](size_t i) { return i >= chain_.first && i < chain_.end; };
    const std::vector<size_t>& writers = uses_.writers(buffer);
    if (std::count_if(writers.begin(), writers.end(), in_chain) != 1) return false;
    return std::all_of(uses_.readers(buffer).begin(), uses_.readers(buffer).end(), [&](size_t i) {
      return !in_chain(i) || (writers.size() == 1 && i > command);
    });
  }

  Link* WriterOf(BufferId buffer, size_t before) {
    for (size_t i = 0; i < before; ++i) {
      if (links_[i].d.buffer == buffer) return &links_[i];
    }
    return nullptr;
  }

  // From the last command to the first: what each must compute for this stripe.
  bool FindNeeds(const UnitRange& last, bool is_last_stripe) {
    for (Link& link : links_) link.needed = {};
    links_.back().needed = last;
    for (size_t i = links_.size(); i-- > 0;) {
      Link& link = links_[i];
      if (is_last_stripe && link.is_needed_behind) link.needed = {0, link.units.count};
      link.computed = link.needed;
      if (link.keep != StripeKeep::kRecomputed) LeaveOutDone(link);
      if (link.computed.empty()) continue;
      const std::optional<integer::Body> piece =
          integer::PieceOf(link.command->body, link.computed.first, link.computed.end);
      if (!piece.has_value()) return false;
      for (const Access& access : integer::AccessesOf(*piece)) {
        Link* writer = access.writes ? nullptr : WriterOf(access.operand.buffer, i);
        if (writer == nullptr) continue;
        const int64_t begin = access.operand.offset_bytes - writer->d.offset_bytes;
        const int64_t unit_bytes = writer->units.unit_bytes;
        if (begin < 0) return false;
        const UnitRange read = {begin / unit_bytes,
                                DivideUp(begin + access.size_bytes, unit_bytes)};
        if (read.end > writer->units.count) return false;
        writer->needed = HullOfUnits(writer->needed, read);
      }
    }
    return true;
  }

  // Stripes go one way, so that what is done is one stretch from the begin, or to the end. Where
  // rows between it and what is needed are never read they are computed with the others if the
  // result is whole.
  void LeaveOutDone(Link& link) const {
    UnitRange& computed = link.computed;
    if (computed.empty()) return;
    const bool is_whole = link.keep == StripeKeep::kWhole;
    if (chain_.upwards) {
      const int64_t from = link.done.empty() ? link.units.count : link.done.first;
      computed.end = is_whole || computed.end > from ? from : computed.end;
    } else {
      const int64_t from = link.done.end;
      computed.first = is_whole || computed.first < from ? from : computed.first;
    }
  }

  bool Emit() {
    for (Link& link : links_) {
      if (link.needed.empty()) continue;
      if (link.computed.empty()) {
        const bool is_there =
            link.keep == StripeKeep::kWhole ||
            (link.needed.first >= link.kept.first && link.needed.end <= link.kept.end);
        if (!is_there) return false;
        continue;
      }
      if (link.keep != StripeKeep::kWhole && !OpenBuffer(link)) return false;
      std::optional<integer::Body> piece =
          integer::PieceOf(link.command->body, link.computed.first, link.computed.end);
      std::visit([&](auto& body) { Redirect(body); }, *piece);
      stripes_.commands.push_back({*piece, link.command->layer});
      link.done = HullOfUnits(link.done, link.computed);
    }
    return true;
  }

  // A buffer for what this stripe needs of a result, with what the one before holds of it.
  bool OpenBuffer(Link& link) {
    const UnitRange before = link.kept;
    const BufferId from = link.buffer;
    link.kept = link.needed;
    link.buffer = BufferId(first_buffer_ + static_cast<int32_t>(stripes_.buffers.size()));
    Buffer buffer;
    buffer.size_bytes = link.kept.size() * link.units.unit_bytes;
    buffer.name = link.command->layer;
    stripes_.buffers.push_back(std::move(buffer));
    if (link.keep != StripeKeep::kCopied) return true;
    UnitRange copied = link.needed;
    (chain_.upwards ? copied.first : copied.end) =
        chain_.upwards ? link.computed.end : link.computed.first;
    if (copied.empty()) return true;
    if (copied.first < before.first || copied.end > before.end) return false;
    Copy(link, copied, {from, (copied.first - before.first) * link.units.unit_bytes});
    return true;
  }

  void Copy(const Link& link, const UnitRange& units, const Operand& from) {
    integer::Move move;
    move.result = integer::ResultOf(link.command->body);
    move.a = from;
    move.a_type = move.result.type;
    move.extents.back() =
        static_cast<int32_t>(units.size() * link.units.unit_bytes / SizeOf(move.a_type));
    move.a_strides.back() = move.d_strides.back() = 1;
    move.result.d = {link.buffer, (units.first - link.kept.first) * link.units.unit_bytes};
    stripes_.commands.push_back({move, link.command->layer});
    ++stripes_.copies;
  }

  // Operands and results of buffers that the stripe has in place of the program's.
  template <typename AnyBody>
  void Redirect(AnyBody& body) const {
    if constexpr (requires { body.a; }) RedirectOne(body.a);
    if constexpr (requires { body.b; }) RedirectOne(body.b);
    RedirectOne(body.result.d);
  }
  void RedirectOne(Operand& operand) const {
    for (const Link& link : links_) {
      if (link.keep == StripeKeep::kWhole || link.d.buffer != operand.buffer) continue;
      operand.offset_bytes -= link.d.offset_bytes + link.kept.first * link.units.unit_bytes;
      operand.buffer = link.buffer;
      return;
    }
  }

  const integer::Program& program_;
  const BufferUses& uses_;
  const StripedChain& chain_;
  const int32_t first_buffer_;
  std::vector<Link> links_;
  Stripes stripes_;
};

}  // namespace

BufferUses::BufferUses(const integer::Program& program)
    : writers_(program.buffers.size()), readers_(program.buffers.size()) {
  for (size_t i = 0; i < program.commands.size(); ++i) {
    for (const Access& access : integer::AccessesOf(program.commands[i].body)) {
      std::vector<size_t>& uses =
          (access.writes ? writers_ : readers_)[Index(access.operand.buffer)];
      if (uses.empty() || uses.back() != i) uses.push_back(i);
    }
  }
}

bool BufferUses::IsNeededBehind(BufferId buffer, size_t end) const {
  const std::vector<size_t>& readers = readers_[Index(buffer)];
  return buffer.value() == kOutputs || (!readers.empty() && readers.back() >= end);
}

std::optional<Stripes> CutInStripes(const integer::Program& program, const BufferUses& uses,
                                    const StripedChain& chain, int32_t first_buffer) {
  return StripeCutter(program, uses, chain, first_buffer).Run();
}

int64_t RowBound(const integer::Program& program, bool ports_in_data) {
  int64_t bound = 0;
  if (ports_in_data) {
    bound = std::max(program.buffers[0].size_bytes, program.buffers[kOutputs].size_bytes);
  }
  for (const integer::Command& command : program.commands) {
    // Rows of windows alone: elements may lie over their operands, and need almost nothing.
    if (!std::holds_alternative<integer::Convolve>(command.body) &&
        !std::holds_alternative<integer::Pool>(command.body)) {
      continue;
    }
    const auto in_data = [&](const Operand& operand) {
      const Slot slot = program.buffers[static_cast<size_t>(operand.buffer.value())].slot;
      return slot == Slot::kData || (ports_in_data && slot != Slot::kWeight);
    };
    const bool reads = in_data(integer::OperandsOf(command.body)[0]);
    const bool writes = in_data(integer::ResultOf(command.body).d);
    const std::vector<integer::Step> steps = integer::StepsOf(command.body);
    if (steps.size() >= integer::kMaxSteps) continue;  // a step may have several rows
    for (const integer::Step& step : steps) {
      bound =
          std::max(bound, (reads ? step.reads[0].size() : 0) + (writes ? step.writes.size() : 0));
    }
  }
  return bound;
}

}  // namespace npuc
