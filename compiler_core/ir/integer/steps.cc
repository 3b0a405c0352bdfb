#include "compiler_core/ir/integer/steps.h"

#include <algorithm>
#include <limits>
#include <variant>

#include "compiler_core/base/rounding.h"
#include "compiler_core/ir/integer/access.h"

namespace npuc::integer {
namespace {

// Calls take(first, end) for each group of consecutive ones of `count`.
template <typename Take>
void ForEachGroup(int64_t count, int64_t max_groups, const Take& take) {
  const int64_t each = DivideUp(count, std::max<int64_t>(1, std::min(count, max_groups)));
  for (int64_t first = 0; first < count; first += each) take(first, std::min(first + each, count));
}

// The rows of an operand of `size` rows that the window of row `out` covers, padding left out.
ByteRange RowsOf(const Window& window, int64_t out, int64_t size) {
  const int64_t start = out * window.stride_h - window.pad_top;
  const int64_t end = start + int64_t{window.kernel_h - 1} * window.dilation_h + 1;
  return {std::clamp<int64_t>(start, 0, size), std::clamp<int64_t>(end, 0, size)};
}

// Rows of out_h of a windowed command over n images.
std::vector<Step> WindowSteps(const Window& window, int64_t n, int64_t in_h, int64_t in_row_bytes,
                              int64_t out_h, int64_t out_row_bytes) {
  std::vector<Step> steps;
  ForEachGroup(n * out_h, kMaxSteps, [&](int64_t first, int64_t end) {
    const int64_t last = end - 1;
    const ByteRange low = RowsOf(window, first % out_h, in_h).Plus(first / out_h * in_h);
    const ByteRange high = RowsOf(window, last % out_h, in_h).Plus(last / out_h * in_h);
    Step step;
    step.reads[0] = {low.begin * in_row_bytes, high.end * in_row_bytes};
    step.writes = {first * out_row_bytes, end * out_row_bytes};
    steps.push_back(step);
  });
  return steps;
}

// One operand of a walk: its strides in bytes, and the bytes of an element.
struct Walked {
  std::array<int64_t, kMaxExtents> strides = {};
  int64_t size = 0;
};

Walked WalkedOf(const Extents& strides, DType type) {
  Walked walked;
  walked.size = SizeOf(type);
  for (int i = 0; i < kMaxExtents; ++i) walked.strides[i] = strides[i] * walked.size;
  return walked;
}

// Elements one behind the other; those of a product take the extents before its last.
Walked DenseOf(const Extents& extents, DType type) {
  Walked walked;
  walked.size = SizeOf(type);
  int64_t stride = walked.size;
  for (int i = kMaxExtents - 1; i >= 0; --i) {
    walked.strides[i] = stride;
    stride *= extents[i];
  }
  return walked;
}

// Walks in the order of extents, as few together in a step as kMaxSteps allows.
class WalkSteps {
 public:
  explicit WalkSteps(const Extents& extents) : extents_(extents) {
    while (split_ < kMaxExtents - 1 && outer_ * extents[split_] <= kMaxSteps) {
      outer_ *= extents[split_++];
    }
  }

  std::vector<Step> Run(const std::vector<const Walked*>& operands, const Walked& result) const {
    std::vector<Step> steps;
    for (int64_t index = 0; index < outer_; ++index) {
      ForEachGroup(extents_[split_], kMaxSteps / outer_, [&](int64_t first, int64_t end) {
        Step step;
        for (size_t i = 0; i < operands.size(); ++i) {
          step.reads[i] = RangeOf(*operands[i], index, first, end);
        }
        step.writes = RangeOf(result, index, first, end);
        steps.push_back(step);
      });
    }
    return steps;
  }

 private:
  ByteRange RangeOf(const Walked& walked, int64_t index, int64_t first, int64_t end) const {
    ByteRange range{0, walked.size};
    for (int axis = split_ - 1; axis >= 0; --axis) {
      range = range.Plus(index % extents_[axis] * walked.strides[axis]);
      index /= extents_[axis];
    }
    range = range.Plus(first * walked.strides[split_]);
    Widen((end - first - 1) * walked.strides[split_], range);
    for (int axis = split_ + 1; axis < kMaxExtents; ++axis) {
      Widen((extents_[axis] - 1) * walked.strides[axis], range);
    }
    return range;
  }
  static void Widen(int64_t reach, ByteRange& range) {
    (reach < 0 ? range.begin : range.end) += reach;
  }

  const Extents& extents_;
  int split_ = 0;      // the axis whose places are grouped; those before it have a step each
  int64_t outer_ = 1;  // places of the axes before it
};

std::vector<Step> DenseSteps(int64_t count, DType a, DType d) {
  const Extents extents = {1, 1, 1, 1, 1, static_cast<int32_t>(count)};
  const Walked from = DenseOf(extents, a);
  return WalkSteps(extents).Run({&from}, DenseOf(extents, d));
}

struct StepsVisitor {
  std::vector<Step> operator()(const Convolve& c) const {
    const int64_t size = SizeOf(c.result.type);
    std::vector<Step> steps =
        WindowSteps(c.window, c.n, c.in_h, int64_t{c.in_w} * c.in_c * SizeOf(c.a_type), c.out_h,
                    c.out_w * PixelElements(c) * size);
    for (Step& step : steps) step.writes.end -= (PixelElements(c) - c.out_c) * size;
    return steps;
  }
  std::vector<Step> operator()(const Pool& c) const {
    return WindowSteps(c.window, c.n, c.in_h, int64_t{c.in_w} * c.c * SizeOf(c.a_type), c.out_h,
                       int64_t{c.out_w} * c.c * SizeOf(c.result.type));
  }
  std::vector<Step> operator()(const Combine& c) const {
    const Walked a = WalkedOf(c.a_strides, c.a_type);
    const Walked b = WalkedOf(c.b_strides, c.b_type);
    return WalkSteps(c.extents).Run({&a, &b}, WalkedOf(c.d_strides, c.result.type));
  }
  std::vector<Step> operator()(const Move& c) const {
    const Walked a = WalkedOf(c.a_strides, c.a_type);
    return WalkSteps(c.extents).Run({&a}, WalkedOf(c.d_strides, c.result.type));
  }
  std::vector<Step> operator()(const Product& c) const {
    Extents results = c.extents;
    results.back() = 1;
    Walked d = DenseOf(results, c.result.type);
    d.strides.back() = 0;  // what is summed has one result
    const Walked a = WalkedOf(c.a_strides, c.a_type);
    const Walked b = WalkedOf(c.b_strides, c.b_type);
    std::vector<Step> steps = WalkSteps(results).Run({&a, &b}, d);
    const int64_t a_reach = (c.extents.back() - 1) * a.strides.back();
    const int64_t b_reach = (c.extents.back() - 1) * b.strides.back();
    for (Step& step : steps) {
      step.reads[0].end += a_reach;
      step.reads[1].end += b_reach;
    }
    return steps;
  }
  std::vector<Step> operator()(const Fill& c) const {
    std::vector<Step> steps = DenseSteps(c.count, c.result.type, c.result.type);
    for (Step& step : steps) step.reads[0] = {};
    return steps;
  }
  std::vector<Step> operator()(const Lookup& c) const {
    return DenseSteps(c.count, c.a_type, c.result.type);
  }
  std::vector<Step> operator()(const Softmax& c) const {
    return WindowSteps(Window(), 1, c.rows, c.length * SizeOf(c.a_type), c.rows,
                       c.length * SizeOf(c.result.type));
  }
};

// True where places of a walk follow each other upwards, none twice.
bool GoesUp(const Extents& extents, const Extents& strides) {
  int64_t reach = 0;  // of the axes inside
  for (int i = kMaxExtents - 1; i >= 0; --i) {
    if (extents[i] == 1) continue;
    if (strides[i] <= reach) return false;
    reach += int64_t{extents[i] - 1} * strides[i];
  }
  return true;
}

bool SamePlaces(const Extents& extents, const Extents& strides, DType type, const Extents& d,
                DType d_type) {
  for (int i = 0; i < kMaxExtents; ++i) {
    if (extents[i] > 1 && strides[i] != d[i]) return false;
  }
  return SizeOf(type) == SizeOf(d_type) && GoesUp(extents, d);
}

}  // namespace

ByteRange HullOf(const ByteRange& a, const ByteRange& b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

ByteRange CommonOf(const ByteRange& a, const ByteRange& b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

std::vector<Step> StepsOf(const Body& body) { return std::visit(StepsVisitor{}, body); }

std::array<Operand, 2> OperandsOf(const Body& body) {
  return std::visit(
      [](const auto& c) -> std::array<Operand, 2> {
        if constexpr (requires { c.b; }) {
          return {c.a, c.b};
        } else if constexpr (requires { c.a; }) {
          return {c.a, Operand()};
        } else {
          return {};
        }
      },
      body);
}

const Result& ResultOf(const Body& body) {
  return std::visit([](const auto& c) -> const Result& { return c.result; }, body);
}

bool WalksWithResult(const Body& body, size_t operand) {
  if (const auto* c = std::get_if<Combine>(&body)) {
    return operand == 0
               ? SamePlaces(c->extents, c->a_strides, c->a_type, c->d_strides, c->result.type)
               : SamePlaces(c->extents, c->b_strides, c->b_type, c->d_strides, c->result.type);
  }
  if (operand != 0) return false;
  if (const auto* c = std::get_if<Move>(&body)) {
    return SamePlaces(c->extents, c->a_strides, c->a_type, c->d_strides, c->result.type);
  }
  const auto* c = std::get_if<Lookup>(&body);
  return c != nullptr && SizeOf(c->a_type) == SizeOf(c->result.type);
}

bool Clobbers(const Body& body, const std::vector<Step>& steps, size_t operand, int64_t distance,
              bool descending) {
  if (WalksWithResult(body, operand) && (descending ? distance >= 0 : distance <= 0)) return false;
  ByteRange later;  // what this step and those behind it read
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[descending ? i : steps.size() - 1 - i];
    later = HullOf(later, step.reads[operand]);
    if (later.Overlaps(step.writes.Plus(distance))) return true;
  }
  return false;
}

}  // namespace npuc::integer
