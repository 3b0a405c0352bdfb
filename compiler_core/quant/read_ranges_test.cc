#include "compiler_core/quant/read_ranges.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/ir/graph/text.h"
#include "compiler_core/quant/data/npy.h"
#include "compiler_core/quant/quantize.h"
#include "compiler_core/quant/test_nets_test_util.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

// Sums of -2000 to 2000 in `%2`, behind which comes `rest`.
Graph GraphWith(const std::string& rest) {
  return *ParseGraph(absl::StrCat(R"(graph "m" {
  %0 = Placeholder() : f32[1,4] @"x"
  %1 = Const() {value = f32[4,4] splat "0000003f"} : f32[4,4] @"w"
  %2 = MatMul(%0, %1) : f32[1,4] @"sums"
)",
                                  rest, "}"));
}

std::string Samples() {
  const std::vector<float> values = {1000, 1000, 1000, 1000, 1,     1,     -1,    1,
                                     0,    -2,   3,    0,    -1000, -1000, -1000, -1000};
  NpyArray array;
  array.shape = {4, 4};
  array.bytes.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return WriteNpy(array).value();
}

QuantizeResult Quantized(const Graph& graph, int bits, bool mixes = false,
                         const std::string& samples = Samples()) {
  QuantizeInput input = InputOf(graph, samples);
  input.options.activation_method = QuantMethod::kPerTensorAsymmetric;
  input.options.activation_strategy = {QuantStrategy::Kind::kExtrema, 0};
  input.options.activation_bits = bits;
  input.options.mixed_precision_batches = mixes ? 1 : 0;
  Diagnostics diagnostics;
  absl::StatusOr<QuantizeResult> result = Quantize(input, diagnostics);
  EXPECT_TRUE(result.ok()) << result.status();
  return *std::move(result);
}

// The range that the integers of the sums stand for.
ValueRange RangeOfSums(const QuantizeResult& result) {
  for (const Layer& layer : result.plan.layers) {
    if (layer.name != "sums") continue;
    const QuantParams& params = result.plan.values.at(layer.outputs[0]);
    const auto value_of = [&params](int64_t stored) {
      return static_cast<double>(stored - params.zero_point[0]) * params.scale[0];
    };
    return {value_of(params.qmin), value_of(params.qmax)};
  }
  ADD_FAILURE() << "no layer of that name";
  return {};
}

ValueRange RangeOfSums(const std::string& rest, int bits = 8, bool mixes = false) {
  return RangeOfSums(Quantized(GraphWith(rest), bits, mixes));
}

void ExpectWhole(const ValueRange& range) {
  EXPECT_NEAR(range.min, -2000, 20);
  EXPECT_NEAR(range.max, 2000, 20);
}

constexpr char kSigmoid[] = R"(  %3 = Sigmoid(%2) : f32[1,4] @"s"
  return %3 @"y"
)";

TEST(ReadRanges, LeaveOutWhereSigmoidIsFlat) {
  const ValueRange range = RangeOfSums(kSigmoid);
  // A quarter of a step of 0.5 / 256 from the end: ln(2047).
  EXPECT_NEAR(range.min, -7.62, 0.1);
  EXPECT_NEAR(range.max, 7.62, 0.1);
}

TEST(ReadRanges, GrowWithTheBits) {
  // ln(2^19 - 1), and twice the range as for all values of so many bits.
  const ValueRange range = RangeOfSums(kSigmoid, 16);
  EXPECT_NEAR(range.max, 2 * 13.17, 0.4);
}

// A reader that gets 16 bits tells apart what one of 8 bits does not.
TEST(ReadRanges, SufficeForMixedPrecision) {
  EXPECT_GT(RangeOfSums(kSigmoid, 8, /*mixes=*/true).max, 13);
}

// The size of its results above 0 does not make Selu flat below.
TEST(ReadRanges, OfOneSide) {
  const ValueRange range = RangeOfSums(R"(  %3 = Selu(%2) : f32[1,4] @"s"
  return %3 @"y"
)");
  EXPECT_NEAR(range.max, 2000, 20);
  EXPECT_NEAR(range.min, -8, 8);  // a step has 7.9
}

TEST(ReadRanges, EndWhereAResultIsCut) {
  const ValueRange range = RangeOfSums(R"(  %3 = Relu6(%2) : f32[1,4] @"s"
  return %3 @"y", %3 @"z"
)");
  EXPECT_EQ(range.min, 0);
  EXPECT_NEAR(range.max, 6, 0.1);
}

TEST(ReadRanges, HoldWhatAnyReaderNeeds) {
  const ValueRange range = RangeOfSums(R"(  %3 = Sigmoid(%2) : f32[1,4] @"s"
  %4 = Reshape(%2) {shape = [4]} : f32[4] @"r"
  %5 = Tanh(%4) : f32[4] @"t"
  return %3 @"y", %5 @"z"
)");
  EXPECT_NEAR(range.max, 7.62, 0.1);
}

TEST(ReadRanges, AreWholeForOtherReaders) {
  ExpectWhole(RangeOfSums(R"(  %3 = Sigmoid(%2) : f32[1,4] @"s"
  %4 = Add(%2, %3) : f32[1,4] @"t"
  return %4 @"y"
)"));
  ExpectWhole(RangeOfSums(R"(  %3 = Sigmoid(%2) : f32[1,4] @"s"
  return %3 @"y", %2 @"z"
)"));
  ExpectWhole(RangeOfSums(R"(  %3 = Abs(%2) : f32[1,4] @"s"
  return %3 @"y"
)"));
}

// Samples of four elements of -2 to 3, with `mask` added to the last two, that `rest` reads.
ValueRange RangeOfMasked(const std::string& mask, const std::string& rest, float last = 0) {
  const Graph graph = *ParseGraph(absl::StrCat(R"(graph "m" {
  %0 = Placeholder() : f32[1,4] @"x"
  %1 = Const() {value = f32[4] "0000000000000000)",
                                               mask, mask, R"("} : f32[4] @"mask"
  %2 = Add(%0, %1) : f32[1,4] @"sums"
)",
                                               rest, "}"));
  const std::vector<float> values = {1, -1, 2, 0.5f, 3, -2, 1, 1, last, last + 1, last, last};
  NpyArray array;
  array.shape = {3, 4};
  array.bytes.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return RangeOfSums(Quantized(graph, 8, false, WriteNpy(array).value()));
}

constexpr char kMinus10000[] = "00401cc6";
constexpr char kMinus20[] = "0000a0c1";
constexpr char kSoftmax[] = R"(  %3 = Softmax(%2) : f32[1,4] @"s"
  return %3 @"y"
)";

// The least of the rows' largest elements is 1.
TEST(ReadRanges, LeaveOutWhatASoftmaxGivesNoShare) {
  const ValueRange range = RangeOfMasked(kMinus10000, kSoftmax);
  EXPECT_NEAR(range.min, -19, 0.2);
  EXPECT_NEAR(range.max, 3, 0.2);
}

// A row may lie far below another one.
TEST(ReadRanges, HoldTheLargestOfEachRow) {
  EXPECT_NEAR(RangeOfMasked(kMinus10000, kSoftmax, -100).min, -119, 1);
}

TEST(ReadRanges, AreWholeWhereASoftmaxReadsMostOfThem) {
  EXPECT_NEAR(RangeOfMasked(kMinus20, kSoftmax).min, -20, 0.2);
}

TEST(ReadRanges, AreWholeWhereNotOnlyASoftmaxReadsThem) {
  EXPECT_NEAR(RangeOfMasked(kMinus10000, R"(  %3 = Softmax(%2) : f32[1,4] @"s"
  %4 = Add(%2, %3) : f32[1,4] @"t"
  return %4 @"y"
)")
                  .min,
              -10000, 100);
}

TEST(ReadRanges, ABreakIsNotSearchedFor) {
  ExpectWhole(RangeOfSums(R"(  %3 = Floor(%2) : f32[1,4] @"s"
  return %3 @"y"
)"));
}

TEST(ReadRanges, BoundWhatALayerIsComparedBy) {
  const QuantizeResult result = Quantized(GraphWith(kSigmoid), 8);
  for (size_t i = 0; i < result.plan.layers.size(); ++i) {
    if (result.plan.layers[i].name == "sums") {
      EXPECT_LT(result.fidelity[i].mse, 1);
    }
  }
}

}  // namespace
}  // namespace npuc
