#include "compiler_core/lowering/integer/code_weights.h"

#include <cstdint>
#include <variant>
#include <vector>

#include "absl/types/span.h"
#include "compiler_core/ir/integer/weight_code.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using integer::Convolve;
using integer::Program;

constexpr int32_t kInputs = 64;

// A product with the first `channels` rows of the weights.
integer::Command Layer(int32_t channels) {
  Convolve c;
  c.a = {BufferId(0), 0};
  c.result.d = {BufferId(0), 0};
  c.in_c = kInputs;
  c.out_c = channels;
  c.weights = {BufferId(1), 0};
  return {c, "layer"};
}

// Stripes of a layer may be cut differently among cores: then some commands read all weights,
// others those of their channels, from the same byte on. A code is decoded as a whole.
TEST(CodeWeights, CodesAPartApartFromTheWhole) {
  Program program;
  program.buffers.resize(2);
  program.buffers[0].size_bytes = kInputs;
  program.buffers[1] = {Slot::kWeight, 48 * kInputs, 0, ""};
  for (int i = 0; i < 48 * kInputs; ++i) {
    program.weights.push_back(static_cast<uint8_t>(i % 7 == 0 ? i : 0));
  }
  program.commands = {Layer(48), Layer(16), Layer(48)};
  const std::vector<uint8_t> plain = program.weights;
  ASSERT_TRUE(CodeWeights(program).ok());
  EXPECT_LT(program.weights.size(), plain.size());
  for (const integer::Command& command : program.commands) {
    const auto& c = std::get<Convolve>(command.body);
    ASSERT_GT(c.coded_bytes, 0);
    const auto bytes = [&](const Operand& operand, int64_t count) {
      return absl::MakeConstSpan(program.weights)
          .subspan(static_cast<size_t>(operand.offset_bytes), static_cast<size_t>(count));
    };
    const auto decoded =
        integer::DecodeWeights(bytes(c.weights, c.coded_bytes), int64_t{c.out_c} * kInputs,
                               bytes(c.table, integer::kCodeTableBytes));
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(*decoded, std::vector<uint8_t>(plain.begin(), plain.begin() + c.out_c * kInputs));
  }
}

}  // namespace
}  // namespace npuc
