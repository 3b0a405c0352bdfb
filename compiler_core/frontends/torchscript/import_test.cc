#include "compiler_core/frontends/torchscript/import.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/frontends/torchscript/import_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::pt {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

TEST(TorchImportTest, ComputesPythonValues) {
  const ImportResult result = ImportForward("x: Tensor", R"(a = annotate(List[int], [])
for i in range(self.n):
  _0 = torch.append(a, torch.mul(i, 2))
_1 = torch.__range_length(0, 10, 4)
d = {"k": _1, }
if torch.__contains__(d, "k"):
  b = d["k"]
else:
  b = 0
c = torch.add(torch.add(a[-1], torch.len(a)), b)
_2 = torch.eq(torch.floordiv(-7, 2), -4)
if _2:
  e = torch.remainder(-7, 4)
else:
  e = 0
f = float(e) if torch.__isnot__(None, 1) else 0.
return torch.add(torch.mul(x, c), f))",
                                            {{1, 2}});
  // a = [0, 2, 4]; c = 4 + 3 + 3; e = 1.
  EXPECT_THAT(result.Run(), ElementsAre(-9, -6.5)) << result.Text();
}

TEST(TorchImportTest, WhileLoopsAndShapes) {
  const ImportResult result = ImportForward("x: Tensor", R"(y = x
i = 0
_0 = torch.lt(i, torch.size(x, 1))
while _0:
  y = torch.add(y, 1)
  i = torch.add(i, 1)
  _0 = torch.lt(i, torch.size(x, 1))
return y)",
                                            {{1, 3}});
  EXPECT_THAT(result.Run(), ElementsAre(2, 2.25, 2.5)) << result.Text();
}

TEST(TorchImportTest, SlicesOfListsAreThoseOfPython) {
  const auto digits = [](const std::string& slice) {
    const ImportResult result =
        ImportForward("x: Tensor", R"(l = torch.slice([1, 2, 3, 4, 5], )" + slice + R"()
n = 0
for i in range(torch.len(l)):
  n = torch.add(torch.mul(n, 10), l[i])
return torch.add(torch.mul(x, 0), n))",
                      {{1, 1}});
    EXPECT_TRUE(result.graph.ok()) << slice << result.Text();
    return result.graph.ok() ? result.Run()[0] : -1;
  };
  EXPECT_EQ(digits("None, None, -1"), 54321);
  EXPECT_EQ(digits("3, 0, -2"), 42);
  EXPECT_EQ(digits("-2, None, 1"), 45);
  EXPECT_EQ(digits("10, -9, -1"), 54321);
  EXPECT_EQ(digits("-9, 2, 1"), 12);
  EXPECT_EQ(digits("0, 9223372036854775807, 9223372036854775807"), 1);
  EXPECT_EQ(digits("None, None, -9223372036854775808"), 5);
  EXPECT_EQ(digits("2, 2, 1"), 0);
  EXPECT_EQ(digits("1, 3, -1"), 0);
  const ImportResult zero = ImportForward(
      "x: Tensor", "return torch.add(x, torch.len(torch.slice([1], None, None, 0)))", {{1, 1}});
  EXPECT_THAT(zero.Text(), HasSubstr("the step of a slice must not be 0"));
}

// torch.gather of x, which is -1 to 0.25, and of indices that are known or computed.
TEST(TorchImportTest, GathersElements) {
  const auto gathered = [](const std::string& indices, int dim) {
    const ImportResult result = ImportForward(
        "x: Tensor, y: Tensor",
        "return torch.gather(x, " + std::to_string(dim) + ", " + indices + ")", {{2, 3}, {2, 1}});
    EXPECT_TRUE(result.graph.ok()) << result.Text();
    return result.Run();
  };
  // y is -1 and -0.75: the computed indices are 2 and 2, and 1 and 1.
  const std::string computed = "torch.to(torch.add(torch.round(y), 3), 4)";
  EXPECT_THAT(gathered(computed, 1), ElementsAre(-0.5f, 0.25f));
  EXPECT_THAT(gathered("torch.to(torch.add(torch.round(y), 2), 4)", 0),
              ElementsAre(-0.25f, -0.25f));
  EXPECT_THAT(gathered("torch.tensor([[2, 0], [1, 1]])", 1), ElementsAre(-0.5f, -1.0f, 0.0f, 0.0f));
}

// PyTorch 1.2 wrote x.shape so.
TEST(TorchImportTest, ShapesAreLists) {
  const ImportResult result =
      ImportForward("x: Tensor", "return torch.mul(x, (ops.prim.shape(x))[1])", {{1, 2}});
  EXPECT_THAT(result.Run(), ElementsAre(-2, -1.5f)) << result.Text();
}

TEST(TorchImportTest, PrintsNothing) {
  const ImportResult result = ImportForward(
      "x: Tensor", "print(x)\nprint()\nprint(1, 2, 3, 4, 5, 6, 7, x)\nreturn torch.neg(x)",
      {{1, 2}});
  EXPECT_THAT(result.Run(), ElementsAre(1, 0.75f)) << result.Text();
}

TEST(TorchImportTest, WritesValuesAtKnownIndices) {
  const ImportResult result = ImportForward("x: Tensor", R"(y = torch.zeros([1, 4])
a = torch.slice(y, 0, 0, 9223372036854775807)
b = torch.index_put_(a, [None, torch.tensor([2, -4, 1])], torch.view(x, [3]))
return y)",
                                            {{1, 3}});
  EXPECT_THAT(result.Run(), ElementsAre(-0.75f, -0.5f, -1, 0)) << result.Text();
}

TEST(TorchImportTest, SlicesOfStringsAreThoseOfPython) {
  const ImportResult result = ImportForward("x: Tensor", R"(n = 0
if torch.eq(torch.slice("abcdef", None, None, -2), "fdb"):
  n = 7
return torch.add(torch.mul(x, 0), n))",
                                            {{1, 1}});
  EXPECT_THAT(result.Run(), ElementsAre(7)) << result.Text();
}

TEST(TorchImportTest, TypesAreTold) {
  const ImportResult result = ImportForward("x: Tensor", R"(n = 0
if isinstance(1, int):
  n = torch.add(n, 1)
if isinstance(1., (int, str)):
  n = torch.add(n, 10)
if isinstance([1, 2], List[int]):
  n = torch.add(n, 100)
if isinstance((x, 1), Tuple[Tensor, int]):
  n = torch.add(n, 1000)
if isinstance(None, Optional[Tensor]):
  n = torch.add(n, 10000)
if isinstance([x], List[int]):
  n = torch.add(n, 5)
n = torch.add(n, torch.sum([1, 1]))
return torch.add(torch.mul(x, 0), n))",
                                            {{1, 1}});
  EXPECT_THAT(result.Run(), ElementsAre(11103)) << result.Text();
  const ImportResult unknown =
      ImportForward("x: Tensor", "isinstance(x, Stream)\nreturn x", {{1, 1}});
  EXPECT_FALSE(unknown.graph.ok());
}

TEST(TorchImportTest, TracedShapeArithmetic) {
  const ImportResult result =
      ImportForward("x: Tensor", R"(_0 = ops.prim.NumToTensor(torch.size(x, 0))
_1 = ops.prim.NumToTensor(torch.size(x, 1))
_2 = torch.floor_divide(torch.mul(_0, _1), torch.add(_0, _0))
return torch.reshape(x, [int(_2), -1]))",
                    {{2, 6}});
  ASSERT_TRUE(result.graph.ok()) << result.Text();
  EXPECT_EQ(result.graph->type(result.graph->outputs()[0].value).shape, (Shape{3, 4}));
}

TEST(TorchImportTest, InPlaceOperatorsChangeWhatOthersSee) {
  const ImportResult result = ImportForward("x: Tensor", R"(y = torch.clone(x)
z = torch.slice(y, 1, 1, 3)
_0 = torch.add_(z, 10)
_1 = torch.mul_(torch.select(y, 1, 0), 2)
_2 = torch.copy_(torch.slice(y, 1, 3, 4), torch.slice(x, 1, 0, 1))
return (y, z))",
                                            {{1, 4}});
  EXPECT_THAT(result.Run(0), ElementsAre(-2, 9.25, 9.5, -1)) << result.Text();
  EXPECT_THAT(result.Run(1), ElementsAre(9.25, 9.5));
}

// transpose_ and its like change how a tensor sees its memory: a view made before sees it as
// before, and both see what is written through either.
TEST(TorchImportTest, InPlaceOperatorsChangeTheFormOfOneTensorAlone) {
  const ImportResult result = ImportForward("x: Tensor", R"(y = torch.clone(x)
flat = torch.view(y, [-1])
same = torch.transpose_(y, 0, 1)
_0 = torch.add_(torch.select(y, 0, 1), 10)
_1 = torch.mul_(torch.slice(flat, 0, 0, 1), 4)
_2 = torch.unsqueeze_(flat, 0)
square = torch.t_(torch.clone(torch.slice(x, 1, 0, 2)))
row = torch.squeeze_(torch.clone(_2))
resized = torch.resize_(torch.clone(x), [3, 2])
return (y, flat, same, row, resized, square))",
                                            {{2, 3}});
  ASSERT_TRUE(result.graph.ok()) << result.Text();
  const std::vector<float> x = result.Run(4);
  ASSERT_EQ(x.size(), 6u);
  const auto shape = [&](int i) {
    return result.graph->type(result.graph->outputs()[static_cast<size_t>(i)].value).shape;
  };
  EXPECT_EQ(shape(0), (Shape{3, 2}));
  EXPECT_EQ(shape(1), (Shape{1, 6}));
  EXPECT_EQ(shape(2), (Shape{3, 2}));
  EXPECT_EQ(shape(3), (Shape{6}));
  EXPECT_EQ(shape(4), (Shape{3, 2}));
  const std::vector<float> memory = {4 * x[0], x[1] + 10, x[2], x[3], x[4] + 10, x[5]};
  EXPECT_THAT(result.Run(1), ElementsAreArray(memory));
  EXPECT_THAT(result.Run(3), ElementsAreArray(memory));
  for (const int i : {0, 2}) {
    EXPECT_THAT(result.Run(i),
                ElementsAre(memory[0], memory[3], memory[1], memory[4], memory[2], memory[5]));
  }
  EXPECT_THAT(result.Run(5), ElementsAre(x[0], x[3], x[1], x[4]));
}

TEST(TorchImportTest, MethodsFunctionsAndNamedTuples) {
  const ImportResult result = ImportCode(R"(class Net(Module):
  w : Tensor
  scale : Final[float] = 2.
  def forward(self: __torch__.Net,
    x: Tensor) -> Tuple[Tensor, Tensor]:
    _0 = __torch__.twice
    p = __torch__.Pair((self).scaled(x, ), _0(x, ))
    return (p.b, p.a)
  def scaled(self: __torch__.Net,
    x: Tensor) -> Tensor:
    scale = self.scale
    return torch.mul(x, scale)
def twice(x: Tensor,
    by: int=3) -> Tensor:
  return torch.mul(x, by)
class Pair(NamedTuple):
  a : Tensor
  b : Tensor
)",
                                         {{1, 1}});
  EXPECT_THAT(result.Run(0), ElementsAre(-3)) << result.Text();
  EXPECT_THAT(result.Run(1), ElementsAre(-2));
}

TEST(TorchImportTest, OutputsAreFlattenedAndNamed) {
  CompileOptions options;
  options.fp16_outputs = {"2"};
  const ImportResult result =
      ImportForward("feats: Tensor, argument_2: Tensor",
                    "t = [feats, torch.neg(feats)]\nreturn (t, (argument_2, feats), feats)",
                    {{1, 2}, {1, 3}}, options);
  ASSERT_TRUE(result.graph.ok()) << result.Text();
  const Graph& graph = *result.graph;
  ASSERT_EQ(graph.inputs().size(), 2u);
  EXPECT_EQ(graph.def(graph.inputs()[0]).source.name, "feats");
  EXPECT_EQ(graph.def(graph.inputs()[1]).source.name, "input_1");
  ASSERT_EQ(graph.outputs().size(), 5u);
  EXPECT_EQ(graph.outputs()[4].name, "output_4");
  EXPECT_TRUE(graph.outputs()[2].fp16);
  EXPECT_FALSE(graph.outputs()[0].fp16);
  EXPECT_EQ(graph.type(graph.outputs()[2].value).shape, (Shape{1, 3}));
}

TEST(TorchImportTest, InputsFedTransposedLoseTheTranspose) {
  CompileOptions options;
  options.input_ncx_to_nxc = {0};
  const ImportResult result =
      ImportForward("x: Tensor", "return torch.permute(x, [0, 2, 3, 1])", {{1, 2, 3, 4}}, options);
  ASSERT_TRUE(result.graph.ok()) << result.Text();
  const std::vector<float> values = result.Run();
  ASSERT_EQ(values.size(), 24u);
  EXPECT_EQ(values[1], -0.75f);
}

TEST(TorchImportTest, ConstInputsArePythonsNumbers) {
  const std::string body =
      "if doubles:\n  y = torch.mul(x, 2)\nelse:\n  y = torch.mul(x, by)\nreturn y";
  const auto run = [&](const ConstInput& doubles, const ConstInput& by) {
    CompileOptions options;
    options.const_inputs = {doubles, by};
    return ImportForward("x: Tensor, doubles: bool, by: int", body, {{1, 2}}, options);
  };
  const ConstInput no{"1", {0}, false, true};
  const ConstInput three{"2", {3}, false, true};
  const ImportResult result = run(no, three);
  ASSERT_TRUE(result.graph.ok()) << result.Text();
  EXPECT_EQ(result.graph->inputs().size(), 1u);
  EXPECT_THAT(result.Run(), ElementsAre(-3, -2.25));
  EXPECT_FALSE(run(no, {"2", {0.5}, false, false}).graph.ok());
  EXPECT_FALSE(run({"1", {2}, false, true}, three).graph.ok());
  EXPECT_FALSE(run({"1", {0}, true, true}, three).graph.ok());
  EXPECT_FALSE(run(no, {"7", {3}, false, true}).graph.ok());
  EXPECT_FALSE(run(no, {"0", {3}, false, true}).graph.ok());
}

struct FormulaCase {
  std::string body;
  std::vector<std::vector<int64_t>> shapes;
  std::vector<float> expected;  // by NumPy
};

void CheckFormulas(const std::vector<FormulaCase>& cases) {
  for (const FormulaCase& c : cases) {
    std::string parameters;
    for (size_t i = 0; i < c.shapes.size(); ++i) {
      absl::StrAppend(&parameters, i == 0 ? "" : ", ", "x", i, ": Tensor");
    }
    const ImportResult result = ImportForward(parameters, "return " + c.body, c.shapes);
    ASSERT_TRUE(result.graph.ok()) << c.body << "\n" << result.Text();
    EXPECT_THAT(result.Run(), ::testing::Pointwise(::testing::FloatNear(1e-5F), c.expected))
        << c.body;
  }
}

TEST(TorchImportTest, EinsumIsOneProductBetweenTransposes) {
  CheckFormulas({
      {"torch.einsum(\"ij,kj->ik\", [x0, x1])", {{2, 3}, {2, 3}}, {1.8125, 0.125, 0.125, 0.125}},
      {"torch.einsum(\"bij,bjk->bik\", [x0, x1])",
       {{1, 2, 3}, {1, 3, 2}},
       {1.375, 0.8125, 0.25, 0.25}},
      {"torch.einsum(\"ij->j\", [x0])", {{2, 3}}, {-1.25, -0.75, -0.25}},
      {"torch.einsum(\"ij->ji\", [x0])", {{2, 3}}, {-1, -0.25, -0.75, 0, -0.5, 0.25}},
      {"torch.einsum(\"i, j\", [x0, x1])", {{2}, {3}}, {1, 0.75, 0.5, 0.75, 0.5625, 0.375}},
      {"torch.einsum(\"...ij,jk->...ik\", [x0, x1])",
       {{1, 2, 3}, {3, 2}},
       {1.375, 0.8125, 0.25, 0.25}},
      {"torch.einsum(\"bhid,bhjd->bhij\", [x0, x1])",
       {{1, 2, 1, 2}, {1, 2, 2, 2}},
       {1.5625, 0.6875, -0.0625, -0.4375}},
      {"torch.einsum(\"i,i,i->\", [x0, x1, x2])", {{3}, {3}, {3}}, {-1.546875}},
  });
  for (const char* equation :
       {"ii->i", "ij->ik", "ij,jk->ik", "i", "ij->jj", "i1->i", "...", "->"}) {
    const ImportResult result = ImportForward(
        "x: Tensor", absl::StrCat("return torch.einsum(\"", equation, "\", [x])"), {{2, 2}});
    EXPECT_EQ(result.graph.ok(), absl::string_view(equation) == "...") << equation;
  }
}

TEST(TorchImportTest, ChoosesByKnownConditions) {
  CheckFormulas({
      {"torch.where(torch.tensor([True, False]), x0, x1)", {{2, 2}, {2}}, {-1, -0.75, -0.5, -0.75}},
      {"torch.where(torch.tensor([1, 0]), x0, 7.)", {{2, 2}}, {-1, 7, -0.5, 7}},
      {"torch.masked_fill(x0, torch.tensor([1, 0]), 5)", {{2, 2}}, {5, -0.75, 5, -0.25}},
      {"torch.masked_fill(x0, torch.bitwise_not(torch.tensor([True, False])), 5)",
       {{2, 2}},
       {-1, 5, -0.5, 5}},
      {"torch.where(torch.__and__(torch.tensor([True, True]), "
       "torch.bitwise_not(torch.tensor([True, False]))), x0, 7.)",
       {{2, 2}},
       {7, -0.75, 7, -0.25}},
      {"torch.masked_fill(x0, torch.bitwise_not(torch.ones([2, 2], dtype=11)), 5)",
       {{2, 2}},
       {-1, -0.75, -0.5, -0.25}},
      {"torch.mul(x0, torch.bitwise_not(torch.tensor([0, 2])))", {{2, 2}}, {1, 2.25, 0.5, 0.75}},
      {"torch.add(x0, torch.cos(torch.tensor([0, 0])))", {{2, 2}}, {0, 0.25, 0.5, 0.75}},
      {"torch.sum(torch.masked_fill(x0, torch.lt(torch.arange(100), 98), 0.), 1)",
       {{1, 100}},
       {47.25}},
      {"torch.add(x0, torch.sum(torch.sin(torch.arange(100))))",
       {{2, 2}},
       {-0.6208054, -0.3708054, -0.1208054, 0.1291946}},
      {"torch.tril(x0, -1)", {{3, 3}}, {0, 0, 0, -0.25, 0, 0, 0.5, 0.75, 0}},
      {"torch.triu(x0, 1)", {{2, 3}}, {0, -0.75, -0.5, 0, 0, 0.25}},
      {"torch.mul(x0, torch.triu(torch.ones([2, 2])))", {{2, 2}}, {-1, -0.75, 0, -0.25}},
      {"torch.ravel(x0)", {{2, 2}}, {-1, -0.75, -0.5, -0.25}},
  });
}

TEST(TorchImportTest, ChoosesByRunTimeData) {
  // x0 counts up from -1 by quarters, and so does x1.
  CheckFormulas({
      {"torch.where(torch.gt(x0, x1), x0, x1)", {{2, 2}, {2}}, {-1, -0.75, -0.5, -0.25}},
      {"torch.where(torch.le(x0, -0.5), 7, x0)", {{2, 2}}, {7, 7, 7, -0.25}},
      {"torch.masked_fill(x0, torch.lt(x0, -0.6), 5)", {{2, 2}}, {5, 5, -0.5, -0.25}},
      {"torch.mul(x0, torch.ge(x0, -0.5))", {{2, 2}}, {0, 0, -0.5, -0.25}},
      {"torch.__and__(torch.gt(x0, -0.9), torch.ne(x0, -0.5))", {{2, 2}}, {0, 1, 0, 1}},
      {"torch.logical_or(torch.eq(x0, -1), torch.eq(x0, -0.5))", {{2, 2}}, {1, 0, 1, 0}},
      {"torch.logical_not(torch.eq(x0, -1))", {{2, 2}}, {0, 1, 1, 1}},
      {"torch.bitwise_not(torch.eq(x0, -1))", {{2, 2}}, {0, 1, 1, 1}},
      {"torch.one_hot(torch.argmax(x0, 1), 2)", {{2, 2}}, {0, 1, 0, 1}},
      {"torch.trunc(torch.mul(x0, 5))", {{2, 2}}, {-5, -3, -2, -1}},
      {"torch.round(torch.mul(x0, 0.5), decimals=1)", {{2, 2}}, {-0.5, -0.4, -0.2, -0.1}},
      {"torch.any(torch.gt(x0, -0.6), 1)", {{2, 2}}, {0, 1}},
      {"torch.all(torch.lt(x0, -0.5))", {{2, 2}}, {0}},
      {"torch.sign(torch.add(x0, 0.75))", {{2, 2}}, {-1, 0, 1, 1}},
      {"torch.floor(torch.mul(x0, 2))", {{2, 2}}, {-2, -2, -1, -1}},
      {"torch.ceil(torch.mul(x0, 2))", {{2, 2}}, {-2, -1, -1, 0}},
      {"torch.floor_divide(x0, 0.5)", {{2, 2}}, {-2, -2, -1, -1}},
      {"torch.remainder(x0, 0.5)", {{2, 2}}, {0, 0.25, 0, 0.25}},
      {"torch.to(torch.mul(x0, 2), 4)", {{2, 2}}, {-2, -1, -1, 0}},
      {"torch.index_put(x0, [torch.argmin(x0)], torch.max(x0))", {{3}}, {-0.5, -0.75, -0.5}},
      {"torch.index_put(x0, [None, torch.argmax(x1)], torch.tensor(7.))",
       {{2, 2}, {2}},
       {-1, 7, -0.5, 7}},
      {"torch.index_put(x0, [torch.tensor([0, -1])], torch.tensor(7.))", {{3}}, {7, -0.75, 7}},
      {"(torch.sort(x0, 0, True))[0]", {{3}}, {-0.5, -0.75, -1}},
      {"(torch.sort(torch.neg(x0)))[1]", {{3}}, {2, 1, 0}},
      {"torch.argmax(x0, 1)", {{2, 2}}, {1, 1}},
      {"torch.argmin(x0)", {{2, 2}}, {0}},
      {"(torch.max(x0, 1))[1]", {{2, 2}}, {1, 1}},
      {"(torch.topk(x0, 2))[0]", {{1, 4}}, {-0.25, -0.5}},
      {"(torch.topk(x0, 3, -1, False))[1]", {{1, 4}}, {0, 1, 2}},
      {"torch.embedding(x0, torch.argmax(x1, 1))", {{3, 2}, {2, 2}}, {-0.5, -0.25, -0.5, -0.25}},
      {"torch.index(x0, annotate(List[Optional[Tensor]], [torch.argmax(x1, 1)]))",
       {{3, 2}, {2, 2}},
       {-0.5, -0.25, -0.5, -0.25}},
      {"torch.index(x0, annotate(List[Optional[Tensor]], [torch.tensor([1, 0]), "
       "torch.tensor([0, -1])]))",
       {{2, 2}},
       {-0.5, -0.75}},
      {"torch.cosine_similarity(x0, x1)", {{2, 2}, {2, 2}}, {1, 1}},
  });
}

TEST(TorchImportTest, SortsListsOfNumbersThatAreComputed) {
  const ImportResult result =
      ImportForward("x: Tensor",
                    "a = [torch.select(x, 0, 2), torch.select(x, 0, 0), torch.select(x, 0, 1)]\n"
                    "torch.sort(a)\n"
                    "return torch.stack(a, 0)",
                    {{3}});
  ASSERT_TRUE(result.graph.ok()) << result.Text();
  EXPECT_THAT(result.Run(0), ElementsAre(-1, -0.75, -0.5));
}

TEST(TorchImportTest, ABatchNormInTrainingIsNoMatterOfShapes) {
  const ImportResult result = ImportForward(
      "x: Tensor",
      "ops.prim.RaiseException(\"Expected more than 1 value per channel when training\")\n"
      "return x",
      {{1, 2}});
  EXPECT_TRUE(result.Has(DiagnosticKind::kTorchRaises)) << result.Text();
  EXPECT_THAT(result.Text(), ::testing::HasSubstr("call model.eval()"));
}

TEST(TorchImportTest, LeavesDropoutInTrainingOutWithAWarning) {
  const ImportResult result =
      ImportForward("x: Tensor", "return torch.dropout(x, 0.5, True)", {{1, 2}});
  ASSERT_TRUE(result.graph.ok()) << result.Text();
  EXPECT_TRUE(result.Has(DiagnosticKind::kTorchInTraining)) << result.Text();
  EXPECT_THAT(result.Run(0), ElementsAre(-1, -0.75));
}

TEST(TorchImportTest, WindowsBecomeAxes) {
  CheckFormulas({
      {"torch.unfold(x0, 0, 3, 2)", {{5}}, {-1, -0.75, -0.5, -0.5, -0.25, 0}},
      {"torch.im2col(x0, [1, 2], [1, 1], [0, 0], [1, 1])",
       {{1, 2, 2, 2}},
       {-1, -0.5, -0.75, -0.25, 0, 0.5, 0.25, 0.75}},
  });
  EXPECT_FALSE(ImportForward("x: Tensor", "return torch.unfold(x, 0, 6, 1)", {{5}}).graph.ok());
}

TEST(TorchImportTest, DepthBecomesChannels) {
  CheckFormulas({
      {"torch.conv3d(x0, torch.ones([1, 1, 2, 1, 1]), None, [1, 1, 1], [0, 0, 0], [1, 1, 1], 1)",
       {{1, 1, 3, 1, 2}},
       {-1.5, -1, -0.5, 0}},
      {"torch.conv3d(x0, torch.reshape(torch.tensor([1., 2., 1., 2.]), [2, 1, 2, 1, 1]), None, "
       "[1, 1, 1], [0, 0, 0], [1, 1, 1], 2)",
       {{1, 2, 2, 1, 2}},
       {-2, -1.25, 1, 1.75}},
  });
}

TEST(TorchImportTest, ScaledDotProductAttention) {
  CheckFormulas({
      {"torch.scaled_dot_product_attention(x0, x1, x2)",
       {{1, 2, 2}, {1, 2, 2}, {1, 2, 2}},
       {-0.824964F, -0.574964F, -0.782953F, -0.532953F}},
      {"torch.scaled_dot_product_attention(x0, x1, x2, None, 0., True)",
       {{1, 2, 2}, {1, 2, 2}, {1, 2, 2}},
       {-1, -0.75, -0.782953F, -0.532953F}},
  });
}

TEST(TorchImportTest, WeightsKeepTheirNames) {
  const ImportResult result =
      ImportForward("x: Tensor", "return torch.linear(x, self.w, None)", {{1, 3}});
  ASSERT_TRUE(result.graph.ok()) << result.Text();
  EXPECT_THAT(result.Run(), ElementsAre(-3.5, -5.75));  // w is stored column by column
  bool found = false;
  for (const Node& node : result.graph->nodes()) {
    if (node.op == Op::kConst) found |= node.source.name == "w";
  }
  EXPECT_TRUE(found);
}

TEST(TorchImportTest, ArangeTakesTracedSizes) {
  const ImportResult result =
      ImportForward("x: Tensor", R"(n = ops.prim.NumToTensor(torch.size(x, 1))
y = torch.arange(n, dtype=None, layout=None, device=torch.device("cpu"), pin_memory=False)
z = torch.arange(1, torch.add(n, 1, alpha=1), dtype=6, layout=None, device=torch.device("cpu"), pin_memory=False)
return torch.add(torch.add(x, y), z))",
                    {{1, 3}});
  EXPECT_THAT(result.Run(), ElementsAre(0, 2.25, 4.5)) << result.Text();
}

TEST(TorchImportTest, GruStepByHand) {
  // Weights 0 but for biases of 0: r = z = 0.5, n = 0, so h halves at each of two steps.
  const ImportResult result = ImportForward("x: Tensor, h: Tensor", R"(w = torch.zeros([3, 1])
b = torch.zeros([3])
y, h1 = torch.gru(x, h, [w, w, b, b], True, 1, 0., False, False, True)
return (y, h1))",
                                            {{1, 2, 1}, {1, 1, 1}});
  EXPECT_THAT(result.Run(0), ElementsAre(-0.5, -0.25)) << result.Text();
  EXPECT_THAT(result.Run(1), ElementsAre(-0.25));
}

TEST(TorchImportTest, RefusesByName) {
  struct Case {
    std::string body;
    DiagnosticKind kind;
    std::string text;
  };
  const std::vector<Case> cases = {
      {"if bool(torch.gt(torch.sum(x), 0)):\n  y = x\nelse:\n  y = torch.neg(x)\nreturn y",
       DiagnosticKind::kTorchDataDependent, "bool() of run-time data (f32[])"},
      {"if bool(torch.sum(x)):\n  y = x\nelse:\n  y = x\nreturn y",
       DiagnosticKind::kTorchDataDependent, "bool() of run-time data (f32[])"},
      {"ops.prim.RaiseException(torch.format(\"expected {}D\", 4), \"builtins.ValueError\")\n"
       "return x",
       DiagnosticKind::kTorchRaises, "raises ValueError: expected 4D"},
      {"self.n = torch.add(self.n, 1)\nreturn torch.mul(x, self.n)",
       DiagnosticKind::kTorchStateWritten, "attribute 'n'"},
      {"self.w = torch.cat([self.w, torch.reshape(x, [2, 1])], 1)\nreturn torch.sum(self.w)",
       DiagnosticKind::kTorchStateWritten, "another shape, in attribute 'w'"},
      {"_0 = torch.append(self.sizes, 1)\nreturn x", DiagnosticKind::kTorchStateWritten,
       "attribute 'sizes'"},
      {"return torch.fft_rfft(x)", DiagnosticKind::kUnsupportedOperator, "torch.fft_rfft"},
      {"return ops.quantized.conv3d(x, x, 1., 0)", DiagnosticKind::kTorchQuantized,
       "quantized::conv3d"},
      {"return self.nothing", DiagnosticKind::kTorchNameUnknown, "no attribute 'nothing'"},
      {"return __torch__.nothing(x)", DiagnosticKind::kTorchNameUnknown, "__torch__.nothing"},
      {"return CONSTANTS.c7", DiagnosticKind::kTorchNameUnknown, "CONSTANTS.c7"},
      {"return torch.matmul(x, x)", DiagnosticKind::kOperandMismatch, "do not multiply"},
      {"return 3", DiagnosticKind::kTorchOutputNotTensor, "an int"},
      {"return torch.where(x)", DiagnosticKind::kUnsupportedOperatorMode, "depends on data"},
      {"return torch.bitwise_and(x, x)", DiagnosticKind::kUnsupportedOperatorMode, "of integers"},
      {"_0, y = torch.topk(x, 17)\nreturn y", DiagnosticKind::kOperandMismatch, "17 largest"},
  };
  for (const Case& c : cases) {
    const ImportResult result = ImportForward("x: Tensor", c.body, {{1, 2}});
    EXPECT_FALSE(result.graph.ok());
    EXPECT_TRUE(result.Has(c.kind)) << c.body << "\n" << result.Text();
    EXPECT_THAT(result.Text(), HasSubstr(c.text)) << c.body;
  }
}

TEST(TorchImportTest, GoesOnAfterAnError) {
  const ImportResult result = ImportForward("x: Tensor", R"(a = torch.foo(x)
b = torch.add(a, 1)
c = torch.bar(b, torch.foo(x))
d = torch.view(x, [7])
return torch.add(c, torch.bar(d)))",
                                            {{1, 2}});
  // foo and bar once each (bar of poison does not count), and the view.
  EXPECT_EQ(result.diagnostics.error_count(), 2u) << result.Text();
  EXPECT_THAT(result.Text(), HasSubstr("net.pt:code/__torch__.py:4:9"));
  EXPECT_THAT(result.Text(), HasSubstr("the code is: a = torch.foo(x)"));
}

TEST(TorchImportTest, WhatNothingDependsOnMayFail) {
  const ImportResult dead = ImportForward("x: Tensor", R"(phase = torch.atan2(x, x)
more = torch.cat([phase, torch.view(x, [7])], 0)
_0, index = torch.max(x, 1)
return torch.neg(x))",
                                          {{1, 2}});
  EXPECT_TRUE(dead.graph.ok()) << dead.Text();
  // Writing it somewhere is an effect.
  const ImportResult written = ImportForward("x: Tensor", R"(y = torch.clone(x)
_0 = torch.copy_(y, torch.atan2(x, x))
return torch.neg(x))",
                                             {{1, 2}});
  EXPECT_TRUE(written.Has(DiagnosticKind::kUnsupportedOperator)) << written.Text();
}

// "x, w -> w_out, output_0"
std::string Ports(const ImportResult& result) {
  if (!result.graph.ok()) return result.Text();
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  for (const ValueId id : result.graph->inputs()) {
    inputs.push_back(result.graph->def(id).source.name);
  }
  for (const GraphOutput& output : result.graph->outputs()) outputs.push_back(output.name);
  return absl::StrCat(absl::StrJoin(inputs, ", "), " -> ", absl::StrJoin(outputs, ", "));
}

TEST(TorchStatesTest, WrittenAttributesAreStates) {
  struct Case {
    std::string body;
    std::string ports;
    std::vector<float> first;  // of the first output, for x = w = -1, -0.75 ... 0.25
  };
  // An attribute that is changed in place is read before there are inputs.
  const std::vector<Case> cases = {
      {"h = torch.add(torch.mul(self.w, 2), x)\nself.w = h\nreturn torch.sum(h)",
       "x, w -> w_out, output_0",
       {-3, -2.25, -1.5, -0.75, 0, 0.75}},
      {"_0 = torch.add_(self.w, x)\nreturn torch.sum(self.w)",
       "w, x -> w_out, output_0",
       {-2, -1.5, -1, -0.5, 0, 0.5}},
      {"_0 = torch.copy_(torch.select(self.w, 0, 0), torch.select(x, 0, 1))\n"
       "return torch.sum(self.w)",
       "w, x -> w_out, output_0",
       {-0.25, 0, 0.25, -0.25, 0, 0.25}},
      // A delay: what the last call had.
      {"a = self.w\nself.w = x\nreturn a",
       "x, w -> w_out, output_0",
       {-1, -0.75, -0.5, -0.25, 0, 0.25}},
      // Two of them, in a list that no call makes longer.
      {"if isinstance(self.n, int):\n  self.n = [x, x]\n_0 = torch.append(self.n, x)\n"
       "a = torch.pop(self.n, 0)\nreturn torch.sub(a, x)",
       "x, n.0, n.1 -> n.0_out, n.1_out, output_0",
       {-1, -0.75, -0.5, -0.25, 0, 0.25}},
      // A flag that the first call alone finds.
      {"if torch.eq(self.n, 3):\n  self.w = torch.mul(x, 0)\n  self.n = 1\n"
       "y = torch.add(self.w, x)\nself.w = y\nreturn y",
       "x, w -> w_out, output_0",
       {-2, -1.5, -1, -0.5, 0, 0.5}},
  };
  for (const Case& c : cases) {
    const ImportResult result = ImportForward("x: Tensor", c.body, {{2, 3}});
    EXPECT_EQ(Ports(result), c.ports) << c.body;
    EXPECT_THAT(result.Run(0), ElementsAreArray(c.first)) << c.body;
  }
}

TEST(TorchStatesTest, StatesThatNothingDependsOnAreLeftOut) {
  for (const std::string body :
       {"self.w = x\nreturn torch.add(self.w, 1)", "self.last = x\nreturn torch.neg(x)",
        "self.w = torch.add(self.w, x)\nreturn torch.neg(x)",
        "_0 = torch.add_(self.w, 1)\nreturn torch.neg(x)",
        "self.n = torch.mul(self.n, 0)\nreturn torch.add(x, self.n)"}) {
    const ImportResult result = ImportForward("x: Tensor", body, {{2, 3}});
    EXPECT_EQ(Ports(result), "x -> output_0") << body;
    EXPECT_EQ(result.diagnostics.list().size(), 0u) << body << result.Text();
  }
}

TEST(TorchStatesTest, FirstValuesAreTold) {
  const ImportResult given =
      ImportForward("x: Tensor", "y = torch.add(self.w, x)\nself.w = y\nreturn y", {{2, 3}});
  EXPECT_THAT(given.Text(), HasSubstr("begins with attribute 'w' other than 0"));
  const ImportResult none =
      ImportForward("x: Tensor", "y = torch.add(x, self.n)\nself.n = y\nreturn y", {{2, 3}});
  EXPECT_EQ(Ports(none), "x, n -> n_out, output_0");
  EXPECT_THAT(none.Text(), HasSubstr("finds no tensor of [2,3] in attribute 'n'"));
}

TEST(TorchImportTest, PartsOfContainersAreInputs) {
  CompileOptions options;
  options.inputs = {
      {"1.1", {1, 2}}, {"0.0", {1, 2}}, {"0.1", {1, 2}}, {"1.0", {1, 2}}, {"2.gain", {1}}};
  options.const_inputs = {{"1.2", {3}, false, true}};
  const std::string parameters =
      "xs: List[Tensor], y: Tuple[Tensor, Tensor, int], d: Dict[str, Tensor]";
  const ImportResult result = ImportForward(
      parameters,
      "return {\"a\": torch.mul(torch.add(xs[1], y[1]), torch.mul(d[\"gain\"], y[2])), "
      "\"b\": (None, torch.sub(xs[0], y[0])), }",
      {}, options);
  EXPECT_EQ(Ports(result), "y_1, xs_0, xs_1, y_0, d_gain -> output_0, output_1");
  EXPECT_THAT(result.Run(0), ElementsAre(6, 4.5)) << result.Text();
  EXPECT_THAT(result.Run(1), ElementsAre(0, 0));

  options.inputs = {{"1.3", {1}}, {"0", {1}}, {"0.0", {1}}, {"2.a", {1}}};
  const ImportResult wrong = ImportForward(parameters, "return xs[0]", {}, options);
  EXPECT_THAT(wrong.Text(), HasSubstr("a part of input 1, 'y', which is of type Tuple of 3"));
  EXPECT_THAT(wrong.Text(), HasSubstr("INPUT_OPS names input 0.0 twice"));
  EXPECT_THAT(wrong.Text(), HasSubstr("input 1.0, 'y[0]', has no default"));
  EXPECT_FALSE(wrong.Has(DiagnosticKind::kInternalError));
}

TEST(TorchImportTest, InputsMustBeTensors) {
  const ImportResult list =
      ImportForward("xs: List[Tensor], y: Tuple[Tensor, Tensor]", "return xs[0]", {{1, 2}});
  EXPECT_TRUE(list.Has(DiagnosticKind::kTorchInputNotTensor)) << list.Text();
  EXPECT_THAT(list.Text(), HasSubstr("INPUT_OPS: {0.0: [1, 16]}"));
  EXPECT_EQ(list.diagnostics.error_count(), 2u);
  const ImportResult number = ImportForward("x: Tensor, rate: int", "return x", {{1, 2}});
  EXPECT_THAT(number.Text(), HasSubstr("'rate', is of type int"));
  const ImportResult many = ImportForward("x: Tensor", "return x", {{1, 2}, {1, 2}});
  EXPECT_TRUE(many.Has(DiagnosticKind::kInputNotInModel)) << many.Text();
  const ImportResult fallback =
      ImportForward("x: Tensor, y: Optional[Tensor]=None", "return x", {{1, 2}});
  EXPECT_TRUE(fallback.graph.ok()) << fallback.Text();
}

// Everything that a hostile archive may ask for ends, soon and with a diagnostic.
TEST(TorchHostileTest, EndlessAndHugeThingsEnd) {
  const std::vector<std::string> bodies = {
      "while True:\n  pass\nreturn x",
      "l = [x]\nwhile True:\n  l = torch.add(l, l)\nreturn x",
      "l = [x]\nwhile True:\n  l = [l, l]\nreturn x",
      "l = [1]\n_0 = torch.append(l, l)\nwhile True:\n  _1 = torch.eq(l, l)\nreturn x",
      "s = \"abc\"\nwhile True:\n  s = torch.add(s, s)\nreturn x",
      "s = \"ab\"\nfor i in range(19):\n  s = torch.add(s, s)\nwhile True:\n"
      "  n = torch.find(s, \"bb\")\nreturn x",
      "l = torch.list(range(1000000))\nwhile True:\n  n = torch.sum(l)\nreturn x",
      "return (self).forward(x, )",
      "y = x\nwhile True:\n  y = torch.add(y, y)\nreturn y",
      "y = x\nwhile True:\n  y = torch.cat([y, y], 0)\nreturn y",
      "y = x\nwhile True:\n  y = torch.slice(y, 0, 0, 1)\nreturn y",
      "y = torch.clone(x)\nwhile True:\n  _0 = torch.add_(torch.select(y, 1, 0), 1)\nreturn y",
      "return torch.zeros([1000000, 1000000])",
      "y = torch.ones([4096])\nwhile True:\n  y = torch.add(y, y)\nreturn x",
      "return torch.expand(x, [100000000, 2])",
      "return torch.repeat(x, [200000, 1000])",
      "while True:\n  y = torch.repeat(x, [200000, 1])\nreturn x",
      "return torch.pad(x, [1000000000, 1])",
      "return torch.upsample_nearest1d(torch.unsqueeze(x, 0), [1000000000], None)",
      "i = 1\nwhile True:\n  i = torch.mul(i, 3)\nreturn x",
      "for i in range(9223372036854775807):\n  pass\nreturn x",
      "a, b = torch.split(x, -1, 1)\nreturn a",
      "return torch.chunk(x, 9223372036854775807, 1)[0]",
      "return torch.slice(x, 1, -9223372036854775808, 9223372036854775807, 9223372036854775807)",
      "return torch.reshape(x, [-1, -1])",
      "return torch.reshape(x, [4611686018427387904, 4, -1])",
      "return torch.select(x, 9223372036854775807, 0)",
      "return torch.permute(x, [0, 0])",
  };
  for (const std::string& body : bodies) {
    const ImportResult result = ImportForward("x: Tensor", body, {{1, 2}});
    EXPECT_TRUE(result.graph.ok() || result.diagnostics.has_errors()) << body;
    EXPECT_FALSE(result.Has(DiagnosticKind::kInternalError)) << body << result.Text();
    EXPECT_LT(result.diagnostics.list().size(), 1001u) << body;
  }
}

}  // namespace
}  // namespace npuc::pt
