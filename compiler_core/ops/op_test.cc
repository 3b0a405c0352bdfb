#include "compiler_core/ops/op.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "compiler_core/ir/graph/text.h"
#include "compiler_core/ops/graph_builder.h"
#include "compiler_core/ops/shape_util.h"
#include "compiler_core/ops/window.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const TensorType kVector{DType::kFloat32, {3}};

FactMap FactsOf(absl::string_view text) {
  const absl::StatusOr<Graph> graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE(VerifyGraph(*graph).ok()) << VerifyGraph(*graph);
  FactMap facts;
  CollectFacts(*graph, graph->nodes().back(), facts);
  return facts;
}

TEST(Registry, FindsEveryOperatorByName) {
  EXPECT_GE(AllOps().size(), 41);
  for (const OpDef* def : AllOps()) {
    EXPECT_EQ(&DefOf(def->op), def);
    EXPECT_EQ(OpNamed(NameOf(def->op)), def->op);
    EXPECT_NE(def->infer, nullptr);
    EXPECT_NE(def->facts, nullptr);
    EXPECT_NE(def->reference, nullptr);
  }
  EXPECT_EQ(OpNamed("NoSuchOp"), std::nullopt);
  EXPECT_EQ(OpNamed(""), std::nullopt);
  EXPECT_EQ(OpNamed("zzz"), std::nullopt);
}

TEST(GraphBuilder, InfersTypesAndFoldsConstants) {
  Graph graph;
  GraphBuilder builder(&graph);
  const ValueId x = graph.AddInput("x", kVector);
  const ValueId a = builder.Const(Tensor::FromFloats({3}, {1, 2, 3}), {"a", "Const"});
  const ValueId sum = *builder.AddOne(Op::kAdd, {a, a}, {}, {"sum", "AddV2"});
  ASSERT_NE(builder.constant(sum), nullptr);
  EXPECT_THAT(builder.constant(sum)->as<float>(), ElementsAre(2, 4, 6));
  EXPECT_EQ(graph.def(sum).source.name, "sum");
  const ValueId y = *builder.AddOne(Op::kMul, {x, sum}, {}, {"y", "Mul"});
  EXPECT_EQ(builder.constant(y), nullptr);
  EXPECT_EQ(TypeToString(builder.type(y)), "f32[3]");
  EXPECT_TRUE(VerifyGraph(graph).ok()) << VerifyGraph(graph);
}

TEST(GraphBuilder, IdentityAndReshapeOfALargeConstantShareItsBytes) {
  Graph graph;
  GraphBuilder builder(&graph);
  const TensorType type{DType::kFloat32, {GraphBuilder::kMaxFoldedElements + 1}};
  const ValueId c = builder.Const(Tensor::Zeros(type), {"w", "Const"});
  const ValueId same = *builder.AddOne(Op::kIdentity, {c}, {}, {"w/read", "Identity"});
  EXPECT_EQ(same, c);
  const ValueId flat = *builder.AddOne(Op::kReshape, {same},
                                       {{"shape", std::vector<int64_t>{1, type.shape[0]}}}, {});
  ASSERT_NE(builder.constant(flat), nullptr);
  EXPECT_EQ(builder.constant(flat)->bytes().data(), builder.constant(c)->bytes().data());
  // Computing that many elements is past the bound, so the node stays.
  const ValueId negated = *builder.AddOne(Op::kNeg, {c}, {}, {});
  EXPECT_EQ(builder.constant(negated), nullptr);
}

TEST(GraphBuilder, FoldingStopsWhenTheBudgetIsSpent) {
  Graph graph;
  GraphBuilder builder(&graph);
  const ValueId c = builder.Const(Tensor::Zeros({DType::kInt8, {1 << 20}}), {});
  int folded = 0;
  for (int i = 0; i < 100; ++i) {
    folded += builder.constant(*builder.AddOne(Op::kNeg, {c}, {}, {})) != nullptr ? 1 : 0;
  }
  EXPECT_EQ(folded, 64);  // FoldBudget::elements is 64 Mi
}

TEST(GraphBuilder, KeepsWhatHasNoValue) {
  Graph graph;
  GraphBuilder builder(&graph);
  const ValueId one = builder.Const(Tensor::FromInts({}, {1}), {});
  const ValueId zero = builder.Const(Tensor::FromInts({}, {0}), {});
  const ValueId quotient = *builder.AddOne(Op::kDiv, {one, zero}, {}, {"q", "Div"});
  EXPECT_EQ(builder.constant(quotient), nullptr);
  graph.AddOutput({"q", quotient});
  EXPECT_THAT(RunReference(graph, {}).status().message(), HasSubstr("'q' (Div)"));
}

TEST(GraphBuilder, RefusesWhatDoesNotFit) {
  Graph graph;
  GraphBuilder builder(&graph);
  const ValueId x = graph.AddInput("x", kVector);
  const ValueId y = graph.AddInput("y", {DType::kFloat32, {4}});
  EXPECT_EQ(builder.AddOne(Op::kAdd, {x, y}, {}, {}).status().message(),
            "shapes [3] and [4] do not broadcast");
  EXPECT_EQ(builder.AddOne(Op::kRelu, {x, y}, {}, {}).status().message(),
            "Relu has 2 operands; it takes 1");
  EXPECT_THAT(builder.AddOne(Op::kSplit, {x}, {{"axis", int64_t{0}}, {"sizes", Shape{1, 2}}}, {})
                  .status()
                  .message(),
              HasSubstr("gives 2 results"));
  const ValueId wide = graph.AddInput("w", {DType::kFloat32, {1 << 20, 1}});
  const ValueId high = graph.AddInput("h", {DType::kFloat32, {1, 1 << 20}});
  EXPECT_THAT(builder.AddOne(Op::kAdd, {wide, high}, {}, {}).status().message(),
              HasSubstr("exceeds the limit"));
}

TEST(VerifyGraph, NamesTheNodeWhoseTypesAreWrong) {
  Graph graph;
  const ValueId x = graph.AddInput("x", kVector);
  graph.AddValue(Op::kRelu, {x}, {}, {DType::kFloat32, {4}}, {"r", "Relu"});
  EXPECT_EQ(VerifyGraph(graph).message(),
            "node 1 'r' (Relu): recorded types f32[4], inferred f32[3]");
}

TEST(RunReference, ChecksInputsAndReturnsOutputsInOrder) {
  Graph graph;
  const ValueId x = graph.AddInput("x", kVector);
  const ValueId y = graph.AddInput("y", kVector);
  GraphBuilder builder(&graph);
  graph.AddOutput({"difference", *builder.AddOne(Op::kSub, {x, y}, {}, {})});
  graph.AddOutput({"x", x});
  const Tensor a = Tensor::FromFloats({3}, {5, 6, 7});
  const Tensor b = Tensor::FromFloats({3}, {1, 1, 1});
  const std::vector<Tensor> results = *RunReference(graph, {a, b});
  EXPECT_THAT(results[0].as<float>(), ElementsAre(4, 5, 6));
  EXPECT_EQ(results[1], a);
  EXPECT_THAT(RunReference(graph, {a}).status().message(), HasSubstr("has 2 inputs; given 1"));
  EXPECT_EQ(RunReference(graph, {a, Tensor::ScalarFloat(1)}).status().message(),
            "input 'y' is f32[3]; given f32[]");
}

TEST(Facts, ConvolutionNamesThePaddingAndTheWindow) {
  const FactMap facts = FactsOf(R"(graph "" {
    %x = Placeholder() : f32[1,10,8,3]
    %w = Placeholder() : f32[3,3,3,16]
    %y = Conv2D(%x, %w) {strides = [2, 1], pads = [0, 1, 1, 1]} : f32[1,5,8,16]
    return %y @"y" })");
  EXPECT_EQ(facts.at("kernel_h"), Fact(int64_t{3}));
  EXPECT_EQ(facts.at("stride_h"), Fact(int64_t{2}));
  EXPECT_EQ(facts.at("stride_w"), Fact(int64_t{1}));
  EXPECT_EQ(facts.at("dilation_w"), Fact(int64_t{1}));
  EXPECT_EQ(facts.at("in_channels"), Fact(int64_t{3}));
  EXPECT_EQ(facts.at("input_h"), Fact(int64_t{10}));
  EXPECT_EQ(facts.at("padding"), Fact(std::string("SAME")));
  EXPECT_EQ(facts.at("layout"), Fact(std::string("NHWC")));
  EXPECT_EQ(facts.at("rank"), Fact(int64_t{4}));
}

TEST(Facts, PoolingTransposeAndMatMul) {
  const FactMap pool = FactsOf(R"(graph "" {
    %x = Placeholder() : f32[1,4,4,3]
    %y = MaxPool(%x) {kernel = [2, 4], strides = [2, 4], pads = [0, 0, 0, 0]} : f32[1,2,1,3]
    return %y @"y" })");
  EXPECT_EQ(pool.at("pool_w"), Fact(int64_t{4}));
  EXPECT_EQ(pool.at("padding"), Fact(std::string("VALID")));
  const auto transpose = [](absl::string_view shape, absl::string_view perm,
                            absl::string_view result) {
    return FactsOf(absl::StrCat("graph \"\" { %x = Placeholder() : f32", shape,
                                " %y = Transpose(%x) {perm = ", perm, "} : f32", result,
                                " return %y @\"y\" }"))
        .at("is_2d_transpose");
  };
  EXPECT_EQ(transpose("[2,3]", "[1, 0]", "[3,2]"), Fact(true));
  EXPECT_EQ(transpose("[2,3,4]", "[2, 0, 1]", "[4,2,3]"), Fact(true));
  EXPECT_EQ(transpose("[2,3,4]", "[2, 1, 0]", "[4,3,2]"), Fact(false));
  EXPECT_EQ(transpose("[2,1,4]", "[2, 1, 0]", "[4,1,2]"), Fact(true));
  EXPECT_EQ(transpose("[1,3,4,5]", "[0, 3, 1, 2]", "[1,5,3,4]"), Fact(true));
  EXPECT_EQ(transpose("[2,3,4]", "[0, 2, 1]", "[2,4,3]"), Fact(false));
  const FactMap matmul = FactsOf(R"(graph "" {
    %x = Placeholder() : f32[1,10]
    %w = Placeholder() : f32[10,20]
    %y = MatMul(%x, %w) : f32[1,20]
    return %y @"y" })");
  EXPECT_EQ(matmul.at("weight_h"), Fact(int64_t{10}));
  EXPECT_EQ(matmul.at("weight_w"), Fact(int64_t{20}));
}

// Every order of dimensions, more rows than are copied at once, dimensions of 1, every size.
TEST(Transpose, MovesEachElementToItsPlace) {
  const Shape shapes[] = {{33, 5}, {1, 17, 1, 4}, {3, 2, 16, 1}, {2, 35, 3, 2}};
  for (const DType dtype : {DType::kUint8, DType::kInt16, DType::kInt32, DType::kInt64}) {
    for (const Shape& shape : shapes) {
      std::vector<int64_t> numbers(ElementCount(shape));
      for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int64_t>(i) % 251;
      const Tensor x = CastTensor(Tensor::FromInts(shape, numbers), dtype);
      const Shape strides = RowMajorStrides(shape);
      std::vector<int64_t> perm(shape.size());
      for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
      do {
        const Node node{Op::kTranspose, {}, {}, {{"perm", perm}}, {}};
        const auto results = DefOf(Op::kTranspose).reference(node, {x});
        ASSERT_TRUE(results.ok()) << results.status();
        const Tensor& y = (*results)[0];
        const Shape result_strides = RowMajorStrides(y.shape());
        for (int64_t i = 0; i < y.element_count(); ++i) {
          int64_t from = 0;
          for (size_t d = 0; d < perm.size(); ++d) {
            ASSERT_EQ(y.shape()[d], shape[perm[d]]);
            from += i / result_strides[d] % y.shape()[d] * strides[perm[d]];
          }
          ASSERT_EQ(y.int_at(i), x.int_at(from)) << ShapeToString(shape) << ShapeToString(perm);
        }
      } while (std::next_permutation(perm.begin(), perm.end()));
    }
  }
}

// Each window keeps its taps on the operand.
TEST(WithoutIdleTaps, KeepsWhatEachWindowReads) {
  int shrunk = 0;
  for (int64_t input = 1; input <= 5; ++input) {
    for (int64_t kernel = 1; kernel <= 9; ++kernel) {
      for (int64_t stride = 1; stride <= 6; ++stride) {
        for (int64_t before = 0; before < kernel; ++before) {
          for (int64_t after = 0; after < kernel; ++after) {
            if (input + before + after < kernel) continue;
            const int64_t output = (input + before + after - kernel) / stride + 1;
            const WindowGeometry w = {{input, 1},  {kernel, 1}, {stride, 1}, {1, 1},
                                      {before, 0}, {after, 0},  {output, 1}};
            const WindowGeometry less = WithoutIdleTaps(w);
            ASSERT_GE(less.pad_before[0], 0);
            ASSERT_LT(std::max(less.pad_before[0], less.pad_after[0]), less.kernel[0]);
            ASSERT_LE(less.kernel[0], kernel);
            ASSERT_EQ(
                (input + less.pad_before[0] + less.pad_after[0] - less.kernel[0]) / stride + 1,
                output);
            shrunk += less.kernel[0] < kernel ? 1 : 0;
            for (int64_t out = 0; out < output; ++out) {
              const WindowGeometry::Taps taps = w.TapsInside(0, out);
              const WindowGeometry::Taps left = less.TapsInside(0, out);
              ASSERT_EQ(less.Start(0, out) + left.first, w.Start(0, out) + taps.first);
              ASSERT_EQ(left.last - left.first, taps.last - taps.first);
            }
          }
        }
      }
    }
  }
  EXPECT_GT(shrunk, 100);
}

}  // namespace
}  // namespace npuc
