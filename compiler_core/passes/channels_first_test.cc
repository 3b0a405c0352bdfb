// Nets as a framework that counts channels first has them: every operator over images stands
// between a transpose to channels-last and one back, as a front end writes them.
#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/ir/graph/text.h"
#include "compiler_core/ops/graph_builder.h"
#include "compiler_core/passes/passes.h"
#include "compiler_core/passes/remaining_transposes.h"
#include "compiler_core/passes/rewriter.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

class NetBuilder {
 public:
  ValueId Input(Shape shape) {
    return graph_.AddInput("input", {DType::kFloat32, std::move(shape)});
  }
  ValueId Add(Op op, std::vector<ValueId> inputs, AttrMap attrs = {}) {
    const absl::StatusOr<ValueId> value = builder_.AddOne(
        op, std::move(inputs), std::move(attrs),
        {absl::StrCat(NameOf(op), "_", graph_.node_count()), std::string(NameOf(op))});
    EXPECT_TRUE(value.ok()) << op << ": " << value.status();
    return value.ok() ? *value : ValueId(0);
  }
  ValueId Weight(Shape shape) {
    std::vector<float> values(static_cast<size_t>(ElementCount(shape)));
    for (float& value : values) value = std::uniform_real_distribution<float>(-0.5f, 0.5f)(random_);
    return graph_.AddConst(Tensor::FromFloats(std::move(shape), values),
                           {absl::StrCat("w", graph_.node_count()), "Const"});
  }
  ValueId Transpose(ValueId x, std::vector<int64_t> perm) {
    return Add(Op::kTranspose, {x}, {{"perm", std::move(perm)}});
  }
  ValueId Reshape(ValueId x, Shape shape) {
    return Add(Op::kReshape, {x}, {{"shape", std::move(shape)}});
  }
  const Shape& shape(ValueId x) { return graph_.type(x).shape; }

  // x [n,c,h,w] -> [n,out,h,w], kernel of 2 * half + 1, with the bias [out,1,1].
  ValueId Conv(ValueId x, int64_t out, int64_t half_h, int64_t half_w) {
    const ValueId weight = Weight({2 * half_h + 1, 2 * half_w + 1, shape(x)[1], out});
    const ValueId nhwc = Transpose(x, {0, 2, 3, 1});
    const ValueId y = Add(Op::kConv2D, {nhwc, weight},
                          {{"strides", std::vector<int64_t>{1, 1}},
                           {"pads", std::vector<int64_t>{half_h, half_h, half_w, half_w}}});
    return Add(Op::kAdd, {Transpose(y, {0, 3, 1, 2}), Weight({out, 1, 1})});
  }
  ValueId Pool(ValueId x) {
    const ValueId y = Add(Op::kMaxPool, {Transpose(x, {0, 2, 3, 1})},
                          {{"kernel", std::vector<int64_t>{2, 2}},
                           {"strides", std::vector<int64_t>{2, 2}},
                           {"pads", std::vector<int64_t>{0, 0, 0, 0}}});
    return Transpose(y, {0, 3, 1, 2});
  }
  ValueId Relu(ValueId x) { return Add(Op::kRelu, {x}); }
  // Torch's linear: a weight [out,in] transposed.
  ValueId Linear(ValueId x, int64_t out) {
    const ValueId y =
        Add(Op::kMatMul, {x, Weight({out, shape(x).back()})}, {{"transpose_b", true}});
    return Add(Op::kAdd, {y, Weight({out})});
  }
  ValueId Mean(ValueId x, std::vector<int64_t> axes) {
    return Add(Op::kReduceMean, {x}, {{"axes", std::move(axes)}, {"keep_dims", false}});
  }
  Graph Finish(ValueId output) {
    graph_.AddOutput({"output", output});
    return std::move(graph_);
  }

 private:
  std::mt19937 random_{1};
  Graph graph_;
  GraphBuilder builder_{&graph_};
};

int CountTransposes(const Graph& graph) {
  return static_cast<int>(RemainingTransposes(graph).size());
}

// After all passes `left` transposes are left, and the net computes the same.
void ExpectTransposes(const Graph& net, int before, int left) {
  EXPECT_EQ(CountTransposes(net), before);
  const absl::StatusOr<Graph> result = RunPasses(net);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(CountTransposes(*result), left) << PrintGraph(*result, {.max_constant_bytes = 16});
  EXPECT_TRUE(SameGraph(*result, *RunPasses(*result)));
  std::mt19937 random(2);
  std::vector<float> values(static_cast<size_t>(net.type(net.inputs()[0]).element_count()));
  for (float& value : values) value = std::uniform_real_distribution<float>(-1, 1)(random);
  const Tensor input = Tensor::FromFloats(net.type(net.inputs()[0]).shape, values);
  const Tensor want = (*RunReference(net, {input}))[0];
  const Tensor got = (*RunReference(*result, {input}))[0];
  ASSERT_EQ(got.type(), want.type());
  for (int64_t i = 0; i < want.element_count(); ++i) {
    ASSERT_NEAR(got.at(i), want.at(i), 1e-4 * std::max(1.0, std::fabs(want.at(i))));
  }
}

TEST(ChannelsFirst, AResidualNetTransposesItsInputAlone) {
  NetBuilder net;
  ValueId x = net.Relu(net.Conv(net.Input({1, 3, 8, 8}), 4, 1, 1));
  for (int block = 0; block < 3; ++block) {
    const ValueId y = net.Conv(net.Relu(net.Conv(x, 4, 1, 1)), 4, 1, 1);
    x = net.Relu(net.Add(Op::kAdd, {x, y}));
  }
  ExpectTransposes(net.Finish(net.Linear(net.Mean(net.Pool(x), {2, 3}), 5)), 16, 1);
}

TEST(ChannelsFirst, AnHourglassTransposesInputAndOutput) {
  NetBuilder net;
  const ValueId skip = net.Relu(net.Conv(net.Input({1, 2, 8, 8}), 4, 1, 1));
  ValueId x = net.Relu(net.Conv(net.Pool(skip), 6, 1, 1));
  x = net.Add(Op::kPad, {x},
              {{"paddings", std::vector<int64_t>{0, 0, 0, 0, 2, 2, 2, 2}}, {"value", 0.0}});
  x = net.Add(Op::kConcat, {x, skip}, {{"axis", int64_t{1}}});
  x = net.Add(Op::kSigmoid, {net.Conv(x, 3, 1, 1)});
  ExpectTransposes(net.Finish(x), 8, 2);
}

TEST(ChannelsFirst, SqueezeAndExciteFollows) {
  NetBuilder net;
  const ValueId x = net.Relu(net.Conv(net.Input({1, 3, 6, 6}), 8, 1, 1));
  const ValueId gate =
      net.Add(Op::kSigmoid, {net.Linear(net.Relu(net.Linear(net.Mean(x, {2, 3}), 2)), 8)});
  const ValueId scaled = net.Add(Op::kMul, {x, net.Reshape(gate, {1, 8, 1, 1})});
  ExpectTransposes(net.Finish(net.Linear(net.Mean(net.Conv(scaled, 4, 0, 0), {2, 3}), 3)), 4, 1);
}

TEST(ChannelsFirst, AFlattenedImageIsReadThroughItsWeights) {
  NetBuilder net;
  ValueId x = net.Pool(net.Relu(net.Conv(net.Input({1, 1, 8, 8}), 4, 1, 1)));
  x = net.Relu(net.Linear(net.Reshape(x, {1, 64}), 10));
  ExpectTransposes(net.Finish(net.Linear(x, 3)), 4, 0);  // of one channel nothing is moved
}

TEST(ChannelsFirst, AOneDimensionalNet) {
  NetBuilder net;
  const ValueId input = net.Input({1, 10, 20});
  ValueId x = net.Reshape(input, {1, 10, 1, 20});
  for (int layer = 0; layer < 3; ++layer) {
    // As a front end writes conv1d: the value has rank 3 between the layers.
    const ValueId y = net.Reshape(net.Conv(x, 10, 0, 1), {1, 10, 20});
    const ValueId sum = net.Add(Op::kAdd, {net.Relu(y), net.Reshape(x, {1, 10, 20})});
    x = net.Reshape(sum, {1, 10, 1, 20});
  }
  const ValueId mean = net.Mean(net.Reshape(x, {1, 10, 20}), {2});
  ExpectTransposes(net.Finish(net.Linear(mean, 4)), 6, 1);
}

TEST(ChannelsFirst, ImagesBecomeSequences) {
  NetBuilder net;
  // A CRNN's neck: [1,c,h,t] to t rows of c * h features, then dense layers for each row.
  const ValueId x = net.Relu(net.Conv(net.Input({1, 1, 4, 12}), 6, 1, 1));
  const ValueId rows = net.Reshape(net.Transpose(x, {0, 3, 1, 2}), {12, 24});
  const ValueId y = net.Relu(net.Linear(rows, 8));
  // The image lies as [h,t,c]: rows of t must come first, so one transpose stays.
  ExpectTransposes(net.Finish(net.Linear(y, 3)), 3, 1);
}

}  // namespace
}  // namespace npuc
