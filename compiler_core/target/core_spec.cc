#include "compiler_core/target/core_spec.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/status.h"
#include "compiler_core/target/core_tables.h"

namespace npuc {
namespace {

std::string Bounds(const SupportRule& rule) {
  if (rule.lo == rule.hi) return absl::StrCat("must be ", rule.lo);
  return absl::StrCat("must be ", rule.lo, "..", rule.hi);
}

std::string Product(const SupportRule& rule) {
  std::string out = absl::StrCat(absl::StrJoin(rule.facts, " * "), " must be at most ", rule.hi);
  if (rule.round_up_to > 1) {
    absl::StrAppend(&out, ", each rounded up to a multiple of ", rule.round_up_to);
  }
  return out;
}

// The rule without its condition and note.
std::string Body(const SupportRule& rule) {
  const absl::string_view first = rule.facts.empty() ? "" : rule.facts[0];
  const absl::string_view second = rule.facts.size() < 2 ? "" : rule.facts[1];
  switch (rule.kind) {
    case RuleKind::kConstInput:
      return absl::StrCat("input ", rule.lo, " must be a constant");
    case RuleKind::kStaticShape:
      return "all dimensions must be known at compile time";
    case RuleKind::kCompileTimeOnly:
      return "the operator must fold to a constant at compile time";
    case RuleKind::kOnlyInPattern:
      return absl::StrCat("the operator must be part of the pattern ", rule.text);
    case RuleKind::kPositiveInput:
      return absl::StrCat("input ", rule.lo, " must be greater than 0");
    case RuleKind::kSameShape:
      return absl::StrCat("inputs ", rule.lo, " and ", rule.hi, " must have the same shape");
    case RuleKind::kTranspose2d:
      return "the permutation must be a 2-D transpose, or one that can be regarded as such";
    case RuleKind::kRequiresAttr:
      return absl::StrCat(rule.text, " must be given");
    case RuleKind::kOneDimPerItem:
      return "the result must have one dimension per batch item";
    case RuleKind::kLayout:
      return absl::StrCat("the data format must be ", rule.text);
    case RuleKind::kPadding:
      return absl::StrCat("padding must be ", rule.text);
    case RuleKind::kRank:
    case RuleKind::kRange:
    case RuleKind::kEqualConst:
      return absl::StrCat(first, " ", Bounds(rule));
    case RuleKind::kMaxRank:
      return absl::StrCat("rank must be at most ", rule.hi);
    case RuleKind::kProductMax:
      return Product(rule);
    case RuleKind::kEqual:
      return absl::StrCat(first, " must equal ", second);
    case RuleKind::kNotBothOne:
      return absl::StrCat(first, " and ", second, " must not both be 1");
    case RuleKind::kDivisible:
      return absl::StrCat(first, " must be a multiple of ", second);
    case RuleKind::kOdd:
      return absl::StrCat(first, " must be odd");
  }
  NPUC_CHECK(false);
  return "";
}

}  // namespace

absl::Span<const CoreSpec* const> AllCores() {
  return absl::MakeConstSpan(core_tables::kAllCores, core_tables::kCoreCount);
}

const MacArray* MacArrayOf(const CoreSpec& core) {
  for (size_t i = 0; i < core_tables::kCoreCount; ++i) {
    if (core_tables::kAllCores[i] == &core) return core_tables::kMacArrays[i];
  }
  return nullptr;
}

const CycleModel* CyclesOf(const CoreSpec& core, absl::string_view npu_unit) {
  for (size_t i = 0; i < core.unit_cycles.size(); ++i) {
    if (core.npu_units[i] == npu_unit) return &core.unit_cycles[i];
  }
  return core.cycles;
}

const CoreSpec* FindCore(absl::string_view name_or_alias) {
  for (const CoreSpec* core : AllCores()) {
    if (name_or_alias == core->name || name_or_alias == core->alias) return core;
  }
  return nullptr;
}

int64_t CoresOf(const CoreSpec& core) { return core.integer == nullptr ? 1 : core.integer->cores; }

int64_t CoresOf(absl::string_view name_or_alias) {
  const CoreSpec* core = FindCore(name_or_alias);
  return core == nullptr ? 1 : CoresOf(*core);
}

absl::Span<const OpSupport> OpsOf(const CoreSpec& core, Framework framework) {
  for (const OpList& list : core.op_lists) {
    if (list.framework == framework) return list.ops;
  }
  return {};
}

const OpSupport* FindOp(const CoreSpec& core, Framework framework, absl::string_view op) {
  const absl::Span<const OpSupport> ops = OpsOf(core, framework);
  const auto it = std::lower_bound(
      ops.begin(), ops.end(), op,
      [](const OpSupport& entry, absl::string_view name) { return entry.op < name; });
  return it != ops.end() && it->op == op ? &*it : nullptr;
}

std::string Describe(const SupportRule& rule) {
  std::string out;
  for (const FactCondition& condition : rule.when) {
    absl::StrAppend(&out, out.empty() ? "where " : " and ", condition.fact,
                    condition.equal ? " is " : " is not ", condition.value);
  }
  if (!out.empty()) absl::StrAppend(&out, ", ");
  if (rule.advisory) absl::StrAppend(&out, "for speed, ");
  absl::StrAppend(&out, Body(rule));
  if (!rule.note.empty()) absl::StrAppend(&out, " (", rule.note, ")");
  return out;
}

}  // namespace npuc
