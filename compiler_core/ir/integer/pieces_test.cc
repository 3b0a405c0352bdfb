#include "compiler_core/ir/integer/pieces.h"

#include <algorithm>
#include <random>
#include <vector>

#include "compiler_core/ir/integer/steps.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::integer {
namespace {

class Random {
 public:
  int32_t Below(uint32_t end) { return static_cast<int32_t>(engine_() % end); }

  Convolve Convolution() {
    Convolve c;
    c.a = {BufferId(0), Below(9)};
    c.result.d = {BufferId(1), Below(9)};
    c.in_w = 1 + Below(3);
    c.in_c = 1 + Below(3);
    c.out_w = 1 + Below(3);
    c.out_c = 1 + Below(3);
    c.a_type = Below(2) == 0 ? DType::kInt8 : DType::kInt16;
    c.result.type = Below(2) == 0 ? DType::kUint8 : DType::kInt16;
    c.window.kernel_h = 1 + Below(5);
    c.window.stride_h = 1 + Below(3);
    c.window.dilation_h = 1 + Below(2);
    const int32_t reach = (c.window.kernel_h - 1) * c.window.dilation_h + 1;
    c.window.pad_top = Below(static_cast<uint32_t>(reach));
    c.in_h = reach + Below(12);
    c.out_h = (c.in_h + c.window.pad_top + Below(static_cast<uint32_t>(reach)) - reach) /
                  c.window.stride_h +
              1;
    return c;
  }

 private:
  std::mt19937 engine_{20261126};
};

// The rows that tap i of window `row` reads, from the operand's first byte on; -1: padding.
int64_t TapAt(const Convolve& c, int64_t row, int64_t tap) {
  const int64_t y = row * c.window.stride_h - c.window.pad_top + tap * c.window.dilation_h;
  if (y < 0 || y >= c.in_h) return -1;
  return c.a.offset_bytes + y * c.in_w * c.in_c * SizeOf(c.a_type);
}

// Each tap of each window reads the same bytes, and each row is stored in the same place.
TEST(PieceOf, RowsOfWindowsReadAndStoreTheSameBytes) {
  Random random;
  for (int round = 0; round < 2000; ++round) {
    SCOPED_TRACE(round);
    const Convolve whole = random.Convolution();
    const Units units = *UnitsOf(whole);
    ASSERT_EQ(units.count, whole.out_h);
    const int64_t first = random.Below(static_cast<uint32_t>(units.count));
    const int64_t end = first + 1 + random.Below(static_cast<uint32_t>(units.count - first));
    const std::optional<Body> body = PieceOf(whole, first, end);
    ASSERT_TRUE(body.has_value());
    const Convolve& piece = std::get<Convolve>(*body);
    ASSERT_EQ(piece.out_h, end - first);
    ASSERT_EQ(piece.result.d.offset_bytes, whole.result.d.offset_bytes + first * units.unit_bytes);
    for (int64_t row = first; row < end; ++row) {
      for (int64_t tap = 0; tap < whole.window.kernel_h; ++tap) {
        ASSERT_EQ(TapAt(piece, row - first, tap), TapAt(whole, row, tap));
      }
    }
    ASSERT_LE(piece.in_h, whole.in_h);
    ASSERT_GE(piece.window.pad_top, 0);
  }
}

TEST(PieceOf, WindowsInPaddingAloneHaveNone) {
  Convolve c;
  c.a = {BufferId(0), 0};
  c.result.d = {BufferId(1), 0};
  c.in_h = 2;
  c.out_h = 6;
  c.window.pad_top = 2;
  EXPECT_FALSE(PieceOf(c, 0, 2).has_value());
  EXPECT_TRUE(PieceOf(c, 0, 3).has_value());
  EXPECT_FALSE(PieceOf(c, 4, 6).has_value());
  c.n = 2;
  EXPECT_FALSE(UnitsOf(c).has_value());
}

TEST(PieceOf, ElementsOfSumsAreCutAtTheOutermostAxis) {
  Combine c;
  c.a = {BufferId(0), 5};
  c.b = {BufferId(1), 7};
  c.result.d = {BufferId(2), 3};
  c.result.type = DType::kInt16;
  c.extents = {1, 1, 1, 6, 4, 2};
  c.a_strides = {0, 0, 0, 8, 2, 1};
  c.b_strides = {0, 0, 0, 0, 0, 1};  // one number a channel
  c.d_strides = {0, 0, 0, 8, 2, 1};
  const Units units = *UnitsOf(c);
  EXPECT_EQ(units.count, 6);
  EXPECT_EQ(units.unit_bytes, 16);
  const Combine piece = std::get<Combine>(*PieceOf(c, 2, 5));
  EXPECT_EQ(piece.extents, (Extents{1, 1, 1, 3, 4, 2}));
  EXPECT_EQ(piece.a.offset_bytes, 5 + 16);
  EXPECT_EQ(piece.b.offset_bytes, 7);
  EXPECT_EQ(piece.result.d.offset_bytes, 3 + 32);
  c.d_strides = {0, 0, 0, 10, 2, 1};  // gaps between rows
  EXPECT_FALSE(UnitsOf(c).has_value());
  Lookup lookup;
  lookup.count = 9;
  lookup.a = {BufferId(0), 0};
  lookup.a_type = DType::kInt16;
  lookup.result.d = {BufferId(1), 0};
  const Lookup part = std::get<Lookup>(*PieceOf(lookup, 4, 9));
  EXPECT_EQ(part.count, 5);
  EXPECT_EQ(part.a.offset_bytes, 8);
  EXPECT_EQ(part.result.d.offset_bytes, 4);
  EXPECT_FALSE(UnitsOf(Softmax()).has_value());
  EXPECT_FALSE(UnitsOf(Product()).has_value());
}

}  // namespace
}  // namespace npuc::integer
