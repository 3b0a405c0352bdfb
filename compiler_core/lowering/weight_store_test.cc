#include "compiler_core/lowering/weight_store.h"

#include "gtest/gtest.h"

namespace npuc {
namespace {

// A store that fills `program`; nothing that these tests place asks for a core's limits.
struct Stored {
  Program program;
  LowerOptions options;
  CoreLimits limits{};
  Diagnostics diagnostics;
  WeightStore store{&program, &options, &limits, &diagnostics};

  int64_t OffsetOf(Operand operand) const {
    return program.buffers[static_cast<size_t>(operand.buffer.value())].offset_bytes;
  }
};

TEST(Repeated, UsersShareTheLongest) {
  Stored s;
  const Operand three = s.store.Repeated(1.0f, 3, "a");
  s.store.Constant(std::vector<float>{2.0f}, "b");
  const Operand five = s.store.Repeated(1.0f, 5, "c");
  const Operand two = s.store.Repeated(1.0f, 2, "d");
  const Operand other = s.store.Repeated(-1.0f, 1, "e");
  s.store.PlaceRepeated();
  EXPECT_EQ(three, five);
  EXPECT_EQ(three, two);
  EXPECT_NE(three, other);
  EXPECT_EQ(s.OffsetOf(three), 2);
  EXPECT_EQ(s.OffsetOf(other), 12);
  EXPECT_EQ(s.program.weights, (std::vector<uint8_t>{0x00, 0x40,  // 2
                                                     0x00, 0x3c, 0x00, 0x3c, 0x00, 0x3c, 0x00, 0x3c,
                                                     0x00, 0x3c,     // 1, five times
                                                     0x00, 0xbc}));  // -1
}

TEST(Repeated, AConstantThatBeginsSoIsUsed) {
  Stored s;
  const Operand bias = s.store.Constant(std::vector<float>{0, 0, 0, 7}, "bias");
  const Operand zeros = s.store.Repeated(0.0f, 3, "padding");
  const Operand ones = s.store.Repeated(1.0f, 3, "ones");
  s.store.Constant(std::vector<float>{1, 1}, "too short");
  s.store.PlaceRepeated();
  EXPECT_EQ(s.OffsetOf(zeros), s.OffsetOf(bias));
  EXPECT_EQ(s.OffsetOf(ones), 12);
  EXPECT_EQ(s.program.weights.size(), 18u);
}

TEST(Repeated, AValueBeyondFp16IsClamped) {
  Stored s;
  s.store.Repeated(1e9f, 1, "a");
  s.store.PlaceRepeated();
  EXPECT_EQ(s.program.weights, (std::vector<uint8_t>{0xff, 0x7b}));
  EXPECT_FALSE(s.diagnostics.list().empty());
}

TEST(Immediate, IsStoredAsConstantsAre) {
  Stored s;
  EXPECT_EQ(s.store.Immediate(1.5f, "a"), 0x3e00);
  EXPECT_TRUE(s.diagnostics.list().empty());
  EXPECT_EQ(s.store.Immediate(-3.4e38f, "b"), 0xfbff);
  ASSERT_EQ(s.diagnostics.list().size(), 1u);
  EXPECT_EQ(s.diagnostics.list()[0].kind, DiagnosticKind::kConstantBeyondFp16);
  EXPECT_EQ(s.diagnostics.list()[0].node, "b");
  EXPECT_EQ(s.store.Immediate(1e-12f, "c"), 0);
  ASSERT_EQ(s.diagnostics.list().size(), 2u);
  EXPECT_EQ(s.diagnostics.list()[1].kind, DiagnosticKind::kConstantBelowFp16);
}

TEST(AwayFromZero, IsTheSmallestNumberWhereFp16HasNone) {
  Stored s;
  EXPECT_EQ(s.store.AwayFromZero(6e-8f, "a"), 6e-8f);
  EXPECT_EQ(s.store.AwayFromZero(0.0f, "a"), 0.0f);
  EXPECT_TRUE(s.diagnostics.list().empty());
  EXPECT_EQ(s.store.AwayFromZero(1e-12f, "b"), 0x1p-24f);
  EXPECT_EQ(s.store.AwayFromZero(-1e-12f, "b"), -0x1p-24f);
  ASSERT_EQ(s.diagnostics.list().size(), 1u);
  EXPECT_EQ(s.diagnostics.list()[0].kind, DiagnosticKind::kConstantBelowFp16);
  EXPECT_EQ(s.diagnostics.list()[0].node, "b");
}

}  // namespace
}  // namespace npuc
