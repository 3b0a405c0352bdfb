#include "compiler_core/ir/graph/graph.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const TensorType kType{DType::kFloat32, {2}};

TEST(Graph, RecordsInputsUsesAndConstants) {
  Graph graph;
  const ValueId x = graph.AddInput("x", kType);
  const ValueId c = graph.AddConst(Tensor::FromFloats({2}, {1, 2}), {"c", "Const"});
  const ValueId y = graph.AddValue(Op::kAdd, {x, c}, {}, kType, {"y", "AddV2"});
  graph.AddOutput({"y", y});
  graph.AddOutput({"again", y, true});
  EXPECT_THAT(graph.inputs(), ElementsAre(x));
  EXPECT_THAT(graph.UseCounts(), ElementsAre(1, 1, 2));
  EXPECT_EQ(graph.ConstantOf(x), nullptr);
  ASSERT_NE(graph.ConstantOf(c), nullptr);
  EXPECT_EQ(graph.ConstantOf(c)->at(1), 2);
  EXPECT_EQ(graph.def(y).source.name, "y");
  EXPECT_TRUE(VerifyStructure(graph).ok()) << VerifyStructure(graph);
}

TEST(VerifyStructure, NamesTheNodeAndTheFault) {
  const auto fault = [](AttrMap attrs, std::vector<TensorType> types, Op op) {
    Graph graph;
    graph.AddNode(op, {}, std::move(attrs), std::move(types), {"n\n", ""});
    const absl::Status status = VerifyStructure(graph);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    return std::string(status.message());
  };
  EXPECT_THAT(fault({}, {kType}, Op::kConst),
              HasSubstr("node 0 'n\\x0a' (Const): Const must carry"));
  EXPECT_THAT(fault({{"value", Tensor::ScalarFloat(1)}}, {kType}, Op::kConst),
              HasSubstr("own type"));
  EXPECT_THAT(fault({}, {}, Op::kRelu), HasSubstr("needs an output"));
  EXPECT_THAT(fault({}, {TensorType{}}, Op::kRelu), HasSubstr("no element type"));
  EXPECT_THAT(fault({}, {{DType::kInt8, {-2}}}, Op::kRelu), HasSubstr("negative"));
  EXPECT_THAT(fault({{"a-b", true}}, {kType}, Op::kRelu), HasSubstr("attribute name"));
  EXPECT_THAT(fault({{"v", Tensor()}}, {kType}, Op::kRelu), HasSubstr("without a type"));
  EXPECT_THAT(fault({{"v", Tensor({DType::kBool, {1}}, {2})}}, {kType}, Op::kRelu),
              HasSubstr("bool not 0 or 1"));
}

TEST(Attributes, SayWhatIsMissingOrOfTheWrongKind) {
  Node node;
  node.attrs = {{"i", int64_t{3}},
                {"f", 1.5},
                {"s", std::string("t")},
                {"l", std::vector<int64_t>{1, 2}},
                {"b", true}};
  EXPECT_EQ(*IntAttr(node, "i"), 3);
  EXPECT_EQ(*FloatAttr(node, "f"), 1.5);
  EXPECT_EQ(*StringAttr(node, "s"), "t");
  EXPECT_THAT(*IntsAttr(node, "l"), ElementsAre(1, 2));
  EXPECT_TRUE(BoolAttrOr(node, "b", false));
  EXPECT_EQ(IntAttrOr(node, "none", 9), 9);
  EXPECT_EQ(IntAttr(node, "none").status().message(), "attribute 'none' is missing");
  EXPECT_EQ(IntAttr(node, "f").status().message(), "attribute 'f' must be an integer, is a float");
  EXPECT_EQ(IntsAttr(node, "b").status().message(),
            "attribute 'b' must be a list of integers, is a bool");
}

}  // namespace
}  // namespace npuc
