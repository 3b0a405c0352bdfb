// The types and memory of torch's tensors: expected values are PyTorch's.
#include "compiler_core/frontends/torchscript/torch_type.h"

#include <cmath>
#include <string>
#include <vector>

#include "compiler_core/frontends/torchscript/import_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::pt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// x holds -1, -0.75, -0.5 ...
std::vector<float> Computed(const std::string& body, const std::vector<int64_t>& shape = {2, 2}) {
  const ImportResult result = ImportForward("x: Tensor", body, {shape});
  EXPECT_TRUE(result.graph.ok()) << body << "\n" << result.Text();
  return result.Run();
}

std::string Refusal(const std::string& body, const std::vector<int64_t>& shape = {2, 2}) {
  const ImportResult result = ImportForward("x: Tensor", body, {shape});
  EXPECT_FALSE(result.graph.ok()) << body;
  return result.Text();
}

// Nodes of an operator whose operand 0 or 1 a node of another one gives.
int CountOf(const std::string& body, Op op, Op before) {
  const ImportResult result = ImportForward("x: Tensor", body, {{2, 2}});
  EXPECT_TRUE(result.graph.ok()) << body << "\n" << result.Text();
  if (!result.graph.ok()) return -1;
  int count = 0;
  for (const Node& node : result.graph->nodes()) {
    if (node.op != op) continue;
    const Graph& graph = *result.graph;
    count += graph.def(node.inputs[0]).op == before || graph.def(node.inputs[1]).op == before;
  }
  return count;
}

auto Near(const std::vector<float>& expected) {
  return ::testing::Pointwise(::testing::FloatNear(1e-5F), expected);
}

// Attention of equal scores over the rows [-1, -0.75] and [-0.5, -0.25].
std::vector<float> Attended(const std::string& mask) {
  return Computed(mask +
                  "\nq = torch.mul(x, 0)\n"
                  "return torch.scaled_dot_product_attention(q, q, x, m)");
}

TEST(TorchTypeTest, BooleanMasksOfAttentionMask) {
  const auto first_row_alone = Near({-1, -0.75, -1, -0.75});
  for (const char* mask :
       {"m = torch.gt(torch.slice(torch.neg(x), 0, 0, 1), 0.8)",
        "m = torch.expand(torch.lt(torch.slice(x, 0, 0, 1), -0.8), [2, 2])",
        "m = torch.reshape(torch.permute(torch.lt(torch.slice(x, 0, 0, 1), -0.8), [1, 0]), [1, 2])",
        "m = torch.cat([torch.lt(torch.slice(torch.slice(x, 0, 0, 1), 1, 0, 1), 0), "
        "torch.tensor([[False]])], 1)",
        "m = torch.expand(torch.tensor([[True, False]]), [2, 2])",
        "m = torch.cat([torch.tensor([[1]], dtype=11), torch.tensor([[0]], dtype=11)], 1)",
        "m = torch.zeros([2, 2], dtype=11)\n_0 = torch.fill_(torch.slice(m, 1, 0, 1), True)",
        "m = torch.zeros([2, 2], dtype=11)\n"
        "_0 = torch.copy_(torch.slice(m, 1, 0, 1), torch.tensor([[7], [1]]))"}) {
    EXPECT_THAT(Attended(mask), first_row_alone) << mask;
  }
  EXPECT_THAT(Attended("m = torch.tril(torch.ones([2, 2], dtype=11))"),
              Near({-1, -0.75, -0.75, -0.5}));
  // Floats are added: both rows get the same.
  EXPECT_THAT(Attended("m = torch.to(torch.lt(torch.mul(x, 0), 1), 6)"),
              Near({-0.75, -0.5, -0.75, -0.5}));
}

TEST(TorchTypeTest, MasksAreNoIndices) {
  for (const char* mask : {"torch.gt(x, -0.6)", "torch.reshape(torch.gt(x, -0.6), [2, 2])"}) {
    const std::string index = std::string("annotate(List[Optional[Tensor]], [") + mask + "])";
    EXPECT_THAT(Refusal("return torch.index(x, " + index + ")"), HasSubstr("indexing by a mask"));
    EXPECT_THAT(Computed("y = torch.mul(x, 1)\n_0 = torch.index_put_(y, " + index +
                         ", torch.tensor(0.))\nreturn y"),
                ElementsAre(-1, -0.75, 0, 0));
  }
  EXPECT_THAT(Computed("m = torch.gt(torch.select(x, 1, 0), -0.6)\n"
                       "return torch.index_put(x, annotate(List[Optional[Tensor]], [m]), "
                       "torch.tensor(5))"),
              ElementsAre(-1, -0.75, 5, 5));
  EXPECT_THAT(Computed("m = torch.tensor([True, False])\n"
                       "return torch.index_put(x, annotate(List[Optional[Tensor]], [None, m]), "
                       "torch.tensor(5.))"),
              ElementsAre(5, -0.75, 5, -0.25));
  EXPECT_THAT(Refusal("m = torch.gt(x, 0)\nreturn torch.index_put(x, annotate("
                      "List[Optional[Tensor]], [m]), torch.tensor([1., 2.]))"),
              HasSubstr("writing"));
}

TEST(TorchTypeTest, ComputedTypesAreTold) {
  const auto type_of = [](const std::string& value) {
    return Computed("return torch.add(torch.mul(x, 0), ops.prim.dtype(" + value + "))", {1, 1})[0];
  };
  EXPECT_EQ(type_of("torch.gt(x, 0)"), 11);
  EXPECT_EQ(type_of("torch.unsqueeze(torch.gt(x, 0), 0)"), 11);
  EXPECT_EQ(type_of("torch.logical_not(x)"), 11);
  EXPECT_EQ(type_of("torch.any(torch.gt(x, 0))"), 11);
  EXPECT_EQ(type_of("torch.mul(torch.gt(x, 0), torch.lt(x, 0))"), 11);
  EXPECT_EQ(type_of("torch.masked_fill(torch.gt(x, 0), torch.lt(x, 0), False)"), 11);
  EXPECT_EQ(type_of("torch.where(torch.gt(x, 0), torch.gt(x, 1), torch.gt(x, 2))"), 11);
  EXPECT_EQ(type_of("torch.mul(torch.gt(x, 0), x)"), 6);
  EXPECT_EQ(type_of("torch.mul(torch.gt(x, 0), 2)"), 4);
  EXPECT_EQ(type_of("torch.sum(torch.gt(x, 0))"), 4);
  EXPECT_EQ(type_of("torch.div(torch.gt(x, 0), torch.tensor(2))"), 6);
  EXPECT_EQ(type_of("torch.argmax(x)"), 4);
  EXPECT_EQ(type_of("torch.sign(x)"), 6);
  EXPECT_EQ(type_of("torch.to(torch.gt(x, 0), 6)"), 6);
  EXPECT_EQ(type_of("torch.mul(torch.half(x), 0.5)"), 5);
  EXPECT_EQ(type_of("torch.add(torch.double(x), x)"), 7);
  EXPECT_EQ(type_of("torch.zeros_like(torch.gt(x, 0))"), 11);
  EXPECT_THAT(
      Computed("m = torch.gt(x, -0.6)\nif torch.is_floating_point(m):\n  r = torch.add(x, m)\n"
               "else:\n  r = torch.masked_fill(x, m, 0)\nreturn r"),
      ElementsAre(-1, -0.75, 0, 0));
}

TEST(TorchTypeTest, SumsOfBooleansAreBooleans) {
  EXPECT_THAT(Computed("return torch.to(torch.add(torch.gt(x, -0.9), torch.gt(x, -0.6)), 6)"),
              ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(Computed("m = torch.tensor([[True, False], [True, True]])\n"
                       "return torch.add(torch.mul(x, 0), torch.add(m, m))"),
              ElementsAre(1, 0, 1, 1));
}

TEST(TorchTypeTest, KnownBooleansStayBooleans) {
  for (const char* m :
       {"torch.tril(torch.ones([2, 2], dtype=11))",
        "torch.masked_fill(torch.ones([2, 2], dtype=11), torch.tensor([[0, 1], [0, 0]]), 0)",
        "torch.where(torch.tensor([[0, 1], [0, 0]]), torch.tensor([False]), torch.tensor([True]))",
        "torch.where(torch.tensor([[0, 1], [0, 0]]), False, torch.ones([2, 2], dtype=11))",
        "torch.mul(torch.full([2, 2], True), torch.tensor([[1, 0], [1, 1]], dtype=11))"}) {
    EXPECT_THAT(
        Computed(std::string("return torch.masked_fill(x, torch.bitwise_not(") + m + "), 0.5)"),
        ElementsAre(-1, 0.5, -0.5, -0.25))
        << m;
  }
}

TEST(TorchTypeTest, IntegersOfAnyNumberDivideAsNumbers) {
  const auto at = [](const std::string& values, int index) {
    return Computed("return torch.add(torch.mul(x, 0), torch.select(" + values + ", 0, " +
                        std::to_string(index) + "))",
                    {1, 1})[0];
  };
  EXPECT_EQ(at("torch.div(torch.arange(100), 4)", 3), 0.75);
  EXPECT_EQ(at("torch.div(torch.arange(100), torch.arange(1, 101))", 99), 0.99F);
  EXPECT_EQ(at("torch.reciprocal(torch.arange(1, 101))", 3), 0.25);
  EXPECT_EQ(at("torch.div(torch.sub(torch.arange(100), 50), 4, rounding_mode=\"trunc\")", 1), -12);
  EXPECT_EQ(at("torch.div(torch.sub(torch.arange(100), 50), 4, rounding_mode=\"floor\")", 1), -13);
  // DETR's sine embedding, at 3 of 128: 10000^(2/128).
  EXPECT_NEAR(at("torch.pow(10000, torch.div(torch.mul(torch.floor_divide(torch.arange(128, "
                 "dtype=6), 2), 2), 128))",
                 3),
              1.154782, 1e-5);
}

TEST(TorchTypeTest, NewTensorsHaveTheStatedType) {
  const auto added = [](const std::string& value) {
    return Computed("return torch.add(torch.mul(x, 0), " + value + ")", {1, 2});
  };
  EXPECT_THAT(added("torch.tensor([2.7, -3.5], dtype=4)"), ElementsAre(2, -3));
  EXPECT_THAT(added("torch.tensor([0.5, 0.], dtype=11)"), ElementsAre(1, 0));
  EXPECT_THAT(added("torch.full([2], 2.7, dtype=4)"), ElementsAre(2, 2));
  EXPECT_THAT(added("torch.full_like(torch.tensor([1, 2]), 2.7)"), ElementsAre(2, 2));
  EXPECT_THAT(added("torch.scalar_tensor(2.7, dtype=4)"), ElementsAre(2, 2));
  EXPECT_THAT(added("torch.arange(0., 2.0, 1.9, dtype=4)"), ElementsAre(0, 1));
}

TEST(TorchTypeTest, WhatIsNotChosenMayBeInfinite) {
  const std::string infinite = "y = torch.reciprocal(torch.relu(x))\n";
  for (const char* body :
       {"return torch.where(torch.tensor([[True, True], [True, True]]), x, y)",
        "return torch.add(torch.masked_fill(y, torch.ones([2, 2], dtype=11), 0.), x)",
        "return torch.add(torch.triu(y, 5), x)",
        "_0 = torch.index_put_(y, [torch.tensor([0, 1])], torch.tensor(0.))\n"
        "return torch.add(x, y)"}) {
    EXPECT_THAT(Computed(infinite + body), ElementsAre(-1, -0.75, -0.5, -0.25)) << body;
  }
  // Cores multiply: a choice beside 0 is no sum, and a fill of a filled value does not read it.
  EXPECT_EQ(CountOf("return torch.tril(x)", Op::kAdd, Op::kSelect), 0);
  const std::string twice =
      "a = torch.tensor([[False, True], [False, False]])\n"
      "b = torch.tensor([[False, True], [False, True]])\n"
      "s = torch.masked_fill(torch.masked_fill(x, a, -inf), b, 3.)\n"
      "return torch.exp(s)";
  EXPECT_EQ(CountOf(twice, Op::kSelect, Op::kPlaceholder), 2);
  EXPECT_EQ(CountOf(twice, Op::kSelect, Op::kAdd), 0);
  EXPECT_THAT(Computed(twice),
              Near({std::exp(-1.F), std::exp(3.F), std::exp(-0.5F), std::exp(3.F)}));
}

TEST(TorchTypeTest, ClampsByATensor) {
  EXPECT_THAT(Computed("return torch.clamp_max(x, torch.tensor([-0.8, 0.]))"),
              ElementsAre(-1, -0.75, -0.8F, -0.25));
  EXPECT_THAT(Computed("return torch.clamp_min(x, torch.tensor([-0.8, 0.]))"),
              ElementsAre(-0.8F, 0, -0.5, 0));
}

TEST(TorchMemoryTest, AnotherTypeIsAnotherTensor) {
  EXPECT_THAT(Computed("y = torch.to(x, 7)\n_0 = torch.mul_(y, 2)\nreturn torch.add(x, y)"),
              ElementsAre(-3, -2.25, -1.5, -0.75));
  EXPECT_THAT(Computed("y = torch.half(x)\n_0 = torch.mul_(y, 2)\nreturn torch.add(x, y)"),
              ElementsAre(-3, -2.25, -1.5, -0.75));
  EXPECT_THAT(Computed("y = torch.float(x)\n_0 = torch.mul_(y, 2)\nreturn torch.add(x, y)"),
              ElementsAre(-4, -3, -2, -1));
  EXPECT_THAT(Computed("y = torch.double(x)\nz = torch.double(torch.slice(y, 0, 0, 2))\n"
                       "_0 = torch.mul_(z, 2)\nreturn torch.add(x, y)"),
              ElementsAre(-3, -2.25, -1.5, -0.75));
  EXPECT_THAT(Computed("m = torch.gt(x, -0.6)\ny = torch.to(m, 6)\n_0 = torch.mul_(y, 2)\n"
                       "return torch.add(torch.where(m, x, 0), torch.mul(torch.to(m, 6), 100))"),
              ElementsAre(0, 0, 99.5, 99.75));
}

TEST(TorchMemoryTest, ViewsOfPartsSeeChanges) {
  const std::string part = "y = torch.mul(x, 1)\np = torch.slice(y, 1, 1, 2)\n";
  for (const char* view : {"torch.unsqueeze(p, 2)", "torch.squeeze(p, 1)", "torch.view(p, [2])",
                           "torch.unflatten(p, 0, [2, 1])"}) {
    EXPECT_THAT(Computed(part + "r = " + view + "\n_0 = torch.mul_(y, 10)\nreturn torch.mul(r, 1)"),
                ElementsAre(-7.5, -2.5))
        << view;
  }
  EXPECT_THAT(Computed(part + "_0 = torch.zero_(torch.squeeze(p, 1))\nreturn y"),
              ElementsAre(-1, 0, -0.5, 0));
  // Strides, which are not followed, say if reshape copies.
  const std::string changed =
      part + "r = torch.reshape(p, [2])\nbefore = torch.mul(r, 1)\n_0 = torch.mul_(y, 10)\n";
  EXPECT_THAT(Refusal(changed + "return torch.mul(r, 1)"), HasSubstr("may or may not share"));
  EXPECT_THAT(Computed(changed + "return torch.add(before, y)"),
              ElementsAre(-10.75, -7.75, -5.75, -2.75));
}

}  // namespace
}  // namespace npuc::pt
