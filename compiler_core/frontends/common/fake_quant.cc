#include "compiler_core/frontends/common/fake_quant.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/graph/quantization.h"

namespace npuc::frontend {

absl::StatusOr<ValueRef> FakeQuantized(Emitter& node, const ValueRef& value,
                                       const FakeQuantRange& range) {
  constexpr int64_t kMaxBits = 16;
  if (range.bits < 2 || range.bits > kMaxBits) {
    return node.FailMode(absl::StrCat(range.bits, " bits"),
                         absl::StrCat("quantize to 2 to ", kMaxBits, " bits"));
  }
  QuantParams params;
  params.dtype = range.bits <= 8 ? DType::kUint8 : DType::kUint16;
  params.qmin = range.narrow_range ? 1 : 0;
  params.qmax = (int64_t{1} << range.bits) - 1;
  params.axis = range.axis;
  const auto lowest = static_cast<float>(params.qmin);
  const auto highest = static_cast<float>(params.qmax);
  for (size_t i = 0; i < range.min.size(); ++i) {
    const auto min = static_cast<float>(range.min[i]);
    const auto max = static_cast<float>(range.max[i]);
    const float scale = (max - min) / (highest - lowest);
    if (!(min <= 0) || !(max >= 0) || !(scale > 0) || !std::isfinite(scale)) {
      return node.FailMode(absl::StrCat("a range from ", min, " to ", max),
                           "train the model until its ranges hold 0 and more than 0");
    }
    const float zero_point = std::round(lowest - min / scale);
    params.scale.push_back(scale);
    params.zero_point.push_back(static_cast<int64_t>(std::clamp(zero_point, lowest, highest)));
  }
  return node.Requantized(value, params);
}

}  // namespace npuc::frontend
