#include "compiler_core/frontends/tensorflow/import.h"

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/frontends/tensorflow/test_util.h"
#include "compiler_core/ir/graph/text.h"
#include "compiler_core/ops/op.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "npuc/fe/tf/graph.pb.h"

namespace npuc::tf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// x [1,2] -> MatMul by w [2,2] -> BiasAdd b -> Relu "y".
GraphDefBuilder Dense() {
  GraphDefBuilder b;
  b.Placeholder("x", {-1, 2}).Floats("w", {2, 2}, {1, 2, 3, 4});
  b.Node("w/read", "Identity", {"w"}).Floats("b", {2}, {0.5f, -100});
  b.Node("mm", "MatMul", {"x", "w/read"}).Bool("transpose_a", false).Bool("transpose_b", false);
  b.Node("add", "BiasAdd", {"mm", "b"}).String("data_format", "NHWC");
  b.Node("y", "Relu", {"add", "^w/read"});
  return b;
}

TEST(ImportTest, DenseLayerComputesAndKeepsNames) {
  const GraphDefBuilder b = Dense();
  const CompileOptions options = Options({{"x", {1, 2}}}, {"y"});
  const ImportResult result = RunImport(b.Bytes(), options);
  ASSERT_TRUE(result.graph.ok()) << result.Text();
  EXPECT_EQ(PrintGraph(*result.graph),
            "graph \"test.pb\" {\n"
            "  %0 = Placeholder() : f32[1,2] @\"x\"\n"
            "  %1 = Const() {value = f32[2,2] \"0000803f000000400000404000008040\"} : f32[2,2] "
            "@\"w\" (\"Const\")\n"
            "  %2 = MatMul(%0, %1) {transpose_a = false, transpose_b = false} : f32[1,2] "
            "@\"mm\" (\"MatMul\")\n"
            "  %3 = Const() {value = f32[2] \"0000003f0000c8c2\"} : f32[2] @\"b\" (\"Const\")\n"
            "  %4 = Add(%2, %3) : f32[1,2] @\"add\" (\"BiasAdd\")\n"
            "  %5 = Relu(%4) : f32[1,2] @\"y\" (\"Relu\")\n"
            "  return %5 @\"y\"\n"
            "}\n");
  EXPECT_THAT(Evaluate(b.Bytes(), options, {{1, 1}})[0].ToFloats(), ElementsAre(4.5f, 0));
}

TEST(ImportTest, AnyNodeCutsTheGraph) {
  const GraphDefBuilder b = Dense();
  for (const char* name : {"mm", "mm:0"}) {
    const CompileOptions options = Options({{name, {1, 2}}}, {"y:0"});
    const ImportResult result = RunImport(b.Bytes(), options);
    ASSERT_TRUE(result.graph.ok()) << result.Text();
    EXPECT_EQ(result.graph->outputs()[0].name, "y:0");
    EXPECT_THAT(Evaluate(b.Bytes(), options, {{1, 200}})[0].ToFloats(), ElementsAre(1.5f, 100));
  }
  // A constant, and an Identity, as further inputs.
  EXPECT_THAT(Evaluate(b.Bytes(), Options({{"x", {1, 2}}, {"b", {2}}}, {"y"}), {{1, 1}, {7, 8}})[0]
                  .ToFloats(),
              ElementsAre(11, 14));
  EXPECT_THAT(Evaluate(b.Bytes(), Options({{"w/read", {2, 2}}, {"x", {1, 2}}}, {"add"}),
                       {{1, 0, 0, 1}, {5, 6}})[0]
                  .ToFloats(),
              ElementsAre(5.5f, -94));
}

TEST(ImportTest, InputCanBeOneOutputOfANode) {
  GraphDefBuilder b;
  b.Placeholder("x", {4}).Int32s("axis", {}, {0});
  b.Node("s", "Split", {"axis", "x"}).Int("num_split", 2).Node("y", "Sub", {"s", "s:1"});
  EXPECT_THAT(
      Evaluate(b.Bytes(), Options({{"x", {4}}, {"s:1", {2}}}, {"y"}), {{1, 2, 3, 4}, {10, 20}})[0]
          .ToFloats(),
      ElementsAre(-9, -18));
}

TEST(ImportTest, HalfInputsStayHalfAndFp16OutputsAreMarked) {
  GraphDefBuilder b;
  b.Placeholder("x", {2}, kDtHalf).Node("y", "Relu", {"x"});
  CompileOptions options = Options({{"x", {2}}}, {"y"});
  options.fp16_outputs = {"y:0"};
  const ImportResult result = RunImport(b.Bytes(), options);
  ASSERT_TRUE(result.graph.ok()) << result.Text();
  EXPECT_EQ(result.graph->type(result.graph->inputs()[0]).dtype, DType::kFloat16);
  EXPECT_TRUE(result.graph->outputs()[0].fp16);
}

TEST(ImportTest, NamesEveryProblemAtOnce) {
  GraphDefBuilder b;
  b.Placeholder("x", {1, 2}).Placeholder("hidden", {-1, 3});
  b.Node("a", "Softmaxx", {"x"}).Node("b", "Relu", {"hidden"}).Node("c", "Relu", {"gone"});
  b.Node("d", "Relu", {"a"});
  b.Node("e", "MatMul", {"x", "x"});
  const ImportResult result =
      RunImport(b.Bytes(), Options({{"x", {1, 2}}}, {"d", "b", "c", "e", "yy"}));
  const std::string text = result.Text();
  EXPECT_EQ(result.diagnostics.list().size(), 5u) << text;
  EXPECT_THAT(text, HasSubstr("test.pb: node 'a' (Softmaxx): the operator is not supported; "
                              "output 'd' needs it; the nearest supported one is Softmax"));
  EXPECT_THAT(text, HasSubstr("node 'hidden' (Placeholder): the outputs need this input, and "
                              "INPUT_OPS does not declare it; add 'hidden: [1, 3]' to INPUT_OPS"));
  EXPECT_THAT(text, HasSubstr("input 0 of the node names 'gone', which is no node of the model"));
  EXPECT_THAT(text, HasSubstr("[1,2]"));  // of MatMul
  EXPECT_THAT(text, HasSubstr("OUTPUT_OPS names 'yy', which is no node of the model"));
}

TEST(ImportTest, EndpointsAreChecked) {
  const std::string bytes = Dense().Bytes();
  const auto text = [&](std::vector<InputDecl> inputs, std::vector<std::string> outputs) {
    return RunImport(bytes, Options(std::move(inputs), std::move(outputs))).Text();
  };
  EXPECT_THAT(text({{"X_", {1, 2}}}, {"y"}), HasSubstr("INPUT_OPS names 'X_'"));
  EXPECT_THAT(text({{"ad", {1, 2}}}, {"y"}), HasSubstr("did you mean 'add'?"));
  EXPECT_THAT(text({{"x", {1, 3}}}, {"y"}),
              HasSubstr("INPUT_OPS declares [1,3], but the model's Placeholder is [?,2]"));
  EXPECT_THAT(text({{"x", {2}}}, {"y"}), HasSubstr("NPUC1118"));
  EXPECT_THAT(text({{"x", {1ll << 40, 2}}}, {"y"}), HasSubstr("NPUC1118"));
  EXPECT_THAT(text({{"x", {1, 2}}, {"x:0", {1, 2}}}, {"y"}), HasSubstr("NPUC1123"));
  EXPECT_THAT(text({{"x:1", {1, 2}}}, {"y"}), HasSubstr("NPUC1116"));
  EXPECT_THAT(text({{"x", {1, 2}}}, {"y", "y:0"}), HasSubstr("NPUC1123"));
  EXPECT_THAT(text({{"x", {1, 2}}}, {"y:1"}), HasSubstr("output 1 of node 'y' (Relu)"));
  EXPECT_THAT(text({{"x", {1, 2}}}, {}), HasSubstr("OUTPUT_OPS names no output"));
  EXPECT_THAT(text({{"x", {1, 2}}}, {"^y"}), HasSubstr("NPUC1117"));
  CompileOptions options = Options({{"x", {1, 2}}}, {"y"});
  options.fp16_outputs = {"z"};
  EXPECT_THAT(RunImport(bytes, options).Text(), HasSubstr("FP16_OUT_OPS names 'z'"));
}

TEST(ImportTest, UnusedInputIsAWarningAndStays) {
  const ImportResult result =
      RunImport(Dense().Bytes(), Options({{"x", {1, 2}}, {"mm", {1, 2}}}, {"y"}));
  ASSERT_TRUE(result.graph.ok());
  EXPECT_EQ(result.CountOf(DiagnosticKind::kUnusedInput), 1) << result.Text();
  EXPECT_EQ(result.graph->inputs().size(), 2u);
}

TEST(ImportTest, ConstInputsDecideWhatTheModelSwitchesBy) {
  GraphDefBuilder b;
  b.Placeholder("x", {2}).Placeholder("is_train", {}, kDtBool);
  b.Node("s", "Switch", {"x", "is_train"}).Node("off", "Neg", {"s"}).Node("on", "Mystery", {"s:1"});
  b.Node("y", "Merge", {"off", "on"});
  CompileOptions options = Options({{"x", {2}}}, {"y"});
  options.const_inputs = {{"is_train", {0}, false, true}};
  const std::vector<Tensor> y = Evaluate(b.Bytes(), options, {{1, -2}});
  ASSERT_EQ(y.size(), 1u);
  EXPECT_THAT(y[0].ToFloats(), ElementsAre(-1, 2));
  options.const_inputs = {{"is_train", {1}, false, true}};
  EXPECT_THAT(RunImport(b.Bytes(), options).Text(), HasSubstr("Mystery"));
  options.const_inputs = {{"is_train", {2}, false, true}};
  EXPECT_THAT(RunImport(b.Bytes(), options).Text(), HasSubstr("the input is of type bool"));
  options.const_inputs = {{"x", {2}, false, true}, {"nowhere", {2}, false, true}};
  const ImportResult result = RunImport(b.Bytes(), options);
  EXPECT_EQ(result.CountOf(DiagnosticKind::kDuplicateEndpoint), 1);
  EXPECT_EQ(result.CountOf(DiagnosticKind::kInputNotInModel), 1);
}

TEST(ImportTest, InputsAndOutputsAreNumbers) {
  GraphDefBuilder texts;
  texts.Placeholder("x", {2}, kDtString).Node("y", "Identity", {"x"});
  EXPECT_THAT(RunImport(texts.Bytes(), Options({{"x", {2}}}, {"y"})).Text(),
              HasSubstr("NPUC1120 test.pb: node 'x' (Placeholder): the input has type DT_STRING"));
  // Characters that rows are looked up by, and the position of the largest number.
  GraphDefBuilder b;
  b.Placeholder("x", {2}, kDtInt32).Floats("rows", {3, 2}, {1, 2, 3, 4, 5, 6});
  b.Int32s("axis", {}, {0}).Int32s("last", {}, {1});
  b.Node("y", "GatherV2", {"rows", "x", "axis"}).Node("most", "ArgMax", {"y", "last"});
  const ImportResult result = RunImport(b.Bytes(), Options({{"x", {2}}}, {"y", "most"}));
  ASSERT_TRUE(result.graph.ok()) << result.Text();
  EXPECT_EQ(result.graph->type(result.graph->inputs()[0]).dtype, DType::kInt32);
  EXPECT_EQ(result.graph->outputs().size(), 2u);
}

TEST(ImportTest, OldProducersWroteUnknownShapesAsScalars) {
  GraphDefBuilder b = Dense();
  b.proto().mutable_versions()->set_producer(22);
  b.proto().mutable_node(0)->clear_attr();
  const auto bytes = b.Bytes();
  EXPECT_TRUE(RunImport(bytes, Options({{"x", {1, 2}}}, {"y"})).graph.ok());
}

TEST(ImportTest, CyclesAreNamed) {
  GraphDefBuilder b;
  b.Node("a", "Relu", {"c"}).Node("b", "Relu", {"a"}).Node("c", "Relu", {"b"});
  const ImportResult result = RunImport(b.Bytes(), Options({}, {"c"}));
  EXPECT_EQ(result.CountOf(DiagnosticKind::kGraphCycle), 1) << result.Text();
  EXPECT_THAT(result.Text(), HasSubstr("feeds itself through 3 nodes: c <- b <- a"));
  GraphDefBuilder self;
  self.Node("a", "Add", {"a", "a"});
  EXPECT_FALSE(RunImport(self.Bytes(), Options({}, {"a"})).graph.ok());
}

TEST(ImportTest, SwitchWithKnownPredicateTakesOneSide) {
  GraphDefBuilder b;
  b.Placeholder("x", {2}).Bools("p", {}, {true}).Node("s", "Switch", {"x", "p"});
  b.Node("no", "Neg", {"s"}).Node("yes", "Square", {"s:1"}).Node("m", "Merge", {"no", "yes"});
  b.Node("y", "Relu", {"m"});
  EXPECT_THAT(Evaluate(b.Bytes(), Options({{"x", {2}}}, {"y"}), {{2, 3}})[0].ToFloats(),
              ElementsAre(4, 9));
  EXPECT_THAT(RunImport(b.Bytes(), Options({{"x", {2}}}, {"no"})).Text(),
              HasSubstr("branch that is never taken"));
}

TEST(ImportTest, NanInAUsedConstantIsRefused) {
  GraphDefBuilder b;
  b.Placeholder("x", {2}).Floats("c", {2}, {1, std::numeric_limits<float>::quiet_NaN()});
  b.Node("y", "Add", {"x", "c"});
  EXPECT_THAT(RunImport(b.Bytes(), Options({{"x", {2}}}, {"y"})).Text(),
              HasSubstr("NPUC1109 test.pb: node 'c' (Const): the constant holds NaN at element 1"));
}

TEST(ImportTest, StringsAreToleratedWhereUnused) {
  GraphDefBuilder b = Dense();
  b.Node("message", "Const").Type("dtype", kDtString);
  auto& entry = *b.proto().mutable_node(b.proto().node_size() - 1)->add_attr();
  entry.set_key("value");
  entry.mutable_value()->mutable_tensor()->set_dtype(fe::tf::DT_STRING);
  entry.mutable_value()->mutable_tensor()->add_string_val("hello");
  EXPECT_TRUE(RunImport(b.Bytes(), Options({{"x", {1, 2}}}, {"y"})).graph.ok());
  b.Node("z", "Identity", {"message"});
  EXPECT_THAT(RunImport(b.Bytes(), Options({}, {"z"})).Text(), HasSubstr("DT_STRING"));
}

TEST(ImportTest, HugeSplatIsRefusedWithoutMemory) {
  GraphDefBuilder b;
  b.Floats("c", {1 << 20, 1 << 20}, {1}).Node("y", "Identity", {"c"});
  EXPECT_THAT(RunImport(b.Bytes(), Options({}, {"y"})).Text(), HasSubstr("NPUC1108"));
  // Many constants that are each allowed.
  GraphDefBuilder many;
  std::vector<std::string> names;
  for (int i = 0; i < 40; ++i) {
    names.push_back(absl::StrCat("c", i));
    many.Floats(names.back(), {1 << 21}, {1});
  }
  many.Node("y", "AddN", names);
  EXPECT_THAT(RunImport(many.Bytes(), Options({}, {"y"})).Text(), HasSubstr("NPUC1103"));
}

TEST(ImportTest, FunctionCallsAreNoticed) {
  GraphDefBuilder b;
  b.Placeholder("x", {2}).Node("y", "my_function", {"x"});
  b.proto().mutable_library()->add_function()->mutable_signature()->set_name("my_function");
  EXPECT_THAT(RunImport(b.Bytes(), Options({{"x", {2}}}, {"y"})).Text(),
              HasSubstr("calls of functions in the graph's library are not supported"));
}

TEST(ImportTest, HostileNamesArePrintedSafely) {
  GraphDefBuilder b;
  b.Node("a\x01\xff\n", "Op\x02", {"b\x03"});
  const std::string text = RunImport(b.Bytes(), Options({}, {"a\x01\xff\n"})).Text();
  EXPECT_THAT(text, HasSubstr("a\\x01\\xff\\x0a"));
  EXPECT_EQ(text.find('\x01'), std::string::npos);
}

TEST(OutlineTest, ListsInputsOutputsAndOps) {
  Diagnostics diagnostics;
  const auto outline = OutlineTensorFlow(Dense().Bytes(), "m.pb", diagnostics);
  ASSERT_TRUE(outline.ok());
  ASSERT_EQ(outline->inputs.size(), 1u);
  EXPECT_EQ(outline->inputs[0].key, "x");
  EXPECT_EQ(outline->inputs[0].type, "float32");
  EXPECT_EQ(OutlineShape(outline->inputs[0].dims), "[?,2]");
  ASSERT_EQ(outline->outputs.size(), 1u);
  EXPECT_EQ(outline->outputs[0].key, "y");
  EXPECT_EQ(outline->operators.count("Const"), 0u);
  EXPECT_GT(outline->weights, 0);
  EXPECT_FALSE(OutlineTensorFlow("junk", "m.pb", diagnostics).ok());
}

TEST(OutlineTest, WhatTrainsTheNetIsNoOutput) {
  GraphDefBuilder b;
  b.Placeholder("x", {2}).Node("y", "Relu", {"x"});
  b.Node("gradients/y_grad/ReluGrad", "ReluGrad", {"y", "y"});
  Diagnostics diagnostics;
  const auto outline = OutlineTensorFlow(b.Bytes(), "m.pb", diagnostics);
  ASSERT_TRUE(outline.ok());
  EXPECT_EQ(outline->outputs.size(), 1u);  // nothing else ends it
  b.Node("z", "Identity", {"y"});
  const auto with_end = OutlineTensorFlow(b.Bytes(), "m.pb", diagnostics);
  ASSERT_TRUE(with_end.ok());
  ASSERT_EQ(with_end->outputs.size(), 1u);
  EXPECT_EQ(with_end->outputs[0].key, "z");
  ASSERT_EQ(with_end->notes.size(), 1u);
  EXPECT_THAT(with_end->notes[0], HasSubstr("1 nodes below 'gradients/'"));
}

TEST(RulesTest, ListIsSortedAndUnique) {
  const std::vector<std::string> ops = ImportedTensorFlowOps();
  EXPECT_GT(ops.size(), 100u);
  for (size_t i = 1; i < ops.size(); ++i) EXPECT_LT(ops[i - 1], ops[i]);
}

}  // namespace
}  // namespace npuc::tf
