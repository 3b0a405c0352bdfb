#include <array>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/integer/access.h"
#include "compiler_core/ir/integer/steps.h"
#include "compiler_core/memplan/owners.h"
#include "compiler_core/memplan/plan.h"

namespace npuc {
namespace {

using integer::ByteRange;
using integer::Step;

class RowChecker {
 public:
  explicit RowChecker(const integer::Program& program) : program_(program) {}

  absl::Status Run() {
    if (program_.input_offset >= 0) Take(BufferId(kInput), WholeOf(kInput));
    for (size_t i = 0; i < program_.commands.size(); ++i) {
      RETURN_IF_ERROR(CheckReach(i));
      RETURN_IF_ERROR(Walk(i));
    }
    if (program_.output_offset < 0) return absl::OkStatus();
    return CheckOwned(BufferId(kOutput), WholeOf(kOutput), "the reader of the outputs");
  }

 private:
  static constexpr int32_t kInput = 0;
  static constexpr int32_t kOutput = 1;

  const Buffer& BufferOf(BufferId id) const {
    return program_.buffers[static_cast<size_t>(id.value())];
  }
  ByteRange WholeOf(int32_t id) const {
    const Buffer& buffer = BufferOf(BufferId(id));
    return {buffer.offset_bytes, buffer.offset_bytes + buffer.size_bytes};
  }
  std::string Describe(size_t command) const {
    return absl::StrCat("command ", command, " of node '",
                        Printable(program_.commands[command].layer), "'");
  }

  void Take(BufferId owner, const ByteRange& range) {
    owners_.Take(range.begin, range.end, owner.value());
  }

  absl::Status CheckReach(size_t command) const {
    for (const Access& access : integer::AccessesOf(program_.commands[command].body)) {
      const Buffer& buffer = BufferOf(access.operand.buffer);
      if (buffer.slot != Slot::kData) continue;
      const int64_t begin = buffer.offset_bytes + access.operand.offset_bytes;
      if (buffer.offset_bytes >= 0 && begin >= 0 && access.size_bytes >= 0 &&
          begin + access.size_bytes <= program_.data_bytes) {
        continue;
      }
      return absl::InternalError(absl::StrCat(Describe(command), " reaches outside data_content"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckOwned(BufferId owner, const ByteRange& range, const std::string& reader) const {
    const Owners::Stranger stranger = owners_.FindStranger(range.begin, range.end, owner.value());
    if (stranger.owner == Owners::kNobody) return absl::OkStatus();
    return absl::InternalError(absl::StrCat(reader, " reads byte ", stranger.at, " of buffer ",
                                            owner.value(), ", which buffer ", stranger.owner,
                                            " has overwritten"));
  }

  // Where an operand begins in data; null where it lies elsewhere.
  const Buffer* InData(const Operand& operand) const {
    if (!operand.present()) return nullptr;
    const Buffer& buffer = BufferOf(operand.buffer);
    return buffer.slot == Slot::kData ? &buffer : nullptr;
  }

  // The steps in their order: what a step stores takes its bytes before the step reads, but for
  // elements that are read before they are stored.
  absl::Status Walk(size_t index) {
    const integer::Command& command = program_.commands[index];
    const std::array<Operand, 2> operands = integer::OperandsOf(command.body);
    const Operand& d = integer::ResultOf(command.body).d;
    const std::vector<Step> steps = integer::StepsOf(command.body);
    const auto read = [&](const Step& step, bool element_wise) {
      for (size_t i = 0; i < operands.size(); ++i) {
        const Buffer* buffer = InData(operands[i]);
        if (buffer == nullptr || integer::WalksWithResult(command.body, i) != element_wise)
          continue;
        RETURN_IF_ERROR(CheckOwned(
            operands[i].buffer, step.reads[i].Plus(buffer->offset_bytes + operands[i].offset_bytes),
            Describe(index)));
      }
      return absl::OkStatus();
    };
    for (size_t i = 0; i < steps.size(); ++i) {
      const Step& step = steps[command.descending ? steps.size() - 1 - i : i];
      RETURN_IF_ERROR(read(step, true));
      if (const Buffer* buffer = InData(d); buffer != nullptr) {
        Take(d.buffer, step.writes.Plus(buffer->offset_bytes + d.offset_bytes));
      }
      RETURN_IF_ERROR(read(step, false));
    }
    return absl::OkStatus();
  }

  const integer::Program& program_;
  Owners owners_;
};

}  // namespace

absl::Status CheckMemoryPlan(const integer::Program& program) { return RowChecker(program).Run(); }

}  // namespace npuc
