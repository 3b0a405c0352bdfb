#include "compiler_core/report/graph_picture.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kGraph[] = R"({"graph": {"nodes": [
  {"name": "a<b>", "op_type": "Convolution", "level": 0, "input": ["x"], "output": ["a"]},
  {"name": "say \"hi\"", "op_type": "Eltwise", "level": 1, "input": ["a", "x"], "output": ["b"]}],
 "tensors": [{"name": "x", "shape": [1, 4]}, {"name": "a", "shape": [1, 2]}]}})";

TEST(GraphPicture, EdgesAreTheTensorsThatNodesRead) {
  const std::vector<PictureNode> nodes = PictureOf(kGraph);
  ASSERT_EQ(nodes.size(), 3u);  // the input is a node, too
  EXPECT_EQ(nodes[2].name, "x");
  EXPECT_THAT(nodes[0].from, ElementsAre(2u));
  EXPECT_THAT(nodes[1].from, ElementsAre(0u, 2u));
  EXPECT_THAT(nodes[1].labels, ElementsAre("[1,2]", "[1,4]"));
}

TEST(GraphPicture, NamesCannotLeaveTheirPlace) {
  const std::vector<PictureNode> nodes = PictureOf(kGraph);
  const std::string svg = GraphSvg(nodes, "m&n");
  EXPECT_THAT(svg, HasSubstr("<title>m&amp;n</title>"));
  EXPECT_THAT(svg, HasSubstr("a&lt;b&gt;"));
  EXPECT_THAT(svg, Not(HasSubstr("<b>")));
  const std::string dot = GraphDot(nodes, "m");
  EXPECT_THAT(dot, HasSubstr("n1 [label=\"Eltwise\\nsay \\\"hi\\\"\"];"));
  EXPECT_THAT(dot, HasSubstr("n0 -> n1 [label=\"[1,2]\"];"));
}

TEST(GraphPicture, ALongNameLosesItsMiddle) {
  const std::string name(100, 'n');
  const std::string svg = GraphSvg({{name, "T", 0, {}, {}}}, "m");
  EXPECT_THAT(svg, HasSubstr("nnn...nnn"));
  EXPECT_THAT(svg, HasSubstr("<title>" + name + "</title>"));
}

}  // namespace
}  // namespace npuc
