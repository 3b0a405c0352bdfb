#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_RECURRENT_CASES_TEST_UTIL_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_RECURRENT_CASES_TEST_UTIL_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/ops/op.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::frontend {

// PyTorch's answers of a small recurrent layer (tests/oracle/recurrent): 3 steps, batch 2, 3
// numbers a step, 2 units.
struct RecurrentCase {
  static constexpr int64_t kSteps = 3;
  static constexpr int64_t kBatch = 2;
  static constexpr int64_t kInput = 3;
  static constexpr int64_t kUnits = 2;

  std::string name;
  int states = 0;        // layers times directions: 1, or 2 layers of both directions
  std::vector<float> y;  // [steps, batch, directions * units]
  std::vector<float> h;  // [states, batch, units] behind the last step
  std::vector<float> c;  // likewise, of an LSTM
};

inline const std::vector<RecurrentCase>& RecurrentCases() {
  static const auto* const kCases = new std::vector<RecurrentCase>{
#include "compiler_core/frontends/common/recurrent_cases.inc"
  };
  return *kCases;
}

// The parameters of a case as PyTorch has them, and what it is run on.
class RecurrentNumbers {
 public:
  struct Direction {
    std::vector<float> w, r, w_bias, r_bias;  // [gates * units, in], [gates * units, units] ...
    int64_t in = 0;
  };

  RecurrentNumbers(const RecurrentCase& of, int64_t gates) {
    const int64_t units = RecurrentCase::kUnits;
    const int64_t rows = gates * units;
    for (int i = 0; i < of.states; ++i) {
      Direction direction;
      direction.in = i < 2 ? RecurrentCase::kInput : 2 * units;
      direction.w = Take(rows * direction.in);
      direction.r = Take(rows * units);
      direction.w_bias = Take(rows);
      direction.r_bias = Take(rows);
      directions.push_back(std::move(direction));
    }
    x = Take(RecurrentCase::kSteps * RecurrentCase::kBatch * RecurrentCase::kInput);
    h = Take(of.states * RecurrentCase::kBatch * units);
    if (!of.c.empty()) c = Take(of.states * RecurrentCase::kBatch * units);
  }

  std::vector<Direction> directions;
  std::vector<float> x, h, c;

 private:
  std::vector<float> Take(int64_t count) {
    std::vector<float> values;
    for (int64_t i = 0; i < count; ++i, ++next_) {
      values.push_back(static_cast<float>((37 * next_ + 11) % 101) / 101.0f - 0.5f);
    }
    return values;
  }

  int64_t next_ = 0;
};

// Runs an imported layer whose inputs are x, h and, of an LSTM, c, and whose outputs are y and the
// states behind it: they must be those of the case.
inline void ExpectCase(const RecurrentCase& of, const RecurrentNumbers& numbers,
                       const Graph& graph) {
  const Shape states = {of.states, RecurrentCase::kBatch, RecurrentCase::kUnits};
  std::vector<Tensor> inputs = {
      Tensor::FromFloats({RecurrentCase::kSteps, RecurrentCase::kBatch, RecurrentCase::kInput},
                         numbers.x),
      Tensor::FromFloats(states, numbers.h)};
  if (!of.c.empty()) inputs.push_back(Tensor::FromFloats(states, numbers.c));
  const absl::StatusOr<std::vector<Tensor>> results = RunReference(graph, inputs);
  ASSERT_TRUE(results.ok()) << results.status();
  std::vector<std::vector<float>> wanted = {of.y, of.h};
  if (!of.c.empty()) wanted.push_back(of.c);
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_THAT((*results)[i].ToFloats(),
                ::testing::Pointwise(::testing::FloatNear(1e-5f), wanted[i]))
        << of.name << i;
  }
}

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_RECURRENT_CASES_TEST_UTIL_H_
