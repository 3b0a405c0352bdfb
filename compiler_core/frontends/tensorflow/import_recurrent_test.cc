#include <cmath>
#include <vector>

#include "compiler_core/frontends/tensorflow/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::tf {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// One unit, by the formulas of TensorFlow's rnn_ops.cc: i, cs, f, o, ci, co, h. Gates of w and b in
// order i, ci, f, o.
struct Step {
  double i, cs, f, o, ci, co, h;
};
Step LstmStep(const std::vector<float>& w, const std::vector<float>& b, double x, double cs,
              double h, double forget_bias, double clip, const std::vector<float>& peep) {
  const auto sum = [&](size_t gate) { return x * w[gate] + h * w[4 + gate] + b[gate]; };
  Step s;
  s.i = Sigmoid(sum(0) + cs * peep[0]);
  s.ci = std::tanh(sum(1));
  s.f = Sigmoid(sum(2) + forget_bias + cs * peep[1]);
  s.cs = cs * s.f + s.ci * s.i;
  if (clip > 0) s.cs = std::fmax(-clip, std::fmin(clip, s.cs));
  s.o = Sigmoid(sum(3) + s.cs * peep[2]);
  s.co = std::tanh(s.cs);
  s.h = s.co * s.o;
  return s;
}

void ExpectStep(const std::vector<Tensor>& found, size_t element, const Step& s) {
  const std::vector<double> want = {s.i, s.cs, s.f, s.o, s.ci, s.co, s.h};
  ASSERT_EQ(found.size(), 7u);
  for (size_t k = 0; k < 7; ++k) {
    EXPECT_NEAR(found[k].ToFloats()[element], want[k], 1e-5) << k;
  }
}

std::vector<std::string> Outputs(int count) {
  std::vector<std::string> names;
  for (int k = 0; k < count; ++k) names.push_back(k == 0 ? "y" : "y:" + std::to_string(k));
  return names;
}

// The results of a net with a cell. Cores have no cells in their lists of TensorFlow operators, so
// that nodes must count as what the cell becomes.
std::vector<Tensor> EvaluateCell(const GraphDefBuilder& b, const CompileOptions& options,
                                 const std::vector<std::vector<float>>& inputs) {
  const ImportResult result = RunImport(b.Bytes(), options);
  if (!result.graph.ok()) {
    ADD_FAILURE() << result.Text();
    return {};
  }
  for (const Node& node : result.graph->nodes()) {
    if (node.op == Op::kConst) continue;  // no core judges those
    EXPECT_THAT(node.source.op, Not(HasSubstr("Block"))) << node.source.name;
  }
  return Evaluate(b.Bytes(), options, inputs);
}

const std::vector<float> kW = {0.5f, -0.25f, 0.75f, 1, 0.3f, 0.6f, -0.2f, 0.1f};
const std::vector<float> kB = {0.1f, 0.2f, -0.1f, 0};
const std::vector<float> kPeep = {0.5f, -0.5f, 2};

TEST(ImportRecurrentTest, LstmBlockCell) {
  for (const bool has_peepholes : {false, true}) {
    GraphDefBuilder b;
    b.Placeholder("x", {1, 1}).Placeholder("cs", {1, 1}).Placeholder("h", {1, 1});
    b.Floats("w", {2, 4}, kW).Floats("b", {4}, kB);
    for (size_t k = 0; k < 3; ++k) b.Floats("p" + std::to_string(k), {1}, {kPeep[k]});
    b.Node("y", "LSTMBlockCell", {"x", "cs", "h", "w", "p0", "p1", "p2", "b"});
    b.Float("forget_bias", 0.5f).Float("cell_clip", 0.4f).Bool("use_peephole", has_peepholes);
    const std::vector<Tensor> found =
        EvaluateCell(b, Options({{"x", {1, 1}}, {"cs", {1, 1}}, {"h", {1, 1}}}, Outputs(7)),
                     {{2}, {-1.5f}, {0.7f}});
    ExpectStep(
        found, 0,
        LstmStep(kW, kB, 2, -1.5, 0.7, 0.5, 0.4, has_peepholes ? kPeep : std::vector<float>(3, 0)));
  }
}

TEST(ImportRecurrentTest, BlockLstmOfBothOrders) {
  for (const bool is_second : {false, true}) {
    GraphDefBuilder b;
    b.Placeholder("x", {3, 1, 1}).Floats("s", {1, 1}, {0.25f}).Floats("b", {4}, kB);
    // The second one exchanges the columns of ci and f.
    const std::vector<float> swapped = {kW[0], kW[2], kW[1], kW[3], kW[4], kW[6], kW[5], kW[7]};
    b.Floats("w", {2, 4}, kW).Floats("v", {2, 4}, swapped);
    b.Floats("d", {4}, {kB[0], kB[2], kB[1], kB[3]}).Floats("p", {1}, {0}).Int32s("n", {}, {2});
    b.Node("y", is_second ? "BlockLSTMV2" : "BlockLSTM",
           {"n", "x", "s", "s", is_second ? "v" : "w", "p", "p", "p", is_second ? "d" : "b"});
    if (!is_second) b.Float("forget_bias", 1).Float("cell_clip", -1);
    const std::vector<Tensor> found =
        EvaluateCell(b, Options({{"x", {3, 1, 1}}}, Outputs(7)), {{1, -2, 3}});
    const std::vector<float> none(3, 0);
    const double bias = is_second ? 0 : 1;
    const Step first = LstmStep(kW, kB, 1, 0.25, 0.25, bias, 0, none);
    ExpectStep(found, 0, first);
    ExpectStep(found, 1, LstmStep(kW, kB, -2, first.cs, first.h, bias, 0, none));
    ExpectStep(found, 2, {});  // behind the last step
  }
}

// The zeros behind the last step are bounded before they take memory.
TEST(ImportRecurrentTest, StepsWithoutSequencesAreBounded) {
  GraphDefBuilder b;
  b.Placeholder("x", {4096, 30000, 1}).Placeholder("s", {30000, 1000}).Int32s("n", {}, {0});
  b.Placeholder("w", {1001, 4000}).Placeholder("b", {4000}).Placeholder("p", {1000});
  b.Node("y", "BlockLSTMV2", {"n", "x", "s", "s", "w", "p", "p", "p", "b"});
  const ImportResult result = RunImport(b.Bytes(), Options({{"x", {4096, 30000, 1}},
                                                            {"s", {30000, 1000}},
                                                            {"w", {1001, 4000}},
                                                            {"b", {4000}},
                                                            {"p", {1000}}},
                                                           {"y"}));
  EXPECT_THAT(result.Text(), HasSubstr("[4096,30000,1000]"));
}

TEST(ImportRecurrentTest, GruBlockCell) {
  GraphDefBuilder b;
  b.Placeholder("x", {1, 1}).Placeholder("h", {1, 1});
  b.Floats("w", {2, 2}, {0.5f, -1, 0.25f, 2}).Floats("v", {2, 1}, {1.5f, -0.5f});
  b.Floats("b", {2}, {0.1f, -0.3f}).Floats("c", {1}, {0.2f});
  b.Node("y", "GRUBlockCell", {"x", "h", "w", "v", "b", "c"});
  const std::vector<Tensor> found =
      EvaluateCell(b, Options({{"x", {1, 1}}, {"h", {1, 1}}}, Outputs(4)), {{0.8f}, {-0.6f}});
  ASSERT_EQ(found.size(), 4u);
  const double r = Sigmoid(0.8 * 0.5 - 0.6 * 0.25 + 0.1);
  const double u = Sigmoid(-0.8 - 0.6 * 2 - 0.3);
  const double c = std::tanh(0.8 * 1.5 - 0.6 * r * -0.5 + 0.2);
  const std::vector<double> want = {r, u, c, (1 - u) * c - u * 0.6};
  for (size_t k = 0; k < 4; ++k) EXPECT_NEAR(found[k].ToFloats()[0], want[k], 1e-6) << k;
}

TEST(ImportRecurrentTest, SaysWhatDoesNotFit) {
  GraphDefBuilder b;
  b.Placeholder("x", {1, 3}).Floats("s", {1, 1}, {0}).Floats("w", {2, 4}, kW);
  b.Floats("b", {4}, kB).Floats("p", {1}, {0});
  b.Node("y", "LSTMBlockCell", {"x", "s", "s", "w", "p", "p", "p", "b"});
  EXPECT_THAT(RunImport(b.Bytes(), Options({{"x", {1, 3}}}, {"y"})).Text(),
              HasSubstr("a matrix f32[2,4] and a bias f32[4] for 3 inputs"));
}

}  // namespace
}  // namespace npuc::tf
