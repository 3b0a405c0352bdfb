#include "compiler_core/ops/interval.h"

#include <cmath>
#include <random>

#include "gtest/gtest.h"

namespace npuc {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool Holds(const Interval& interval, double value) {
  return interval.least <= value && value <= interval.most;
}

TEST(IntervalTest, ResultsOfNumbersWithinLieWithin) {
  std::mt19937 random(1);
  const auto number = [&] { return std::ldexp(static_cast<double>(random() % 2001) - 1000, -5); };
  const auto interval = [&] {
    const double a = number(), b = number();
    return Interval{std::min(a, b), std::max(a, b)};
  };
  const auto within = [&](const Interval& some) {
    constexpr int kParts = 4;
    return some.least +
           (some.most - some.least) * static_cast<double>(random() % (kParts + 1)) / kParts;
  };
  for (int i = 0; i < 10000; ++i) {
    const Interval a = interval(), b = interval();
    const double x = within(a), y = within(b);
    EXPECT_TRUE(Holds(Hull(a, b), x) && Holds(Hull(a, b), y));
    EXPECT_GE(LargestSize(a), std::fabs(x));
    EXPECT_TRUE(Holds(*IntervalOfResult(Op::kAdd, a, b), x + y));
    EXPECT_TRUE(Holds(*IntervalOfResult(Op::kSub, a, b), x - y));
    EXPECT_TRUE(Holds(*IntervalOfResult(Op::kMul, a, b), x * y));
    EXPECT_TRUE(Holds(*IntervalOfResult(Op::kMaximum, a, b), std::max(x, y)));
    EXPECT_TRUE(Holds(*IntervalOfResult(Op::kMinimum, a, b), std::min(x, y)));
  }
  EXPECT_FALSE(IntervalOfResult(Op::kDiv, {1, 2}, {1, 2}).has_value());
}

TEST(IntervalTest, TheEndsAreReached) {
  const Interval product = Product({-2, 3}, {-5, 4});
  EXPECT_EQ(product.least, -15);
  EXPECT_EQ(product.most, 12);
  const Interval difference = *IntervalOfResult(Op::kSub, {1, 2}, {10, 20});
  EXPECT_EQ(difference.least, -19);
  EXPECT_EQ(difference.most, -8);
}

TEST(IntervalTest, UnknownStaysUnknown) {
  EXPECT_EQ(LargestSize(Interval()), kInfinity);
  const Interval product = Product({0, 1}, {});
  EXPECT_EQ(product.least, -kInfinity);
  EXPECT_EQ(product.most, kInfinity);
}

TEST(IntervalTest, ConstantsByAllTheirElements) {
  const Interval some = IntervalOf(Tensor::FromFloats({3}, {1.5f, -2, 0}));
  EXPECT_EQ(some.least, -2);
  EXPECT_EQ(some.most, 1.5);
  EXPECT_EQ(LargestSize(IntervalOf(Tensor::FromFloats({2}, {1, std::nanf("")}))), kInfinity);
  EXPECT_EQ(LargestSize(IntervalOf(Tensor::FromFloats({0}, {}))), kInfinity);
}

}  // namespace
}  // namespace npuc
