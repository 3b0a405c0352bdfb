#include "compiler_core/frontends/common/einsum.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "compiler_core/base/status.h"

namespace npuc::frontend {
namespace {

// A value whose axes have names, a letter each. The dimensions of "..." are digits, 0 the last.
struct Named {
  ValueRef value;
  std::string axes;
};

bool Has(absl::string_view axes, char axis) { return axes.find(axis) != absl::string_view::npos; }

// The axes of `axes` for which `holds`, in their order.
template <typename Predicate>
std::string Those(absl::string_view axes, Predicate holds) {
  std::string out;
  std::copy_if(axes.begin(), axes.end(), std::back_inserter(out), holds);
  return out;
}

int64_t SizeOf(const Named& named, char axis) {
  return named.value->type.shape[named.axes.find(axis)];
}

Shape SizesOf(const Named& named, absl::string_view axes) {
  Shape shape;
  for (const char axis : axes) shape.push_back(SizeOf(named, axis));
  return shape;
}

absl::StatusOr<Named> Ordered(Emitter& node, Named named, const std::string& axes) {
  if (named.axes == axes) return named;
  std::vector<int64_t> perm;
  for (const char axis : axes) perm.push_back(static_cast<int64_t>(named.axes.find(axis)));
  ASSIGN_OR_RETURN(named.value, node.Transposed(named.value, std::move(perm)));
  named.axes = axes;
  return named;
}

// Sums over the axes that `kept` lacks.
absl::StatusOr<Named> Summed(Emitter& node, Named named, absl::string_view kept) {
  std::vector<int64_t> axes;
  for (size_t i = 0; i < named.axes.size(); ++i) {
    if (!Has(kept, named.axes[i])) axes.push_back(static_cast<int64_t>(i));
  }
  if (axes.empty()) return named;
  ASSIGN_OR_RETURN(named.value, node.Reduced("ReduceSum", named.value, axes, false));
  named.axes = Those(named.axes, [&](char axis) { return Has(kept, axis); });
  return named;
}

Shape Concatenated(std::initializer_list<Shape> shapes) {
  Shape all;
  for (const Shape& shape : shapes) all.insert(all.end(), shape.begin(), shape.end());
  return all;
}

// The product of two values, summed over the axes of both that `kept` lacks.
absl::StatusOr<Named> Product(Emitter& node, Named a, Named b, absl::string_view kept) {
  // A weight stands on the right, as matrix units want it.
  if (a.value->constant.has_value() && !b.value->constant.has_value()) std::swap(a, b);
  ASSIGN_OR_RETURN(a, Summed(node, std::move(a), absl::StrCat(kept, b.axes)));
  ASSIGN_OR_RETURN(b, Summed(node, std::move(b), absl::StrCat(kept, a.axes)));
  const std::string shared = Those(a.axes, [&](char axis) { return Has(b.axes, axis); });
  const std::string batch = Those(shared, [&](char axis) { return Has(kept, axis); });
  const std::string inner = Those(shared, [&](char axis) { return !Has(kept, axis); });
  const std::string a_own = Those(a.axes, [&](char axis) { return !Has(b.axes, axis); });
  const std::string b_own = Those(b.axes, [&](char axis) { return !Has(a.axes, axis); });
  ASSIGN_OR_RETURN(a, Ordered(node, std::move(a), batch + a_own + inner));
  ASSIGN_OR_RETURN(b, Ordered(node, std::move(b), batch + inner + b_own));
  Shape batch_shape;
  for (const char axis : batch) {
    batch_shape.push_back(std::max(SizeOf(a, axis), SizeOf(b, axis)));
  }
  const Shape a_shape = SizesOf(a, a_own);
  const Shape b_shape = SizesOf(b, b_own);
  Named y{.value = nullptr, .axes = batch + a_own + b_own};
  if (inner.empty()) {
    const Shape ones(b_shape.size(), 1);
    ASSIGN_OR_RETURN(ValueRef wide,
                     node.Reshaped(a.value, Concatenated({SizesOf(a, batch), a_shape, ones})));
    const Shape front(a_shape.size(), 1);
    ASSIGN_OR_RETURN(ValueRef deep,
                     node.Reshaped(b.value, Concatenated({SizesOf(b, batch), front, b_shape})));
    ASSIGN_OR_RETURN(y.value, node.Emit("Mul", {wide, deep}));
    return y;
  }
  const int64_t summed = ElementCount(SizesOf(a, inner));
  ASSIGN_OR_RETURN(
      ValueRef left,
      node.Reshaped(a.value, Concatenated({SizesOf(a, batch), {ElementCount(a_shape), summed}})));
  ASSIGN_OR_RETURN(
      ValueRef right,
      node.Reshaped(b.value, Concatenated({SizesOf(b, batch), {summed, ElementCount(b_shape)}})));
  ASSIGN_OR_RETURN(y.value, node.Emit("MatMul", {left, right},
                                      {{"transpose_a", false}, {"transpose_b", false}}));
  ASSIGN_OR_RETURN(y.value, node.Reshaped(y.value, Concatenated({batch_shape, a_shape, b_shape})));
  return y;
}

absl::Status NoEquation(absl::string_view equation, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("the equation '", Printable(equation), "' ", why));
}

// "...ij" of an operand of that rank -> "10ij". `ellipsis`: dimensions that "..." stands for.
absl::StatusOr<std::string> AxesOf(absl::string_view term, absl::string_view equation,
                                   int64_t ellipsis) {
  std::string digits;
  for (int64_t i = ellipsis; i-- > 0;) absl::StrAppend(&digits, i);
  const std::string axes = absl::StrReplaceAll(term, {{"...", digits}});
  const bool is_term = std::none_of(term.begin(), term.end(), absl::ascii_isdigit) &&
                       std::all_of(axes.begin(), axes.end(), absl::ascii_isalnum);
  if (!is_term || axes.size() > static_cast<size_t>(kMaxRank)) {
    return NoEquation(equation, "has a term that is no letters with at most one '...'");
  }
  return axes;
}

struct Equation {
  std::vector<std::string> terms;
  std::string result;
};

// The result where the equation states none: "..." and the letters that stand once, sorted.
std::string ImpliedResult(const Equation& equation) {
  std::map<char, int> counts;
  for (const std::string& term : equation.terms) {
    for (const char axis : term) ++counts[axis];
  }
  std::string dots;
  std::string letters;
  for (const auto& [axis, count] : counts) {
    if (absl::ascii_isdigit(axis)) {
      dots.insert(dots.begin(), axis);
    } else if (count == 1) {
      letters.push_back(axis);
    }
  }
  return dots + letters;
}

absl::StatusOr<Equation> Parse(absl::string_view text, absl::Span<const ValueRef> operands) {
  constexpr size_t kMaxText = 1024;
  if (text.size() > kMaxText) return absl::InvalidArgumentError("the equation is too long");
  const std::string plain = absl::StrReplaceAll(text, {{" ", ""}});
  const std::vector<std::string> sides = absl::StrSplit(plain, "->");
  const std::vector<std::string> terms = absl::StrSplit(sides[0], ',');
  if (sides.size() > 2 || terms.size() != operands.size()) {
    return NoEquation(text, absl::StrCat("does not have ", operands.size(), " terms"));
  }
  Equation equation;
  int64_t most_dots = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    const int64_t rank = static_cast<int64_t>(operands[i]->type.shape.size());
    const bool has_dots = absl::StrContains(terms[i], "...");
    const int64_t letters = static_cast<int64_t>(terms[i].size()) - (has_dots ? 3 : 0);
    if (has_dots ? letters > rank : letters != rank) {
      return NoEquation(text, absl::StrCat("does not fit operand ", i, ", which is ",
                                           TypeToString(operands[i]->type)));
    }
    most_dots = std::max(most_dots, rank - letters);
    ASSIGN_OR_RETURN(equation.terms.emplace_back(), AxesOf(terms[i], text, rank - letters));
  }
  if (sides.size() == 1) {
    equation.result = ImpliedResult(equation);
    return equation;
  }
  ASSIGN_OR_RETURN(equation.result, AxesOf(sides[1], text, most_dots));
  for (const char axis : equation.result) {
    const bool is_known = std::any_of(equation.terms.begin(), equation.terms.end(),
                                      [&](const std::string& term) { return Has(term, axis); });
    if (!is_known || std::count(equation.result.begin(), equation.result.end(), axis) > 1) {
      return NoEquation(text, "has a letter in its result twice, or in no operand");
    }
  }
  return equation;
}

absl::Status CheckSizes(absl::string_view text, const std::vector<Named>& values) {
  std::map<char, int64_t> sizes;
  for (const Named& named : values) {
    for (const char axis : named.axes) {
      const int64_t size = SizeOf(named, axis);
      const auto [known, is_new] = sizes.emplace(axis, size);
      if (is_new || known->second == size) continue;
      const bool is_stretched = absl::ascii_isdigit(axis) && (known->second == 1 || size == 1);
      if (!is_stretched) {
        return NoEquation(text, absl::StrCat("gives an axis of ", known->second,
                                             " elements and one of ", size, " one letter"));
      }
      known->second = std::max(known->second, size);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ValueRef> Einsum(Emitter& node, absl::string_view text,
                                absl::Span<const ValueRef> operands) {
  ASSIGN_OR_RETURN(const Equation equation, Parse(text, operands));
  std::vector<Named> values;
  for (size_t i = 0; i < operands.size(); ++i) {
    values.push_back({operands[i], equation.terms[i]});
    std::string sorted = equation.terms[i];
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
      return node.FailMode(
          absl::StrCat("the diagonal of operand ", i, " in the equation '", Printable(text), "'"),
          "take the diagonal outside of the model");
    }
  }
  RETURN_IF_ERROR(CheckSizes(text, values));
  Named y = values[0];
  for (size_t i = 1; i < values.size(); ++i) {
    std::string kept = equation.result;
    for (size_t k = i + 1; k < values.size(); ++k) kept += values[k].axes;
    ASSIGN_OR_RETURN(y, Product(node, std::move(y), values[i], kept));
  }
  ASSIGN_OR_RETURN(y, Summed(node, std::move(y), equation.result));
  ASSIGN_OR_RETURN(y, Ordered(node, std::move(y), equation.result));
  return y.value;
}

}  // namespace npuc::frontend
