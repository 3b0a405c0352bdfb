// Operators on sequences; expected values follow from their definitions.
#include <string>
#include <vector>

#include "compiler_core/frontends/onnx/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "npuc/fe/onnx/model.pb.h"

namespace npuc::onnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> ValuesOf(const ModelBuilder& b, const std::vector<float>& x) {
  const std::vector<Tensor> outputs = Evaluate(b.Bytes(), {x});
  return outputs.empty() ? std::vector<float>() : outputs[0].ToFloats();
}

ModelBuilder Net(const std::vector<int64_t>& dims) {
  ModelBuilder b;
  b.Input("x", dims).Output("y");
  return b;
}

TEST(ImportSequence, PartsAreTakenByPosition) {
  const auto part = [](const std::vector<int64_t>& split, int64_t position) {
    ModelBuilder b = Net({1, 5});
    b.Int64s("at", {position}).Int64s("split", split);
    if (split.size() == 1) b.proto().mutable_graph()->mutable_initializer(1)->clear_dims();
    b.Node("SplitToSequence", {"x", "split"}, {"s"}).Int("axis", 1);
    b.Node("SequenceAt", {"s", "at"}, {"part"}).Node("Neg", {"part"}, {"y"});
    return ValuesOf(b, {1, 2, 3, 4, 5});
  };
  EXPECT_THAT(part({2, 3}, 0), ElementsAre(-1, -2));
  EXPECT_THAT(part({2, 3}, -1), ElementsAre(-3, -4, -5));
  EXPECT_THAT(part({2}, 1), ElementsAre(-3, -4));  // a scalar: parts of so many elements
  EXPECT_THAT(part({2}, 2), ElementsAre(-5));
}

TEST(ImportSequence, ElementsAreSplitAndStacked) {
  ModelBuilder b = Net({2, 3});
  b.Node("SplitToSequence", {"x"}, {"s"}).Int("axis", 1).Int("keepdims", 0);
  b.Node("SequenceErase", {"s"}, {"shorter"});  // the last one
  b.Node("ConcatFromSequence", {"shorter"}, {"y"}).Int("axis", 0).Int("new_axis", 1);
  EXPECT_THAT(ValuesOf(b, {1, 2, 3, 4, 5, 6}), ElementsAre(1, 4, 2, 5));
}

TEST(ImportSequence, TensorsAreInserted) {
  ModelBuilder b = Net({1, 2});
  b.Int64s("first", {0});
  b.Node("Neg", {"x"}, {"n"}).Node("SequenceEmpty", {}, {"e"});
  b.Node("SequenceInsert", {"e", "x"}, {"one"})
      .Node("SequenceInsert", {"one", "n", "first"}, {"s"});
  b.Node("SequenceConstruct", {"n", "x"}, {"same"}).Node("SequenceLength", {"same"}, {"length"});
  b.Node("ConcatFromSequence", {"s"}, {"c"}).Int("axis", 1);
  b.Node("Cast", {"length"}, {"number"}).Int("to", 1).Node("Mul", {"c", "number"}, {"y"});
  EXPECT_THAT(ValuesOf(b, {1, 2}), ElementsAre(-2, -4, 2, 4));
}

// Positions below 0 count from the end of the sequence as it was.
TEST(ImportSequence, TensorsAreInsertedBeforeTheLast) {
  ModelBuilder b = Net({1, 1});
  b.Int64s("last", {-1}).Node("Neg", {"x"}, {"n"}).Node("Add", {"x", "x"}, {"twice"});
  b.Node("SequenceConstruct", {"x", "n"}, {"two"});
  b.Node("SequenceInsert", {"two", "twice", "last"}, {"s"});
  b.Node("ConcatFromSequence", {"s"}, {"y"}).Int("axis", 1);
  EXPECT_THAT(ValuesOf(b, {3}), ElementsAre(3, 6, -3));
}

// Each turn of the loop appends one tensor.
TEST(ImportSequence, ALoopCarriesThem) {
  ModelBuilder body;
  body.Input("turn", {}, 7).Input("on", {}, 9).Input("s", {}).Output("on_then").Output("s_then");
  body.Node("Identity", {"on"}, {"on_then"}).Node("Cast", {"turn"}, {"number"}).Int("to", 1);
  body.Node("Add", {"x", "number"}, {"sum"}).Node("SequenceInsert", {"s", "sum"}, {"s_then"});
  ModelBuilder b = Net({1, 2});
  b.Int64s("three", {3}).Node("SequenceEmpty", {}, {"e"});
  b.Node("Loop", {"three", "", "e"}, {"s"}).Body("body", body);
  b.Node("ConcatFromSequence", {"s"}, {"y"}).Int("axis", 0);
  EXPECT_THAT(ValuesOf(b, {1, 2}), ElementsAre(1, 2, 2, 3, 3, 4));
}

TEST(ImportSequence, RefusesWhatDoesNotFit) {
  const auto problem = [](const ModelBuilder& b) { return RunImport(b.Bytes()).Text(); };
  ModelBuilder tensor_wanted = Net({1, 4});
  tensor_wanted.Node("SplitToSequence", {"x"}, {"s"}).Node("Relu", {"s"}, {"y"});
  EXPECT_THAT(problem(tensor_wanted), HasSubstr("operand 0, 's', is a sequence of tensors"));
  ModelBuilder sequence_wanted = Net({1, 4});
  sequence_wanted.Node("SequenceLength", {"x"}, {"y"});
  EXPECT_THAT(problem(sequence_wanted), HasSubstr("must be a sequence, and is a tensor"));
  ModelBuilder behind_its_end = Net({1, 4});
  behind_its_end.Int64s("four", {4}).Node("SplitToSequence", {"x"}, {"s"}).Int("axis", 1);
  behind_its_end.Node("SequenceAt", {"s", "four"}, {"y"});
  EXPECT_THAT(problem(behind_its_end), HasSubstr("position 4 is not one of the 4"));
  ModelBuilder as_output = Net({1, 4});
  as_output.Node("SplitToSequence", {"x"}, {"y"});
  EXPECT_THAT(problem(as_output), HasSubstr("output 'y' is a sequence of tensors"));
  ModelBuilder too_many = Net({5000, 1});
  too_many.Node("SplitToSequence", {"x"}, {"s"}).Node("SequenceLength", {"s"}, {"y"});
  EXPECT_THAT(problem(too_many), HasSubstr("parts of 1 of the 5000 elements"));
}

}  // namespace
}  // namespace npuc::onnx
