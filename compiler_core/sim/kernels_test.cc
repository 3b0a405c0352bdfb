#include "compiler_core/sim/kernels.h"

#include <cmath>
#include <limits>

#include "compiler_core/base/fp16.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using Kind = VectorCommand::Kind;
using testing::ElementsAre;

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<uint16_t> Halves(const std::vector<float>& values) {
  std::vector<uint16_t> out;
  for (const float v : values) out.push_back(FloatToHalf(v));
  return out;
}

std::vector<float> Floats(const std::vector<uint16_t>& halves) {
  std::vector<float> out;
  for (const uint16_t h : halves) out.push_back(HalfToFloat(h));
  return out;
}

VectorCommand Command(Kind kind, uint16_t outer, uint16_t middle, uint16_t inner) {
  VectorCommand v;
  v.kind = kind;
  v.extents = {outer, middle, inner};
  v.a_middle_stride = v.d_middle_stride = inner;
  v.a_outer_stride = v.d_outer_stride = static_cast<uint16_t>(middle * inner);
  return v;
}

std::vector<float> Compute(const VectorCommand& v, const std::vector<float>& a,
                           const std::vector<float>& b, const std::vector<float>& c,
                           size_t d_count) {
  const std::vector<uint16_t> ha = Halves(a);
  const std::vector<uint16_t> hb = Halves(b);
  const std::vector<uint16_t> hc = Halves(c);
  std::vector<uint16_t> d(d_count, 0);
  RunVector(v, {a.empty() ? nullptr : ha.data(), hb.data(), hc.data(), d.data()}, nullptr);
  return Floats(d);
}

TEST(Vector, ArithmeticWalksStridesAndRepeatsVectors) {
  VectorCommand v = Command(Kind::kTensorVector, 2, 2, 2);
  v.arithmetic = Arithmetic::kSub;
  EXPECT_THAT(Compute(v, {1, 2, 3, 4, 5, 6, 7, 8}, {1, 10}, {}, 8),
              ElementsAre(0, -8, 2, -6, 4, -4, 6, -2));
  v = Command(Kind::kTensorTensor, 1, 2, 2);
  v.arithmetic = Arithmetic::kDiv;
  v.d_middle_stride = 3;  // a hole in d stays as it was
  EXPECT_THAT(Compute(v, {1, 2, 3, 4}, {2, 4, 8, 16}, {}, 5),
              ElementsAre(0.5, 0.5, 0, 0.375, 0.25));
}

TEST(Vector, ImmediatesStandForEitherOperand) {
  VectorCommand v = Command(Kind::kTensorTensor, 1, 1, 3);
  v.arithmetic = Arithmetic::kSub;
  v.a_is_immediate = true;
  v.immediate = 0x3c00;
  EXPECT_THAT(Compute(v, {}, {0.25, 1, 4}, {}, 3), ElementsAre(0.75, 0, -3));
  v = Command(Kind::kTensorScalar, 1, 1, 3);
  v.arithmetic = Arithmetic::kPow;
  v.immediate = FloatToHalf(0.5f);
  EXPECT_THAT(Compute(v, {4, 9, 0.25}, {}, {}, 3), ElementsAre(2, 3, 0.5));
}

TEST(Vector, ResultsAreRoundedOnceToEven) {
  VectorCommand v = Command(Kind::kTensorTensor, 1, 1, 4);
  // 2048 + 1 is a tie between 2048 and 2050; 65504 + 16 ties towards infinity.
  EXPECT_THAT(Compute(v, {2048, 2050, 65504, 65504}, {1, 1, 15, 16}, {}, 4),
              ElementsAre(2048, 2052, 65504, kInf));
  // a * b + c as one rounding: 1.0009765625^2 - 1 keeps the square's last bits.
  v = Command(Kind::kBatchNorm, 1, 1, 1);
  const float x = 1 + 0x1p-10f;
  EXPECT_THAT(Compute(v, {x}, {x}, {-1}, 1), ElementsAre(RoundToHalf(x * x - 1)));
}

TEST(Vector, PoolsTakeWholeWindows) {
  VectorCommand v = Command(Kind::kPool, 2, 5, 1);
  v.window_h = 2;
  v.window_w = 2;
  v.d_middle_stride = 1;
  EXPECT_THAT(Compute(v, {1, 2, 3, 4, 99, 8, 7, 6, -5, 99}, {}, {}, 2), ElementsAre(8, 6));
  v.average = true;
  EXPECT_THAT(Compute(v, {1, 2, 3, 4, 99, 8, 7, 6, -5, 99}, {}, {}, 2), ElementsAre(4.5, 2));
  v.average = false;
  EXPECT_TRUE(std::isnan(Compute(v, {1, 2, 3, 4, 9, NAN, 7, 6, -5, 9}, {}, {}, 2)[0]));
}

TEST(Vector, ReductionsScaleTheSum) {
  VectorCommand v = Command(Kind::kReduce, 2, 2, 3);
  v.immediate = FloatToHalf(0.5f);
  v.d_middle_stride = 1;
  v.d_outer_stride = 2;
  const std::vector<float> a = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  EXPECT_THAT(Compute(v, a, {}, {}, 4), ElementsAre(3, 7.5, 12, 16.5));
  v.reduce_middle = true;
  v.d_outer_stride = 3;
  EXPECT_THAT(Compute(v, a, {}, {}, 6), ElementsAre(2.5, 3.5, 4.5, 8.5, 9.5, 10.5));
}

// The result for one fp16 argument.
float Apply(const UnaryTable& table, float x) { return HalfToFloat(table[FloatToHalf(x)]); }

TEST(Functions, AreRightAtTheirEnds) {
  const UnaryTable relu = MakeActivationTable(Activation::kRelu);
  EXPECT_EQ(Apply(relu, -3), 0);
  EXPECT_EQ(relu[0x8000], 0);  // -0 becomes +0
  EXPECT_EQ(Apply(relu, kInf), kInf);
  EXPECT_TRUE(std::isnan(Apply(relu, NAN)));
  const UnaryTable sigmoid = MakeActivationTable(Activation::kSigmoid);
  EXPECT_EQ(Apply(sigmoid, 0), 0.5f);
  EXPECT_EQ(Apply(sigmoid, -kInf), 0);
  EXPECT_EQ(Apply(sigmoid, 1), RoundToHalf(0.7310586f));
  const UnaryTable tanh = MakeActivationTable(Activation::kTanh);
  EXPECT_EQ(Apply(tanh, -kInf), -1);
  EXPECT_EQ(Apply(tanh, 0.5f), RoundToHalf(0.46211716f));
  const UnaryTable selu = MakeActivationTable(Activation::kSelu);
  EXPECT_NEAR(Apply(selu, 1), 1.0507f, 1e-3);
  EXPECT_NEAR(Apply(selu, -1), -1.1113f, 2e-3);
  EXPECT_EQ(Apply(MakeExpTable(), 12), kInf);
  EXPECT_EQ(Apply(MakeExpTable(), -kInf), 0);
  EXPECT_EQ(Apply(MakeLogTable(), 1), 0);
  EXPECT_EQ(Apply(MakeLogTable(), 0), -kInf);
  EXPECT_TRUE(std::isnan(Apply(MakeLogTable(), -1)));
}

TEST(Matrix, SumsInOrderOfTheRows) {
  PanelMatrix m;
  m.Resize(3, 40);  // a whole panel and a part
  for (int64_t r = 0; r < 3; ++r) {
    for (int64_t c = 0; c < 40; ++c) m.at(r, c) = static_cast<float>(r + 1) + 0.5f * (c % 2);
  }
  const std::vector<uint16_t> a = Halves({1, 10, 100});
  std::vector<uint16_t> d(40);
  RunFullyConnected(m, a.data(), d.data());
  EXPECT_EQ(HalfToFloat(d[0]), 321);
  EXPECT_EQ(HalfToFloat(d[39]), RoundToHalf(376.5f));
  // float32 sums: 2^24 + 1 - 2^24 loses the 1 only in this order.
  m.Resize(3, 1);
  m.at(0, 0) = 4096;
  m.at(1, 0) = 1;
  m.at(2, 0) = -4096;
  const std::vector<uint16_t> order = Halves({4096, 1, 4096});
  RunFullyConnected(m, order.data(), d.data());
  EXPECT_EQ(HalfToFloat(d[0]), 0);
  m.bias = {2.5f};
  RunFullyConnected(m, order.data(), d.data());
  EXPECT_EQ(HalfToFloat(d[0]), 2.5f);
}

TEST(Convolution, PadsStridesAndKeepsChannelsLast) {
  ConvolutionForm form;
  form.in_h = form.out_h = 1;
  form.in_w = 4;
  form.in_c = 2;
  form.out_w = 2;
  form.out_c = 1;
  form.kernel_h = 1;
  form.kernel_w = 3;
  form.stride_h = 1;
  form.stride_w = 2;
  form.pad_left = 1;
  PanelMatrix m;
  m.Resize(6, 1);
  for (int64_t r = 0; r < 6; ++r)
    m.at(r, 0) = std::pow(10.0f, static_cast<float>(r % 3)) * (r < 3 ? 1 : -1);
  // taps: (1,10) (100,-1) (-10,-100)
  const std::vector<uint16_t> a = Halves({1, 2, 3, 4, 5, 6, 7, 8});
  std::vector<uint16_t> d(2);
  RunConvolution(form, m, a.data(), d.data());
  EXPECT_THAT(Floats(d), ElementsAre(100 * 1 - 2 - 30 - 400, 3 + 40 + 500 - 6 - 70 - 800));
}

TEST(Depthwise, EveryChannelHasItsTapsAndBias) {
  DepthwiseForm form;
  form.channels = 2;
  form.multiplier = 1;
  form.in_h = 2;
  form.in_w = 3;
  form.kernel_h = 2;
  form.kernel_w = 2;
  form.stride_h = form.stride_w = 1;
  form.out_h = 1;
  form.out_w = 2;
  form.bias = true;
  const std::vector<uint16_t> a = Halves({1, 2, 3, 4, 5, 6, 1, 1, 1, 1, 1, 1});
  std::vector<uint16_t> d(4);
  RunDepthwise(form, {1, 10, 100, 1000, 0.5, 1, 2, 3, 4, -10}, a.data(), d.data());
  EXPECT_THAT(Floats(d), ElementsAre(RoundToHalf(5421.5f), RoundToHalf(6532.5f), 0, 0));
  form.channels = 1;
  form.multiplier = 2;
  RunDepthwise(form, {1, 0, 0, 0, 0, 0, 0, 0, 1, 0}, a.data(), d.data());
  EXPECT_THAT(Floats(d), ElementsAre(1, 2, 5, 6));
}

TEST(Transpose, SwapsRowsAndColumnsAlsoInPlace) {
  std::vector<uint16_t> data = {1, 2, 3, 4, 5, 6};
  RunTranspose({2, 3}, data.data(), data.data());
  EXPECT_THAT(data, ElementsAre(1, 4, 2, 5, 3, 6));
}

}  // namespace
}  // namespace npuc
