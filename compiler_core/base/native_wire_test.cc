#include "compiler_core/base/native_wire.h"

#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using ::testing::HasSubstr;

std::vector<NativeCall> TwoCalls() {
  const NativeAttribute scale = {"scale", NativeAttribute::Type::kFloat, {0.5}};
  const NativeAttribute axes = {"axes", NativeAttribute::Type::kInts, {1, -2}};
  return {{"acme.Abs", {scale}, {{{2, 3}, {1, 2, 3, 4, 5, 6}}}, 1},
          {"acme.Two", {axes}, {{{}, {7}}, {{1}, {8}}}, 2}};
}

NativeAnswer AnswerOf() { return {"", {{{{2, 1}, {1, 2}}}, {{{}, {3}}, {{3}, {4, 5, 6}}}}}; }

TEST(NativeWireTest, AnOrderComesBack) {
  const auto order = DecodeNativeOrder(EncodeNativeOrder("ELF", TwoCalls()));
  ASSERT_TRUE(order.ok()) << order.status();
  EXPECT_EQ(order->library, "ELF");
  ASSERT_EQ(order->calls.size(), 2u);
  EXPECT_EQ(order->calls[0].op, "acme.Abs");
  EXPECT_EQ(order->calls[0].attributes[0].numbers, std::vector<double>{0.5});
  EXPECT_EQ(order->calls[1].attributes[0].type, NativeAttribute::Type::kInts);
  EXPECT_EQ(order->calls[1].operands[1].values, std::vector<float>{8});
  EXPECT_EQ(order->calls[1].result_count, 2u);
}

TEST(NativeWireTest, AnAnswerComesBackAndEachCutIsRefused) {
  const std::string bytes = EncodeNativeAnswer(AnswerOf());
  const auto answer = DecodeNativeAnswer(bytes, TwoCalls());
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->results[1][1].values, (std::vector<float>{4, 5, 6}));
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeNativeAnswer(bytes.substr(0, size), TwoCalls()).ok()) << size;
  }
  EXPECT_FALSE(DecodeNativeAnswer(bytes + "x", TwoCalls()).ok());
  const auto problem = DecodeNativeAnswer(EncodeNativeAnswer({"it is odd", {}}), TwoCalls());
  ASSERT_TRUE(problem.ok()) << problem.status();
  EXPECT_EQ(problem->problem, "it is odd");
}

TEST(NativeWireTest, AShapeIsCheckedBeforeItsMemoryIsTaken) {
  // The first result's shape lies behind the mark, the text's size and the rank.
  constexpr size_t kFirstDim = 4 + 8 + 4;
  for (const int64_t dim : {int64_t{0}, int64_t{-1}, kMaxNativeElements + 1, INT64_MAX}) {
    std::string bytes = EncodeNativeAnswer(AnswerOf());
    std::memcpy(bytes.data() + kFirstDim, &dim, sizeof(dim));
    const auto answer = DecodeNativeAnswer(bytes, TwoCalls());
    EXPECT_THAT(std::string(answer.status().message()), HasSubstr("elements")) << dim;
  }
  std::string bytes = EncodeNativeAnswer(AnswerOf());
  const int64_t more = kMaxNativeElements;  // allowed, and not there
  std::memcpy(bytes.data() + kFirstDim, &more, sizeof(more));
  EXPECT_THAT(std::string(DecodeNativeAnswer(bytes, TwoCalls()).status().message()),
              HasSubstr("cut short"));
}

TEST(NativeWireTest, AnOutcomeComesBackAndUnknownKindsAreRefused) {
  NativeOutcome outcome{NativeOutcome::Kind::kSignal, 11, NativeOutcome::Stage::kCompute, "text"};
  const auto read = DecodeNativeOutcome(EncodeNativeOutcome(outcome));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->kind, NativeOutcome::Kind::kSignal);
  EXPECT_EQ(read->detail, 11);
  EXPECT_EQ(read->stage, NativeOutcome::Stage::kCompute);
  EXPECT_EQ(read->payload, "text");
  EXPECT_FALSE(DecodeNativeOutcome(std::string(11, '\0')).ok());
  EXPECT_FALSE(DecodeNativeOutcome(std::string(12, '\x7f')).ok());
}

TEST(NativeWireTest, ElementsAreCountedWithinBounds) {
  EXPECT_EQ(*NativeElementCount({}), 1);
  EXPECT_EQ(*NativeElementCount({4096, 4096}), kMaxNativeElements);
  EXPECT_FALSE(NativeElementCount({4096, 4097}).ok());
  EXPECT_FALSE(NativeElementCount({1, 1, 1, 1, 1, 1, 1, 1, 1}).ok());
  EXPECT_FALSE(NativeElementCount({INT64_MAX, INT64_MAX}).ok());
}

}  // namespace
}  // namespace npuc
