// Orders, minima and sums at the ends of the number types, by the words of ONNX's Operators.md.
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "compiler_core/frontends/onnx/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::onnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kLowest = std::numeric_limits<float>::lowest();
constexpr int kFloat = 1;
constexpr int kUint8 = 2;
constexpr int kInt8 = 3;
constexpr int kInt32 = 6;
constexpr int kInt64 = 7;

// Values and indices of the k largest or least elements of a vector of that type.
struct Extremes {
  std::vector<float> values;
  std::vector<float> indices;
};
Extremes TopK(const std::vector<float>& x, int64_t k, bool largest = true, int type = kFloat) {
  ModelBuilder b;
  b.Input("x", {static_cast<int64_t>(x.size())}, type).Int64s("k", {k}).Output("v").Output("i");
  b.Node("TopK", {"x", "k"}, {"v", "i"}).Int("largest", largest ? 1 : 0);
  const std::vector<Tensor> y = Evaluate(b.Bytes(), {x});
  if (y.size() != 2) return {};
  return {y[0].ToFloats(), y[1].ToFloats()};
}

// "Given two equivalent values, this operator uses the indices along the axis as a tiebreaker. That
// is, the element with the lower index will appear first."
TEST(OnnxReduceTest, TopKNamesEachElementOnce) {
  const Extremes infinite = TopK({5, -kInf, -kInf, 1}, 4);
  EXPECT_THAT(infinite.values, ElementsAre(5, 1, -kInf, -kInf));
  EXPECT_THAT(infinite.indices, ElementsAre(0, 3, 1, 2));
  EXPECT_THAT(TopK({-kInf, -kInf, -kInf}, 3).indices, ElementsAre(0, 1, 2));
  EXPECT_THAT(TopK({-1e9f, -1e9f, -1e9f}, 3).indices, ElementsAre(0, 1, 2));
  EXPECT_THAT(TopK({1e9f, 1e9f, 1e9f}, 3).indices, ElementsAre(0, 1, 2));
  EXPECT_THAT(TopK({kLowest, 3, kLowest}, 3).indices, ElementsAre(1, 0, 2));
  EXPECT_THAT(TopK({kLowest, 3, kLowest}, 3).values, ElementsAre(3, kLowest, kLowest));
  EXPECT_THAT(TopK({kInf, 2, kInf}, 3, /*largest=*/false).indices, ElementsAre(1, 0, 2));
  EXPECT_THAT(TopK({kInf, 2, kInf}, 3, /*largest=*/false).values, ElementsAre(2, kInf, kInf));
}

TEST(OnnxReduceTest, TopKOfIntegersDoesNotWrap) {
  EXPECT_THAT(TopK({100, -100, 50}, 3, true, kInt8).values, ElementsAre(100, 50, -100));
  EXPECT_THAT(TopK({100, -100, 50}, 3, true, kInt8).indices, ElementsAre(0, 2, 1));
  EXPECT_THAT(TopK({100, 200, 50}, 3, false, kUint8).values, ElementsAre(50, 100, 200));
  EXPECT_THAT(TopK({-128, 127, 0}, 1, false, kInt8).values, ElementsAre(-128));
  EXPECT_THAT(TopK({2e9f, -2e9f, 5}, 3, true, kInt32).values, ElementsAre(2e9f, 5, -2e9f));
  EXPECT_THAT(TopK({2e9f, -2e9f, 5}, 3, true, kInt32).indices, ElementsAre(0, 2, 1));
}

std::vector<float> Reduced(const std::string& op, const std::vector<float>& x, int type = kFloat) {
  ModelBuilder b(13);
  b.Input("x", {static_cast<int64_t>(x.size())}, type).Output("y").Node(op, {"x"}, {"y"});
  const std::vector<Tensor> y = Evaluate(b.Bytes(), {x});
  return y.empty() ? std::vector<float>() : y[0].ToFloats();
}

TEST(OnnxReduceTest, MinimaOfIntegersDoNotWrap) {
  EXPECT_THAT(Reduced("ReduceMin", {0, 200, 5}, kUint8), ElementsAre(0));
  EXPECT_THAT(Reduced("ReduceMin", {-128, 5}, kInt8), ElementsAre(-128));
  EXPECT_THAT(Reduced("ReduceMin", {-0x1p31f, 5}, kInt32), ElementsAre(-0x1p31f));
  EXPECT_THAT(Reduced("ReduceMin", {-0x1p63f, 5}, kInt64), ElementsAre(-0x1p63f));
  EXPECT_THAT(Reduced("ReduceMin", {-3, 5, -kInf}), ElementsAre(-kInf));
  EXPECT_THAT(Reduced("ArgMin", {5, -0x1p63f}, kInt64), ElementsAre(1));
}

// log(sum(exp(x))): of 0 it is -inf.
TEST(OnnxReduceTest, LogSumExpKeepsInfinities) {
  EXPECT_THAT(Reduced("ReduceLogSumExp", {-kInf, -kInf}), ElementsAre(-kInf));
  EXPECT_THAT(Reduced("ReduceLogSumExp", {1, kInf}), ElementsAre(kInf));
  EXPECT_THAT(Reduced("ReduceLogSumExp", {-kInf, 3}), ElementsAre(3));
}

TEST(OnnxReduceTest, RunningSumsOfAConstantKeepInfinities) {
  const auto sums = [](bool exclusive, bool reverse) {
    ModelBuilder b;
    b.Input("x", {3}).Floats("c", {3}, {1, 2, -kInf}).Int64s("axis", {0}).Output("y");
    b.Node("CumSum", {"c", "axis"}, {"s"}).Int("exclusive", exclusive ? 1 : 0);
    b.Int("reverse", reverse ? 1 : 0).Node("Add", {"x", "s"}, {"y"});
    const std::vector<Tensor> y = Evaluate(b.Bytes(), {{0, 0, 0}});
    return y.empty() ? std::vector<float>() : y[0].ToFloats();
  };
  EXPECT_THAT(sums(false, false), ElementsAre(1, 3, -kInf));
  EXPECT_THAT(sums(true, false), ElementsAre(0, 1, 3));
  EXPECT_THAT(sums(true, true), ElementsAre(-kInf, -kInf, 0));
}

// "Trilu takes one input tensor ... and returns the upper or lower triangular part": other elements
// are zeros, whatever they were.
TEST(OnnxReduceTest, TrianglesLeaveInfinitiesOut) {
  ModelBuilder computed;
  computed.Input("x", {2, 2}).Output("y").Node("Trilu", {"x"}, {"y"});
  std::vector<Tensor> y = Evaluate(computed.Bytes(), {{1, -kInf, -kInf, 2}});
  ASSERT_EQ(y.size(), 1u);
  EXPECT_THAT(y[0].ToFloats(), ElementsAre(1, -kInf, 0, 2));
  // The mask of attention as exports have it.
  ModelBuilder mask;
  mask.Input("x", {2, 2}).Floats("c", {2, 2}, {-kInf, -kInf, -kInf, -kInf}).Int64s("k", {1});
  mask.Output("y").Node("Trilu", {"c", "k"}, {"t"}).Node("Add", {"x", "t"}, {"y"});
  y = Evaluate(mask.Bytes(), {{1, 1, 1, 1}});
  ASSERT_EQ(y.size(), 1u);
  EXPECT_THAT(y[0].ToFloats(), ElementsAre(1, -kInf, 1, 1));
}

}  // namespace
}  // namespace npuc::onnx
