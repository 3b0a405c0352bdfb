#include "compiler_core/ir/integer/verify.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/integer/access.h"
#include "compiler_core/ir/integer/fields.h"
#include "compiler_core/ir/integer/steps.h"

namespace npuc::integer {
namespace {

using Problems = std::vector<std::string>;

constexpr size_t kMaxReported = 20;

bool IsActivationType(DType type) {
  return type == DType::kInt8 || type == DType::kUint8 || type == DType::kInt16 ||
         type == DType::kUint16;
}

// Every field in its range.
struct RangeCheck {
  Problems& problems;

  void Place(absl::string_view name, const Operand& operand) {}
  void Type(absl::string_view name, DType type) {
    if (IsActivationType(type)) return;
    problems.push_back(absl::StrCat(name, " is ", npuc::NameOf(type), "; i8, u8, i16 or u16"));
  }
  template <typename E>
  void Choice(absl::string_view name, E value, int count) {
    if (static_cast<int>(value) < count) return;
    problems.push_back(absl::StrCat(name, " ", static_cast<int>(value), " is not below ", count));
  }
  void Number(absl::string_view name, int32_t value, int32_t lo, int32_t hi) {
    if (value >= lo && value <= hi) return;
    problems.push_back(absl::StrCat(name, " ", value, " is outside ", lo, "..", hi));
  }
  void Walk(absl::string_view name, const Extents& extents, int32_t lo) {
    for (const int32_t extent : extents) Number(name, extent, lo, kMaxNumber);
  }
};

class Checker {
 public:
  explicit Checker(Problems& problems) : problems_(problems) {}

  void operator()(const Convolve& c) {
    Need({{"a", c.a}, {"weights", c.weights}, {"bias", c.bias}, {"factors", c.factors}});
    CheckResult(c.result);
    Require(c.weight_type == DType::kInt8 || c.weight_type == DType::kInt16,
            "weights are i8 or i16");
    Require(c.table.present() == (c.coded_bytes > 0), "table goes with coded weights alone");
    Require(c.coded_bytes == 0 || c.weight_type == DType::kInt8, "coded weights are i8");
    Require(c.in_c % c.groups == 0 && c.out_c % c.groups == 0, "groups must divide in_c and out_c");
    Require(c.factor_count == 1 || c.factor_count == c.out_c, "factor_count is 1 or out_c");
    Require(c.d_pixel == 0 || c.d_pixel > c.out_c, "d_pixel is 0 or above out_c");
  }
  void operator()(const Pool& c) {
    Need({{"a", c.a}});
    CheckResult(c.result);
    const int64_t taps = int64_t{c.window.kernel_h} * c.window.kernel_w;
    const bool scaled = c.kind == Pool::Kind::kScaled;
    Require(c.factors.present() == scaled, "factors go with the scaled kind alone");
    Require(scaled ? c.factor_count == 1 || c.factor_count == taps : c.factor_count == 0,
            "factor_count is 1 or one a tap in the scaled kind, else 0");
  }
  void operator()(const Combine& c) {
    Need({{"a", c.a}, {"b", c.b}, {"factors", c.factors}});
    CheckResult(c.result);
    Require(c.kind != Combine::Kind::kMul || c.left == 0, "products are not shifted left");
  }
  void operator()(const Product& c) {
    Need({{"a", c.a}, {"b", c.b}, {"factors", c.factors}});
    CheckResult(c.result);
  }
  void operator()(const Move& c) {
    Need({{"a", c.a}});
    CheckResult(c.result);
    Require(c.factors.present() || c.a_type == c.result.type,
            "without a factor both sides have one type");
  }
  void operator()(const Fill& c) { CheckResult(c.result); }
  void operator()(const Lookup& c) {
    Need({{"a", c.a}, {"table", c.table}});
    CheckResult(c.result);
    Require(SizeOf(c.a_type) == 2 || c.index_bits == 8, "index_bits is 8 for an 8-bit operand");
  }
  void operator()(const Softmax& c) {
    Need({{"a", c.a}});
    CheckResult(c.result);
    const bool table = c.kind == Softmax::Kind::kTable;
    Require(c.table.present() == table && c.factors.present() == table,
            "table and factors go with the table kind alone");
    Require(SizeOf(c.a_type) == 2 || c.index_bits == 8, "index_bits is 8 for an 8-bit operand");
    Require(table || SizeOf(c.a_type) == 1, "the fixed kind takes an 8-bit operand");
  }

 private:
  struct Named {
    absl::string_view name;
    const Operand& operand;
  };

  void Require(bool holds, absl::string_view rule) {
    if (!holds) problems_.emplace_back(rule);
  }
  void Need(std::initializer_list<Named> operands) {
    for (const Named& named : operands) {
      if (!named.operand.present()) {
        problems_.push_back(absl::StrCat("operand ", named.name, " is missing"));
      }
    }
  }
  void CheckResult(const Result& result) {
    Need({{"d", result.d}});
    const int64_t low = LowestValue(result.type);
    const int64_t high = HighestValue(result.type);
    if (result.min < low || result.max > high || result.min > result.max) {
      problems_.push_back(absl::StrCat("result range ", result.min, "..", result.max,
                                       " is not one of ", npuc::NameOf(result.type)));
    }
  }

  Problems& problems_;
};

// Packed structs may put activations anywhere.
int64_t AlignmentOf(OperandRole role) {
  const bool words = role == OperandRole::kBias || role == OperandRole::kTable;
  return words ? kConstantAlignment : 1;
}

void CheckAccess(absl::Span<const Buffer> buffers, const Access& access, Problems& problems) {
  const int32_t id = access.operand.buffer.value();
  if (static_cast<size_t>(id) >= buffers.size()) {
    problems.push_back(absl::StrCat("operand ", npuc::NameOf(access.role), " has no buffer"));
    return;
  }
  const Buffer& buffer = buffers[id];
  const int64_t offset = access.operand.offset_bytes;
  if (offset < 0 || offset > buffer.size_bytes || access.size_bytes > buffer.size_bytes - offset) {
    problems.push_back(absl::StrCat("operand ", npuc::NameOf(access.role), " takes ",
                                    access.size_bytes, " bytes from ", offset, " of ",
                                    buffer.size_bytes));
  }
  const bool constant = access.role == OperandRole::kWeights || access.role == OperandRole::kBias ||
                        access.role == OperandRole::kFactors || access.role == OperandRole::kTable;
  if (constant && buffer.slot != Slot::kWeight) {
    problems.push_back(absl::StrCat("operand ", npuc::NameOf(access.role), " is in slot ",
                                    npuc::NameOf(buffer.slot), "; it must be in slot weight"));
  }
  const int64_t bytes = AlignmentOf(access.role);
  if (offset % bytes != 0) {
    problems.push_back(absl::StrCat("operand ", npuc::NameOf(access.role), " at ", offset,
                                    " is not on a multiple of ", bytes));
  }
  if (access.writes && buffer.slot != Slot::kData && buffer.slot != Slot::kOutput) {
    problems.push_back(absl::StrCat("operand d writes to slot ", npuc::NameOf(buffer.slot)));
  }
}

void CheckOverlap(const Body& body, const std::vector<Access>& accesses, bool descending,
                  Problems& problems) {
  const Access& d = accesses.back();
  const std::array<Operand, 2> operands = OperandsOf(body);
  const bool may_overlap =
      std::any_of(accesses.begin(), accesses.end(), [&d](const Access& access) {
        return !access.writes && access.operand.buffer == d.operand.buffer &&
               access.operand.offset_bytes < d.operand.offset_bytes + d.size_bytes &&
               d.operand.offset_bytes < access.operand.offset_bytes + access.size_bytes;
      });
  if (!may_overlap) return;
  const std::vector<Step> steps = StepsOf(body);
  const Operand& result = ResultOf(body).d;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].buffer != result.buffer) continue;
    const int64_t distance = result.offset_bytes - operands[i].offset_bytes;
    if (!Clobbers(body, steps, i, distance, descending)) continue;
    problems.push_back(absl::StrCat("the result lies over bytes of operand ", i == 0 ? "a" : "b",
                                    " that are still to be read"));
  }
}

}  // namespace

std::vector<std::string> FieldProblems(const Body& body) {
  Problems problems;
  RangeCheck ranges{problems};
  VisitFields(ranges, body);
  return problems;
}

std::vector<std::string> CommandProblems(absl::Span<const Buffer> buffers, const Body& body,
                                         bool descending) {
  Problems problems = FieldProblems(body);
  if (!problems.empty()) return problems;  // the checks below count on ranges
  std::visit([&problems](const auto& command) { Checker{problems}(command); }, body);
  if (!problems.empty()) return problems;
  const std::vector<Access> accesses = AccessesOf(body);
  for (const Access& access : accesses) CheckAccess(buffers, access, problems);
  if (problems.empty()) CheckOverlap(body, accesses, descending, problems);
  return problems;
}

absl::Status VerifyProgram(const Program& program) {
  Problems found;
  for (size_t i = 0; i < program.commands.size() && found.size() < kMaxReported; ++i) {
    const Command& command = program.commands[i];
    for (const std::string& problem :
         CommandProblems(program.buffers, command.body, command.descending)) {
      found.push_back(absl::StrCat("command ", i, " (", NameOf(command.body), ") of layer '",
                                   Printable(command.layer), "': ", problem));
    }
  }
  if (found.empty()) return absl::OkStatus();
  return absl::InternalError(absl::StrJoin(found, "; "));
}

}  // namespace npuc::integer
