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

}  // namespace
}  // namespace npuc
