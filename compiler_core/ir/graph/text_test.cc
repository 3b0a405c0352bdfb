#include "compiler_core/ir/graph/text.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using ::testing::HasSubstr;

constexpr absl::string_view kEverything =
    R"(graph "m\"\\\x00" {
  %0 = Placeholder() : f32[1,784] @"input_x"
  %1 = Const() {value = f32[2] "0000803f00000040"} : f32[2] @"w" ("Const")
  %2, %3 = Split(%0) {axis = 1, sizes = [392, 392]} : f32[1,392], f32[1,392] @"s" ("Split")
  %4 = MatMul(%2, %3) {a = true, b = -7, c = 1.5, d = 1e+300, e = -inf, f = nan, g = "t\x0a", h = [], i = [1.0, 2.5], j = i8[3] splat "ff", k = bool[2] "0001", l = f16[] "003c"} : i64[0,3] @"" ("Op")
  return %2 @"out", %3 @"state" fp16, %4 @"k"
}
)";

TEST(GraphText, PrintsWhatItParsed) {
  const absl::StatusOr<Graph> graph = ParseGraph(kEverything);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(PrintGraph(*graph), kEverything);
  EXPECT_EQ(graph->name(), std::string("m\"\\\0", 4));
  EXPECT_EQ(graph->inputs().size(), 1);
  const Node& odd = graph->node(NodeId(3));
  EXPECT_EQ(std::get<Tensor>(odd.attrs.at("j")).int_at(2), -1);
  EXPECT_EQ(std::get<double>(odd.attrs.at("d")), 1e300);
  EXPECT_EQ(std::get<std::string>(odd.attrs.at("g")), "t\n");
  EXPECT_TRUE(graph->outputs()[1].fp16);
}

TEST(GraphText, ValuesMayHaveAnyNameAndTextComments) {
  const absl::StatusOr<Graph> graph = ParseGraph(
      "# before\ngraph \"\" { %x = Placeholder() : f32[2]  # the input\n"
      "%y=Relu(%x):f32[2] return %y@\"y\"} # after");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(PrintGraph(*graph),
            "graph \"\" {\n  %0 = Placeholder() : f32[2]\n  %1 = Relu(%0) : f32[2]\n"
            "  return %1 @\"y\"\n}\n");
}

TEST(GraphText, LongConstantsCanBeElidedAndThenDoNotParse) {
  Graph graph;
  graph.AddConst(Tensor::FromFloats({3}, {1, 2, 3}), {"c", "Const"});
  PrintOptions options;
  options.max_constant_bytes = 8;
  const std::string text = PrintGraph(graph, options);
  EXPECT_THAT(text, HasSubstr("value = f32[3] elided"));
  EXPECT_THAT(ParseGraph(text).status().message(), HasSubstr("elided constant"));
  options.max_constant_bytes = 12;
  EXPECT_TRUE(ParseGraph(PrintGraph(graph, options)).ok());
}

TEST(GraphText, FloatsPrintShortestAndExact) {
  for (const double value : {0.1, -0.0, 1.0 / 3, 5e-324, 1e22, 123456789.0}) {
    Graph graph;
    graph.AddValue(Op::kAbs, {}, {{"v", value}}, {DType::kFloat32, {}}, {});
    const absl::StatusOr<Graph> again = ParseGraph(PrintGraph(graph));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(*FloatAttr(again->node(NodeId(0)), "v"), value);
  }
}

struct Malformed {
  absl::string_view text;
  absl::string_view message;
};

TEST(GraphText, MalformedTextNamesLineAndColumn) {
  const std::vector<Malformed> cases = {
      {"", "line 1, column 1: expected 'graph', found the end"},
      {"graph m", "line 1, column 7: expected '\"', found 'm'"},
      {"graph \"m", "line 1, column 9: expected '\"' that closes the string, found the end"},
      {"graph \"m\" {\n", "line 2, column 1: expected 'return', found the end"},
      {"graph \"m\" {\n  %0 = Relu(%1) : f32[2]\n",
       "line 2, column 14: value %1 is not defined before its use"},
      {"graph \"m\" {\n  %0 = Absent() : f32[2]\n",
       "line 2, column 8: no operator is named 'Absent'"},
      {"graph \"m\" {\n  %0, %0 = Abs() : f32[2]\n", "line 2, column 8: value %0 is defined twice"},
      {"graph \"m\" {\n  %0 = Abs(%0) : f32[2]\n",
       "line 2, column 13: value %0 is not defined before its use"},
      {"graph \"m\" {\n  %0 = Abs() : f99[2]\n",
       "line 2, column 16: expected an element type such as f32, found 'f'"},
      {"graph \"m\" {\n  %0 = Abs() : f32[-2]\n",
       "line 2, column 16: shape [-2] has a negative dimension"},
      {"graph \"m\" {\n  %0 = Abs() : f32[268435457]\n",
       "line 2, column 16: shape [268435457] exceeds the limit of 268435456 elements"},
      {"graph \"m\" {\n  %0 = Abs() : f32[1,1,1,1,1,1,1,1,1]\n",
       "line 2, column 16: rank 9 exceeds the limit of 8"},
      {"graph \"m\" {\n  %0 = Abs() : f32[2], f32[2]\n", "line 2, column 14: 2 types for 1 values"},
      {"graph \"m\" {\n  %0 = Abs() {a = 1, a = 2} : f32[2]\n",
       "line 2, column 22: attribute 'a' is given twice"},
      {"graph \"m\" {\n  %0 = Abs() {a = [1, 2.0]} : f32[2]\n",
       "line 2, column 19: a list of both integers and floats"},
      {"graph \"m\" {\n  %0 = Abs() {a = 99999999999999999999} : f32[2]\n",
       "line 2, column 19: expected a number in range, found '9'"},
      {"graph \"m\" {\n  %0 = Abs() {a = f32[2] \"00\"} : f32[2]\n",
       "line 2, column 19: tensor has 1 bytes; its type has 8"},
      {"graph \"m\" {\n  %0 = Abs() {a = i8[2] \"0g00\"} : f32[2]\n",
       "line 2, column 19: tensor bytes are not pairs of hex digits"},
      {"graph \"m\" {\n  %0 = Abs() {a = \"\\q\"} : f32[2]\n",
       "line 2, column 19: a string with an escape other than \\\", \\\\ and \\xNN"},
      {"graph \"m\" {\n return\n} x", "line 3, column 3: expected the end of the text, found 'x'"},
      {"graph \"m\" {\n  %0 = Const() : f32[2]\n return }",
       "node 0 '' (Const): Const must carry one tensor 'value' of its own type"},
      {"graph \"m\" {\n  %0 = Abs() {a = bool[1] \"02\"} : f32[2]\n return }",
       "node 0 '' (Abs): attribute 'a': bool not 0 or 1"},
  };
  for (const Malformed& malformed : cases) {
    const absl::Status status = ParseGraph(malformed.text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << malformed.text;
    EXPECT_EQ(status.message(), malformed.message) << malformed.text;
  }
}

TEST(GraphText, EveryTruncationIsRefusedCleanly) {
  for (size_t size = 0; size + 2 < kEverything.size(); ++size) {
    EXPECT_FALSE(ParseGraph(kEverything.substr(0, size)).ok()) << size;
  }
}

TEST(GraphText, LimitsBoundTextAndConstants) {
  ParseOptions options;
  options.max_text_bytes = 10;
  EXPECT_THAT(ParseGraph("graph \"m\" { return }", options).status().message(),
              HasSubstr("text of 20 bytes; at most 10"));
  options = {};
  options.max_constant_bytes = 1000;
  // Two short lines may not claim more memory together than allowed.
  const std::string text =
      absl::StrCat("graph \"m\" { %0 = Const() {value = f32[200] splat \"00000000\"} : f32[200]\n",
                   "%1 = Const() {value = f32[100] splat \"00000000\"} : f32[100]\n return }");
  EXPECT_THAT(ParseGraph(text, options).status().message(),
              HasSubstr("line 2, column 23: too many bytes of constants"));
}

}  // namespace
}  // namespace npuc
