#include "compiler_core/frontends/common/plugins.h"

#include "compiler_core/frontends/torchscript/import_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::pt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kDeclared[] = R"(operators:
  - op: acme::scaled
    operands: [x, z]
    attributes: {by: {type: float}, shifts: {type: ints, default: [1]}, flip: {type: bool, default: false}}
    formula: |
      y = Abs(x) * by + z
      n = Select(Equal(x, x), -x, x)
    results: [y, n]
  - op: fft_rfft
    operands: [x]
    attributes: {n: {type: int, default: 3}}
    formula: y = x * n
    results: [y]
  - op: relu
    overrides: true
    operands: [x]
    formula: y = Maximum(x, 0.5)
    results: [y]
)";

// x is [-1, -0.75].
TEST(TorchPluginsTest, DeclaredOperatorsAreTheirFormulas) {
  const auto run = [](const std::string& body) {
    const ImportResult result = ImportForward("x: Tensor", body, {{1, 2}}, {}, kDeclared);
    EXPECT_TRUE(result.graph.ok()) << result.Text();
    return result.Run();
  };
  EXPECT_THAT(run("y, n, = ops.acme.scaled(x, 2., x, [1, 2])\nreturn torch.add(y, n)"),
              ElementsAre(2, 1.5));
  EXPECT_THAT(run("y, n, = ops.acme.scaled(x, z=x, by=4., flip=True)\nreturn y"),
              ElementsAre(3, 2.25));
  EXPECT_THAT(run("return torch.fft_rfft(x, None)"), ElementsAre(-3, -2.25));
  EXPECT_THAT(run("return torch.fft_rfft(x, n=None)"), ElementsAre(-3, -2.25));
  EXPECT_THAT(run("return torch.fft_rfft(x, 2)"), ElementsAre(-2, -1.5));
  EXPECT_THAT(run("return torch.relu(x)"), ElementsAre(0.5, 0.5));
}

TEST(TorchPluginsTest, WhatTheCallLacksIsSaid) {
  const auto text = [](const std::string& body) {
    return ImportForward("x: Tensor", body, {{1, 2}}, {}, kDeclared).Text();
  };
  EXPECT_THAT(text("return (ops.acme.scaled(x, x))[0]"),
              HasSubstr("the call does not give it; the declaration at line 2 of ops.yaml"));
  EXPECT_THAT(text("return (ops.acme.scaled(x, 2.))[0]"), HasSubstr("operand 1 is left out"));
  EXPECT_THAT(text("return torch.fft_rfft(x, x)"),
              HasSubstr("gives a tensor beside the 1 of the declaration"));
  EXPECT_THAT(text("return torch.fft_rfft(x, m=2)"), HasSubstr("gives a number beside the 1 of"));
  EXPECT_THAT(text("return torch.fft_rfft(x, \"ortho\")"), HasSubstr("is no number"));
  EXPECT_THAT(text("return ops.acme.other(x)"), HasSubstr("NPUC1110"));
}

TEST(TorchPluginsTest, SubgraphsAreRefused) {
  const ImportResult result = ImportForward("x: Tensor", "return torch.relu(x)", {{1, 2}}, {},
                                            R"(operators:
  - op: Two
    pattern_nodes: [[a, relu], [b, neg]]
    pattern_edges: [[a, b]]
    operands: {x: a:0}
    formula: y = x
    results: [y]
)");
  EXPECT_THAT(result.Text(), HasSubstr("TorchScript is code"));
}

}  // namespace
}  // namespace npuc::pt
