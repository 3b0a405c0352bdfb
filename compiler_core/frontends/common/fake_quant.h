#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_FAKE_QUANT_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_FAKE_QUANT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler_core/frontends/common/emitter.h"

namespace npuc::frontend {

// The integers that a model was trained for, as TensorFlow states them: the floats of the lowest
// and the highest one.
struct FakeQuantRange {
  std::vector<double> min = {};  // one, or one for each position along `axis`
  std::vector<double> max = {};
  int64_t bits = 8;
  bool narrow_range = false;  // the lowest integer is 1, not 0
  int axis = -1;              // -1: one range for all
};

// The value rounded to these integers and back. The range is moved until it holds 0 exactly, as
// TensorFlow's kernels do (core/kernels/fake_quant_ops_functor.h, Nudge).
absl::StatusOr<ValueRef> FakeQuantized(Emitter& node, const ValueRef& value,
                                       const FakeQuantRange& range);

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_FAKE_QUANT_H_
