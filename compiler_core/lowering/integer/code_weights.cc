#include "compiler_core/lowering/integer/code_weights.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/integer/access.h"
#include "compiler_core/ir/integer/fields.h"
#include "compiler_core/ir/integer/weight_code.h"

namespace npuc {
namespace {

using integer::CodeTable;
using integer::Convolve;
using integer::Counts;

constexpr size_t kMaxTables = 16;
constexpr int kRounds = 2;  // of choosing tables anew

// Bytes of slot weight that a command reads. A part of a command that cores share reads some of the
// bytes that the whole reads; each range is a constant of its own, since a code is decoded whole.
struct Range {
  int64_t offset_bytes = 0;
  int64_t size_bytes = 0;
  auto operator<=>(const Range&) const = default;
};

struct Constant {
  bool is_weights = true;  // of convolutions alone, with 8 bits
  int table = -1;
  std::vector<uint8_t> coded = {};
  int64_t new_offset = 0;
};

// Tensors that share a table.
struct Group {
  Counts counts = {};
  int64_t bytes = 0;  // that the weights with these counts take
  int members = 0;
};

Counts Sum(const Counts& a, const Counts& b, int64_t sign) {
  Counts sum;
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = a[i] + sign * b[i];
  return sum;
}

int64_t BestBytes(const Counts& counts) {
  return integer::CodedBytes(counts, integer::TableFor(counts));
}

class Coder {
 public:
  explicit Coder(integer::Program& program) : program_(program) {}

  absl::Status Run() {
    FindConstants();
    ChooseTables();
    RETURN_IF_ERROR(Encode());
    Lay();
    return absl::OkStatus();
  }

 private:
  bool IsConstant(const Operand& operand) const {
    return operand.present() &&
           program_.buffers[static_cast<size_t>(operand.buffer.value())].slot == Slot::kWeight;
  }

  void FindConstants() {
    for (const integer::Command& command : program_.commands) {
      const auto* convolve = std::get_if<Convolve>(&command.body);
      for (const Access& access : ConstantsOf(command.body)) {
        Constant& constant = constants_[RangeOf(access)];
        constant.is_weights = constant.is_weights && access.role == OperandRole::kWeights &&
                              convolve->weight_type == DType::kInt8;
      }
    }
  }

  static Range RangeOf(const Access& access) {
    return {access.operand.offset_bytes, access.size_bytes};
  }

  absl::Span<const uint8_t> BytesOf(const Range& range) const {
    return absl::MakeConstSpan(program_.weights)
        .subspan(static_cast<size_t>(range.offset_bytes), static_cast<size_t>(range.size_bytes));
  }

  // The largest tensors first: each joins the group where it takes the fewest bytes, or begins one,
  // or stays as it is.
  void ChooseTables() {
    std::vector<std::pair<Range, Constant*>> tensors;
    for (auto& [range, constant] : constants_) {
      if (constant.is_weights) tensors.emplace_back(range, &constant);
    }
    std::stable_sort(tensors.begin(), tensors.end(), [](const auto& x, const auto& y) {
      return x.first.size_bytes > y.first.size_bytes;
    });
    std::vector<Counts> counts;
    for (const auto& [range, constant] : tensors) {
      counts.push_back(integer::CountsOf(BytesOf(range)));
    }
    std::vector<Group> groups;
    for (int round = 0; round < kRounds; ++round) {
      for (size_t i = 0; i < tensors.size(); ++i) {
        Choose(counts[i], tensors[i].first.size_bytes, *tensors[i].second, groups);
      }
    }
    for (const Group& group : groups) tables_.push_back(integer::TableFor(group.counts));
  }

  static void Choose(const Counts& counts, int64_t size_bytes, Constant& constant,
                     std::vector<Group>& groups) {
    if (constant.table >= 0) {
      Group& old = groups[static_cast<size_t>(constant.table)];
      old.counts = Sum(old.counts, counts, -1);
      old.bytes = BestBytes(old.counts);
      --old.members;
    }
    constant.table = -1;
    int64_t least = size_bytes;
    for (size_t k = 0; k < groups.size(); ++k) {
      const int64_t bytes = BestBytes(Sum(groups[k].counts, counts, 1)) - groups[k].bytes +
                            (groups[k].members == 0 ? integer::kCodeTableBytes : 0);
      if (bytes >= least) continue;
      least = bytes;
      constant.table = static_cast<int>(k);
    }
    if (groups.size() < kMaxTables && BestBytes(counts) + integer::kCodeTableBytes < least) {
      constant.table = static_cast<int>(groups.size());
      groups.emplace_back();
    }
    if (constant.table < 0) return;
    Group& group = groups[static_cast<size_t>(constant.table)];
    group.counts = Sum(group.counts, counts, 1);
    group.bytes = BestBytes(group.counts);
    ++group.members;
  }

  // Encodes what has a table; a group that does not gain its table's bytes stays as it is.
  absl::Status Encode() {
    std::vector<int64_t> gains(tables_.size(), -integer::kCodeTableBytes);
    for (auto& [range, constant] : constants_) {
      if (constant.table < 0) continue;
      const CodeTable& table = tables_[static_cast<size_t>(constant.table)];
      ASSIGN_OR_RETURN(constant.coded, integer::EncodeWeights(BytesOf(range), table));
      const int64_t gain = range.size_bytes - static_cast<int64_t>(constant.coded.size());
      if (gain <= 0) {
        constant.table = -1;
      } else {
        gains[static_cast<size_t>(constant.table)] += gain;
      }
    }
    for (auto& [range, constant] : constants_) {
      if (constant.table >= 0 && gains[static_cast<size_t>(constant.table)] <= 0) {
        constant.table = -1;
      }
    }
    return absl::OkStatus();
  }

  int64_t Append(absl::Span<const uint8_t> bytes) {
    const int64_t offset = static_cast<int64_t>(laid_.size());
    laid_.insert(laid_.end(), bytes.begin(), bytes.end());
    laid_.resize((laid_.size() + integer::kConstantAlignment - 1) / integer::kConstantAlignment *
                 integer::kConstantAlignment);
    return offset;
  }

  // Moves a command's constants to where they lie now.
  struct Mover {
    const std::map<Range, Constant>& constants;
    std::vector<Access> accesses;  // before anything moved
    void Place(absl::string_view name, Operand& operand) const {
      for (const Access& access : accesses) {
        if (npuc::NameOf(access.role) != name || access.operand.buffer != operand.buffer) continue;
        const auto found = constants.find(RangeOf(access));
        if (found == constants.end()) continue;
        // A walk may begin above its lowest byte.
        operand.offset_bytes += found->second.new_offset - access.operand.offset_bytes;
      }
    }
    void Type(absl::string_view name, DType type) const {}
    template <typename E>
    void Choice(absl::string_view name, E value, int count) const {}
    void Number(absl::string_view name, int32_t value, int32_t lo, int32_t hi) const {}
    void Walk(absl::string_view name, const integer::Extents& extents, int32_t lo) const {}
  };

  std::vector<Access> ConstantsOf(const integer::Body& body) const {
    std::vector<Access> accesses = integer::AccessesOf(body);
    std::erase_if(accesses, [this](const Access& access) { return !IsConstant(access.operand); });
    return accesses;
  }

  void Lay() {
    std::vector<int64_t> table_offsets(tables_.size(), -1);
    for (auto& [range, constant] : constants_) {
      if (constant.table < 0) {
        constant.new_offset = Append(BytesOf(range));
        continue;
      }
      int64_t& table = table_offsets[static_cast<size_t>(constant.table)];
      if (table < 0) table = Append(tables_[static_cast<size_t>(constant.table)]);
      constant.new_offset = Append(constant.coded);
    }
    for (integer::Command& command : program_.commands) {
      auto* convolve = std::get_if<Convolve>(&command.body);
      Mover mover{constants_, ConstantsOf(command.body)};
      const Constant* weights = nullptr;
      for (const Access& access : mover.accesses) {
        if (access.role == OperandRole::kWeights) weights = &constants_.at(RangeOf(access));
      }
      integer::VisitFields(mover, command.body);
      if (weights == nullptr || weights->table < 0) continue;
      convolve->coded_bytes = static_cast<int32_t>(weights->coded.size());
      convolve->table = {convolve->weights.buffer,
                         table_offsets[static_cast<size_t>(weights->table)]};
    }
    program_.weights = std::move(laid_);
    for (Buffer& buffer : program_.buffers) {
      if (buffer.slot == Slot::kWeight) {
        buffer.size_bytes = static_cast<int64_t>(program_.weights.size());
      }
    }
  }

  integer::Program& program_;
  std::map<Range, Constant> constants_;
  std::vector<CodeTable> tables_;
  std::vector<uint8_t> laid_;
};

}  // namespace

absl::Status CodeWeights(integer::Program& program) { return Coder(program).Run(); }

}  // namespace npuc
