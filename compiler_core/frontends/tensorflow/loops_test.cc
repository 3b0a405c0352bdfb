// While loops with a known number of turns are unrolled; the others are refused with a reason.
#include "compiler_core/frontends/tensorflow/loops.h"

#include <string>
#include <vector>

#include "compiler_core/frontends/tensorflow/import.h"
#include "compiler_core/frontends/tensorflow/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::tf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A loop variable NAME of frame F with the given first value; its body computes NAME/next from
// NAME/in, and NAME/exit leaves.
void Variable(GraphDefBuilder& b, const std::string& name, const std::string& frame,
              const std::string& first, const std::string& next) {
  b.Node(name + "/enter", "Enter", {first}).String("frame_name", frame);
  b.Node(name, "Merge", {name + "/enter", name + "/iterate"});
  b.Node(name + "/switch", "Switch", {name, frame + "/cond"});
  b.Node(name + "/in", "Identity", {name + "/switch:1"});
  b.Node(name + "/iterate", "NextIteration", {next});
  b.Node(name + "/exit", "Exit", {name + "/switch"});
}

// for (i = 0; i < turns; ++i)
void Counter(GraphDefBuilder& b, const std::string& frame, int turns) {
  const std::string i = frame + "/i";
  b.Int32s(frame + "/zero", {}, {0}).Int32s(frame + "/one", {}, {1});
  b.Int32s(frame + "/turns", {}, {turns});
  Variable(b, i, frame, frame + "/zero", i + "/plus");
  b.Node(i + "/plus", "Add", {i + "/in", frame + "/one"});
  b.Node(frame + "/limit", "Enter", {frame + "/turns"}).String("frame_name", frame);
  b.Bool("is_constant", true);
  b.Node(frame + "/less", "Less", {i, frame + "/limit"});
  b.Node(frame + "/cond", "LoopCond", {frame + "/less"});
}

GraphDefBuilder Doubling(int turns) {
  GraphDefBuilder b;
  b.Placeholder("x", {2});
  Counter(b, "loop", turns);
  Variable(b, "v", "loop", "x", "sum");
  b.Node("sum", "Add", {"v/in", "v/in"});
  b.Node("y", "Identity", {"v/exit"});
  return b;
}

TEST(LoopsTest, TurnsAreUnrolled) {
  const CompileOptions options = Options({{"x", {2}}}, {"y"});
  EXPECT_THAT(Evaluate(Doubling(5).Bytes(), options, {{1, 3}})[0].ToFloats(), ElementsAre(32, 96));
  EXPECT_THAT(Evaluate(Doubling(0).Bytes(), options, {{1, 3}})[0].ToFloats(), ElementsAre(1, 3));
  const ImportResult result = RunImport(Doubling(5).Bytes(), options);
  ASSERT_TRUE(result.graph.ok()) << result.Text();
  EXPECT_EQ(result.graph->node_count(), 6);  // the input and one sum a turn
}

// s = {0, 0}; three turns of s = s + x. KEEP_STATES makes s an input and an output; a variable that
// turns hand on unchanged is none, and nor is the counter.
TEST(LoopsTest, ALoopMayGoOnWhereTheCallBeforeEnded) {
  GraphDefBuilder b;
  b.Placeholder("x", {2});
  b.Floats("zeros", {2}, {0, 0}).Floats("two", {2}, {2, 2});
  Counter(b, "loop", 3);
  Variable(b, "same", "loop", "two", "same/in");
  Variable(b, "s", "loop", "zeros", "sum");
  b.Node("half", "Enter", {"x"}).String("frame_name", "loop").Bool("is_constant", true);
  b.Node("twice", "Mul", {"half", "same/in"});
  b.Node("sum", "Add", {"s/in", "twice"});
  b.Node("y", "Identity", {"s/exit"});
  CompileOptions options = Options({{"x", {2}}}, {"y"});
  EXPECT_THAT(Evaluate(b.Bytes(), options, {{1, 3}})[0].ToFloats(), ElementsAre(6, 18));
  options.keep_states = {"loop"};
  const ImportResult result = RunImport(b.Bytes(), options);
  ASSERT_TRUE(result.graph.ok()) << result.Text();
  ASSERT_EQ(result.graph->inputs().size(), 2);
  EXPECT_EQ(result.graph->def(result.graph->inputs()[1]).source.name, "loop_0");
  EXPECT_EQ(result.graph->outputs()[0].name, "loop_0_out");
  const std::vector<Tensor> answers = Evaluate(b.Bytes(), options, {{1, 3}, {10, 20}});
  EXPECT_THAT(answers[0].ToFloats(), ElementsAre(16, 38));
  EXPECT_THAT(answers[1].ToFloats(), ElementsAre(16, 38));
  options.keep_states = {"lop"};
  EXPECT_THAT(RunImport(b.Bytes(), options).Text(), HasSubstr("did you mean 'loop'?"));
}

TEST(LoopsTest, NestedLoopsAreUnrolled) {
  GraphDefBuilder b;
  b.Placeholder("x", {1});
  Counter(b, "outer", 3);
  Variable(b, "v", "outer", "x", "w/exit");
  // The inner loop adds the outer counter to the value twice.
  Counter(b, "inner", 2);
  Variable(b, "w", "inner", "v/in", "sum");
  b.Node("count", "Cast", {"outer/i/in"}).Type("DstT", kDtFloat);
  b.Node("fixed", "Enter", {"count"}).String("frame_name", "inner").Bool("is_constant", true);
  b.Node("sum", "Add", {"w/in", "fixed"}).Node("y", "Identity", {"v/exit"});
  EXPECT_THAT(Evaluate(b.Bytes(), Options({{"x", {1}}}, {"y"}), {{10}})[0].ToFloats(),
              ElementsAre(10 + 2 * (0 + 1 + 2)));
}

TEST(LoopsTest, TensorArraysCarryRows) {
  GraphDefBuilder b;
  b.Placeholder("x", {3, 2}).Int32s("size", {}, {3}).Int32s("rows", {3}, {0, 1, 2});
  b.Int32s("back", {3}, {2, 1, 0}).Floats("start", {2}, {0, 0});
  for (const char* name : {"in", "out"}) b.Node(name, "TensorArrayV3", {"size"});
  b.Node("fed", "TensorArrayScatterV3", {"in", "rows", "x", "in:1"});
  Counter(b, "loop", 3);
  for (const char* name : {"in", "fed", "out"}) {
    b.Node(std::string(name) + "/const", "Enter", {name}).String("frame_name", "loop");
    b.Bool("is_constant", true);
  }
  b.Node("row", "TensorArrayReadV3", {"in/const", "loop/i/in", "fed/const"});
  Variable(b, "total", "loop", "start", "sum");
  b.Node("sum", "Add", {"total/in", "row"});
  Variable(b, "flow", "loop", "out:1", "written");
  b.Node("written", "TensorArrayWriteV3", {"out/const", "loop/i/in", "sum", "flow/in"});
  b.Node("length", "TensorArraySizeV3", {"out", "flow/exit"});
  b.Node("y", "TensorArrayGatherV3", {"out", "back", "flow/exit"});
  b.Node("n", "Cast", {"length"}).Type("DstT", kDtFloat);
  const auto outputs =
      Evaluate(b.Bytes(), Options({{"x", {3, 2}}}, {"y", "n"}), {{1, 2, 3, 4, 5, 6}});
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[0].shape(), (Shape{3, 2}));
  EXPECT_THAT(outputs[0].ToFloats(), ElementsAre(9, 12, 4, 6, 1, 2));
  EXPECT_THAT(outputs[1].ToFloats(), ElementsAre(3));
}

TEST(LoopsTest, WrongUsesOfTensorArraysAreRefused) {
  GraphDefBuilder b;
  b.Placeholder("x", {2}).Int32s("size", {}, {2}).Int32s("two", {}, {2}).Int32s("one", {}, {1});
  b.Node("a", "TensorArrayV3", {"size"}).Node("b", "TensorArrayV3", {"size"});
  b.Node("w", "TensorArrayWriteV3", {"a", "one", "x", "a:1"});
  b.Node("far", "TensorArrayWriteV3", {"a", "two", "x", "a:1"});
  b.Node("twice", "TensorArrayWriteV3", {"a", "one", "x", "w"});
  b.Node("nested", "TensorArrayWriteV3", {"a", "one", "b", "a:1"});
  b.Node("unset", "TensorArrayReadV3", {"a", "one", "a:1"});
  b.Node("other", "TensorArrayReadV3", {"b", "one", "w"});
  b.Node("sum", "Add", {"a", "x"});
  b.Node("read_far", "TensorArrayReadV3", {"a", "one", "far"});
  b.Node("read_twice", "TensorArrayReadV3", {"a", "one", "twice"});
  b.Node("read_nested", "TensorArrayReadV3", {"a", "one", "nested"});
  const std::string text =
      RunImport(b.Bytes(), Options({{"x", {2}}}, {"read_far", "read_twice", "read_nested", "unset",
                                                  "other", "sum", "a"}))
          .Text();
  EXPECT_THAT(text, HasSubstr("element 2 of the TensorArray is written; allowed are 0 to 1"));
  EXPECT_THAT(text, HasSubstr("element 1 of the TensorArray is written twice"));
  EXPECT_THAT(text, HasSubstr("an element is itself a TensorArray"));
  EXPECT_THAT(text, HasSubstr("is read, but was never written"));
  EXPECT_THAT(text, HasSubstr("the flow of the same one"));
  EXPECT_THAT(text, HasSubstr("an operand is the TensorArray 'a'"));
  EXPECT_THAT(text, HasSubstr("the output is a TensorArray"));
}

TEST(LoopsTest, RunTimeConditionNamesItsInputs) {
  GraphDefBuilder b;
  b.Placeholder("x", {2}).Placeholder("limit", {}).Int32s("axis", {}, {0});
  Variable(b, "v", "loop", "x", "double");
  b.Node("double", "Add", {"v/in", "v/in"}).Node("total", "Sum", {"v", "axis"});
  b.Node("loop/less", "Less", {"total", "limit"}).Node("loop/cond", "LoopCond", {"loop/less"});
  const ImportResult result =
      RunImport(b.Bytes(), Options({{"x", {2}}, {"limit", {}}}, {"v/exit"}));
  EXPECT_EQ(result.diagnostics.list().size(), 1u) << result.Text();
  EXPECT_THAT(result.Text(), HasSubstr("NPUC1115 test.pb: node 'loop/cond' (LoopCond)"));
  EXPECT_THAT(result.Text(), HasSubstr("while loop 'loop' depends on model input 'limit', 'x'"));
}

TEST(LoopsTest, ConditionThatFailsForAnotherReasonSaysWhich) {
  GraphDefBuilder b;
  b.Placeholder("x", {2});
  Variable(b, "v", "loop", "x", "v/in");
  b.Node("loop/odd", "NoSuchOperator", {}).Node("loop/cond", "LoopCond", {"loop/odd"});
  const ImportResult result = RunImport(b.Bytes(), Options({{"x", {2}}}, {"v/exit"}));
  EXPECT_EQ(result.CountOf(DiagnosticKind::kUnsupportedOperator), 1) << result.Text();
  EXPECT_EQ(result.diagnostics.list().size(), 1u) << result.Text();
}

TEST(LoopsTest, LoopsEnd) {
  const CompileOptions options = Options({{"x", {2}}}, {"y"});
  EXPECT_THAT(
      RunImport(Doubling(kMaxLoopIterations + 1).Bytes(), options).Text(),
      HasSubstr("NPUC1103 test.pb: node 'loop/cond' (LoopCond): the while loop 'loop' still "
                "runs after 4096 turns"));
  GraphDefBuilder nested;
  nested.Placeholder("x", {1});
  Counter(nested, "outer", 4000);
  Variable(nested, "v", "outer", "x", "w/exit");
  Counter(nested, "inner", 4000);
  Variable(nested, "w", "inner", "v/in", "w/in");
  EXPECT_THAT(RunImport(nested.Bytes(), Options({{"x", {1}}}, {"v/exit"})).Text(),
              HasSubstr("the while loops of the model unroll to more than 262144 nodes"));
}

TEST(LoopsTest, FailingBodyIsReportedOnce) {
  GraphDefBuilder b;
  b.Placeholder("x", {2});
  Counter(b, "loop", 5);
  Variable(b, "v", "loop", "x", "odd");
  b.Node("odd", "NoSuchOperator", {"v/in"});
  const ImportResult result = RunImport(b.Bytes(), Options({{"x", {2}}}, {"v/exit"}));
  EXPECT_EQ(result.diagnostics.list().size(), 1u) << result.Text();
}

TEST(LoopsTest, OutputInsideOfALoopIsRefused) {
  EXPECT_THAT(RunImport(Doubling(2).Bytes(), Options({{"x", {2}}}, {"y", "sum"})).Text(),
              HasSubstr("the output lies inside of the while loop 'loop', so it has a value for "
                        "each turn; name what leaves the loop, such as 'v/exit'"));
}

TEST(LoopsTest, OddControlFlowIsRefused) {
  GraphDefBuilder no_enter;
  no_enter.Node("m", "Merge", {"n"}).Node("n", "NextIteration", {"m"});
  EXPECT_THAT(RunImport(no_enter.Bytes(), Options({}, {"n"})).Text(),
              HasSubstr("a loop variable has one of each"));
  GraphDefBuilder no_switch;
  no_switch.Placeholder("x", {1}).Node("e", "Enter", {"x"}).String("frame_name", "loop");
  no_switch.Node("m", "Merge", {"e", "n"}).Node("n", "NextIteration", {"m"});
  no_switch.Node("y", "Exit", {"m"});
  EXPECT_THAT(RunImport(no_switch.Bytes(), Options({{"x", {1}}}, {"y"})).Text(),
              HasSubstr("must come from the Switch of a loop variable"));
  // The loop's condition and the loop's body each need what leaves it.
  for (const bool in_condition : {true, false}) {
    GraphDefBuilder b;
    b.Placeholder("x", {}).Bools("yes", {}, {true});
    Variable(b, "v", "loop", "x", in_condition ? "v/in" : "v/exit");
    b.Node("again", "Identity", {"v/exit"});
    b.Node("loop/cond", "LoopCond", {in_condition ? "again" : "yes"});
    EXPECT_FALSE(RunImport(b.Bytes(), Options({{"x", {}}}, {"v/exit"})).graph.ok());
  }
  // Two loops that enter each other.
  GraphDefBuilder b;
  b.Placeholder("x", {});
  Counter(b, "one", 2);
  Counter(b, "two", 2);
  Variable(b, "v", "one", "w/in", "v/in");
  Variable(b, "w", "two", "v/in", "w/in");
  EXPECT_FALSE(RunImport(b.Bytes(), Options({{"x", {}}}, {"v/exit"})).graph.ok());
}

TEST(LoopsTest, GatherAndTileOfRunTimeValues) {
  GraphDefBuilder b;
  b.Placeholder("x", {4, 2}).Int32s("axis", {}, {0}).Int32s("i", {2, 2}, {1, 2, 0, 3});
  b.Node("g", "GatherV2", {"x", "i", "axis"});
  b.Int32s("m", {2}, {1, 2}).Node("t", "Tile", {"x", "m"});
  b.Int32s("out", {1}, {4}).Node("bad", "Gather", {"x", "out"});
  const auto outputs =
      Evaluate(b.Bytes(), Options({{"x", {4, 2}}}, {"g", "t"}), {{0, 1, 2, 3, 4, 5, 6, 7}});
  EXPECT_EQ(outputs[0].shape(), (Shape{2, 2, 2}));
  EXPECT_THAT(outputs[0].ToFloats(), ElementsAre(2, 3, 4, 5, 0, 1, 6, 7));
  EXPECT_EQ(outputs[1].shape(), (Shape{4, 4}));
  EXPECT_THAT(RunImport(b.Bytes(), Options({{"x", {4, 2}}}, {"bad"})).Text(),
              HasSubstr("outside of dimension 0"));
}

}  // namespace
}  // namespace npuc::tf
