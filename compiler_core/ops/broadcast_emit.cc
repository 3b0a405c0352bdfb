// Element-wise operators with numpy broadcasting on the general-computation unit.

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/fp16.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/vector_emit.h"

namespace npuc {
namespace {

// Adjacent dimensions over which each operand either walks or stands still.
struct Group {
  int64_t size = 1;
  bool a_walks = true;
  bool b_walks = true;
};

// The broadcast of two shapes as few groups as possible; dimensions of 1 vanish.
std::vector<Group> GroupDimensions(const Shape& a, const Shape& b) {
  const size_t rank = std::max(a.size(), b.size());
  std::vector<Group> groups;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t a_size = i + a.size() < rank ? 1 : a[i + a.size() - rank];
    const int64_t b_size = i + b.size() < rank ? 1 : b[i + b.size() - rank];
    const int64_t size = a_size == 1 ? b_size : a_size;
    if (size == 1) continue;
    const Group group{size, a_size != 1, b_size != 1};
    if (!groups.empty() && groups.back().a_walks == group.a_walks &&
        groups.back().b_walks == group.b_walks) {
      groups.back().size *= size;
    } else {
      groups.push_back(group);
    }
  }
  if (groups.empty()) groups.push_back({1, true, true});
  return groups;
}

int64_t Product(absl::Span<const Group> groups, bool Group::*walks) {
  int64_t product = 1;
  for (const Group& group : groups) product *= group.*walks ? group.size : 1;
  return product;
}

int64_t Total(absl::Span<const Group> groups) {
  int64_t total = 1;
  for (const Group& group : groups) total *= group.size;
  return total;
}

struct Broadcast {
  LowerContext& context;
  Arithmetic arithmetic;
  int64_t commands = 0;

  // a walks every group. Emits the groups from `groups` on for one fixed index of those before.
  absl::Status Emit(absl::Span<const Group> groups, Operand a, Operand b, Operand d) {
    if (++commands > context.limits().max_node_commands) {
      return TooManyCommands(context.limits(), "broadcasting needs");
    }
    if (groups.size() == 1 && groups[0].b_walks) {
      EmitTensor(context, arithmetic, a, b, d, groups[0].size);
      return absl::OkStatus();
    }
    if (groups.size() == 1) {
      EmitVector(context, arithmetic, a, b, d, groups[0].size, 1);
      return absl::OkStatus();
    }
    if (groups.size() == 2 && !groups[0].b_walks) {
      EmitVector(context, arithmetic, a, b, d, groups[0].size, groups[1].size);
      return absl::OkStatus();
    }
    const absl::Span<const Group> rest = groups.subspan(1);
    const int64_t a_stride = Total(rest);
    const int64_t b_stride = groups[0].b_walks ? Product(rest, &Group::b_walks) : 0;
    for (int64_t i = 0; i < groups[0].size; ++i) {
      RETURN_IF_ERROR(
          Emit(rest, a.Plus(2 * i * a_stride), b.Plus(2 * i * b_stride), d.Plus(2 * i * a_stride)));
    }
    return absl::OkStatus();
  }
};

// a [outer,inner] -> a new [outer,size,inner], each row repeated: by one command where it fits,
// else by doubling, all rows at once.
Operand RepeatRows(LowerContext& context, Operand a, int64_t outer, int64_t size, int64_t inner) {
  const int64_t stride = size * inner;
  const Operand wide = context.Temp(outer * stride);
  if (outer == 1) {
    EmitRepeat(context, a, wide, size, inner);
    return wide;
  }
  if (!context.plain_commands() && inner <= context.limits().max_inner &&
      EmitCopyBoxes(context, a, {inner, 0}, wide, {stride, inner}, outer, size, inner)) {
    return wide;
  }
  EmitCopyRows(context, a, inner, wide, stride, outer, inner);
  for (int64_t have = 1; have < size; have *= 2) {
    EmitCopyRows(context, wide, stride, wide.Plus(2 * have * inner), stride, outer,
                 std::min(have, size - have) * inner);
  }
  return wide;
}

// A copy of an operand with group i walked as well; `walks` says which operand it is.
Operand ExpandGroup(LowerContext& context, std::vector<Group>& groups, bool Group::*walks, size_t i,
                    Operand operand) {
  const absl::Span<const Group> all = groups;
  const int64_t outer = Product(all.subspan(0, i), walks);
  const int64_t inner = Product(all.subspan(i + 1), walks);
  groups[i].*walks = true;
  return RepeatRows(context, operand, outer, groups[i].size, inner);
}

// A copy of a with every group walked.
Operand Expand(LowerContext& context, std::vector<Group>& groups, Operand a) {
  for (size_t i = groups.size(); i-- > 0;) {
    if (!groups[i].a_walks) a = ExpandGroup(context, groups, &Group::a_walks, i, a);
  }
  return a;
}

// Neighbours that both operands walk alike become one.
void MergeGroups(std::vector<Group>& groups) {
  std::vector<Group> merged;
  for (const Group& group : groups) {
    if (!merged.empty() && merged.back().a_walks == group.a_walks &&
        merged.back().b_walks == group.b_walks) {
      merged.back().size *= group.size;
    } else {
      merged.push_back(group);
    }
  }
  groups = std::move(merged);
}

// Repeats of b from which on it is cheaper to write them out once than to walk them by commands.
constexpr int64_t kWorthwhileRepeats = 64;

// Where Broadcast would take many commands, b is repeated over its innermost groups until few are
// left. a walks every group.
Operand ExpandWhereManyCommands(LowerContext& context, std::vector<Group>& groups, Operand b) {
  MergeGroups(groups);
  while (groups.size() > 1) {
    int64_t commands = 1;
    const size_t leaf = groups.back().b_walks ? 2 : 1;
    for (size_t i = 0; i + leaf < groups.size(); ++i) commands *= groups[i].size;
    if (commands <= kWorthwhileRepeats) break;
    size_t i = groups.size();
    while (i > 0 && groups[i - 1].b_walks) --i;
    if (i == 0) break;
    b = ExpandGroup(context, groups, &Group::b_walks, i - 1, b);
    MergeGroups(groups);
  }
  return b;
}

std::optional<float> ScalarConstant(const OpView& view, int i) {
  const Tensor* tensor = view.constants[i];
  if (tensor == nullptr || tensor->element_count() != 1) return std::nullopt;
  return static_cast<float>(tensor->at(0));
}

bool Commutes(Arithmetic arithmetic) {
  return arithmetic == Arithmetic::kAdd || arithmetic == Arithmetic::kMul;
}

// a to the power of a constant that is no scalar: the unit has powers by an immediate alone, so
// there is one command a run of equal exponents, for all rows at once.
absl::Status EmitConstantPower(const OpView& view, LowerContext& context, Operand d) {
  std::vector<Group> groups = GroupDimensions(view.inputs[0].shape, view.inputs[1].shape);
  if (view.constants[1] == nullptr) {
    return absl::UnimplementedError("the exponent is computed at run time; it must be a constant");
  }
  ASSIGN_OR_RETURN(Operand a, context.Input(0));
  a = Expand(context, groups, a);
  size_t first = 0;
  int64_t rows = 1;
  while (first < groups.size() && !groups[first].b_walks) rows *= groups[first++].size;
  // The exponents of one row, written out.
  std::vector<float> exponents = view.constants[1]->ToFloats();
  for (size_t i = groups.size(); i-- > first;) {
    if (groups[i].b_walks) continue;
    const absl::Span<const Group> all = groups;
    const int64_t inner = Product(all.subspan(i + 1), &Group::b_walks);
    std::vector<float> wide;
    for (size_t at = 0; at < exponents.size(); at += static_cast<size_t>(inner)) {
      for (int64_t repeat = 0; repeat < groups[i].size; ++repeat) {
        wide.insert(wide.end(), exponents.begin() + static_cast<int64_t>(at),
                    exponents.begin() + static_cast<int64_t>(at) + inner);
      }
    }
    exponents = std::move(wide);
    groups[i].b_walks = true;
  }
  const int64_t n = static_cast<int64_t>(exponents.size());
  int64_t commands = 0;
  for (int64_t begin = 0, end = 0; begin < n; begin = end) {
    while (end < n && exponents[end] == exponents[begin]) ++end;
    if (++commands > context.limits().max_node_commands) {
      return TooManyCommands(context.limits(), "a command for each run of equal exponents needs");
    }
    EmitScalarRows(context, Arithmetic::kPow, a.Plus(2 * begin), exponents[begin],
                   d.Plus(2 * begin), n, rows, end - begin);
  }
  return absl::OkStatus();
}

// place(i): where the result goes if it may overwrite operand i; -1: if it may overwrite none.
template <typename Place>
absl::Status EmitBroadcast(const OpView& view, LowerContext& context, Arithmetic arithmetic,
                           const Place& place) {
  std::vector<Group> groups = GroupDimensions(view.inputs[0].shape, view.inputs[1].shape);
  const int64_t total = Total(groups);
  const bool a_full = Product(groups, &Group::a_walks) == total;
  const bool b_full = Product(groups, &Group::b_walks) == total;
  if (const auto scalar = ScalarConstant(view, 1); scalar && a_full) {
    ASSIGN_OR_RETURN(const Operand a, context.Input(0));
    EmitScalar(context, arithmetic, a, *scalar, place(0), total);
    return absl::OkStatus();
  }
  if (arithmetic == Arithmetic::kPow) return EmitConstantPower(view, context, place(-1));
  if (const auto scalar = ScalarConstant(view, 0); scalar && b_full) {
    ASSIGN_OR_RETURN(const Operand b, context.Input(1));
    if (Commutes(arithmetic)) {
      EmitScalar(context, arithmetic, b, *scalar, place(1), total);
    } else {
      EmitScalarFirst(context, arithmetic, *scalar, b, place(1), total);
    }
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(Operand a, context.Input(0));
  ASSIGN_OR_RETURN(Operand b, context.Input(1));
  int over = a_full ? 0 : -1;
  if (!a_full && b_full && (Commutes(arithmetic) || arithmetic == Arithmetic::kSub)) {
    // The unit repeats only its second source. a - b = -b + a, and negation is exact.
    over = 1;
    if (arithmetic == Arithmetic::kSub) {
      const Operand negated = context.Temp(total);
      EmitScalar(context, Arithmetic::kMul, b, -1.0f, negated, total);
      b = negated;
      arithmetic = Arithmetic::kAdd;
      over = -1;
    }
    std::swap(a, b);
    for (Group& group : groups) std::swap(group.a_walks, group.b_walks);
  } else if (!a_full) {
    a = Expand(context, groups, a);
  }
  b = ExpandWhereManyCommands(context, groups, b);
  return Broadcast{context, arithmetic}.Emit(groups, a, b, place(over));
}

}  // namespace

absl::Status LowerBroadcast(const OpView& view, LowerContext& context, Arithmetic arithmetic) {
  return EmitBroadcast(view, context, arithmetic, [&](int operand) {
    return operand >= 0 ? context.OutputOver(0, operand) : context.Output(0);
  });
}

absl::Status LowerBroadcastTo(const OpView& view, LowerContext& context, Arithmetic arithmetic,
                              Operand d) {
  return EmitBroadcast(view, context, arithmetic, [d](int operand) { return d; });
}

absl::Status LowerActivation(const OpView& view, LowerContext& context, Activation activation) {
  ASSIGN_OR_RETURN(const Operand a, context.Input(0));
  EmitActivation(context, activation, a, context.OutputOver(0, 0), view.inputs[0].element_count());
  return absl::OkStatus();
}

absl::Status LowerScalar(const OpView& view, LowerContext& context, Arithmetic arithmetic,
                         float immediate) {
  ASSIGN_OR_RETURN(const Operand a, context.Input(0));
  EmitScalar(context, arithmetic, a, immediate, context.OutputOver(0, 0),
             view.inputs[0].element_count());
  return absl::OkStatus();
}

}  // namespace npuc
