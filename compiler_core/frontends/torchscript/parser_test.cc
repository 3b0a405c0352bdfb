#include "compiler_core/frontends/torchscript/parser.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace npuc::pt {
namespace {

// "LINE:COLUMN MESSAGE", or "" where the source parses.
std::string ErrorOf(const std::string& source) {
  CodeError error;
  const auto file = ParseCode(source, {}, error);
  EXPECT_EQ(file == nullptr, !error.message.empty());
  return error.message.empty() ? ""
                               : absl::StrCat(error.line, ":", error.column, " ", error.message);
}

// The statements of a function with this body.
std::vector<Stmt> BodyOf(const std::string& body) {
  static std::vector<std::unique_ptr<std::string>> sources;  // views of the tree look into them
  sources.push_back(std::make_unique<std::string>("def f(x):\n" + body));
  CodeError error;
  auto file = ParseCode(*sources.back(), {}, error);
  EXPECT_NE(file, nullptr) << error.line << ":" << error.column << " " << error.message;
  return file == nullptr ? std::vector<Stmt>() : std::move(file->functions[0].body);
}

TEST(ParserTest, ClassesWithAttributesAndMethods) {
  const std::string source = R"(class Net(Module):
  __parameters__ = ["weight", ]
  __buffers__ = []
  weight : Tensor
  bias : Optional[Tensor]
  __annotations__["0"] = __torch__.torch.nn.modules.conv.___torch_mangle_3.Conv2d
  stride : Final[Tuple[int, int]] = (1, 1)
  def forward(self: __torch__.Net,
    x: Tensor,
    y: Optional[Tensor]=None,
    *,
    scale: float=1.0000000000000001e-05) -> Tuple[Tensor, Tensor]:
    return (x, y)
  def __len__(self: __torch__.Net) -> int:
    return 4
def relu(input: Tensor,
    inplace: bool=False) -> Tensor:
  return torch.relu(input)
)";
  CodeError error;
  const auto file = ParseCode(source, {}, error);
  ASSERT_NE(file, nullptr) << error.message;
  ASSERT_EQ(file->classes.size(), 1u);
  const ClassDef& net = file->classes[0];
  EXPECT_EQ(net.name, "Net");
  EXPECT_EQ(net.base, "Module");
  ASSERT_EQ(net.attributes.size(), 6u);
  EXPECT_EQ(net.attributes[4].name, "0");
  EXPECT_EQ(net.attributes[5].name, "stride");
  EXPECT_NE(net.attributes[5].value, nullptr);
  ASSERT_EQ(net.methods.size(), 2u);
  const FunctionDef& forward = net.methods[0];
  ASSERT_EQ(forward.parameters.size(), 4u);
  EXPECT_EQ(forward.parameters[2].fallback->text, "None");
  EXPECT_TRUE(forward.parameters[3].keyword_only);
  EXPECT_DOUBLE_EQ(forward.parameters[3].fallback->real, 1e-5);
  ASSERT_EQ(file->functions.size(), 1u);
  EXPECT_EQ(file->functions[0].name, "relu");
}

TEST(ParserTest, Assignments) {
  const std::vector<Stmt> body = BodyOf(
      "  a, b, = torch.split(x, 4, 1)\n"
      "  h, c = h0, c0\n"
      "  y : Optional[Tensor] = None\n"
      "  self.state = y\n"
      "  z, = (a,)\n");
  ASSERT_EQ(body.size(), 5u);
  EXPECT_EQ(body[0].targets.size(), 2u);
  EXPECT_TRUE(body[0].is_unpacking);
  EXPECT_EQ(body[1].value->kind, ExprKind::kTuple);
  EXPECT_FALSE(body[2].is_unpacking);
  EXPECT_EQ(body[3].targets[0]->kind, ExprKind::kAttribute);
  EXPECT_TRUE(body[4].is_unpacking);
  EXPECT_EQ(body[4].targets.size(), 1u);
}

TEST(ParserTest, ControlFlow) {
  const std::vector<Stmt> body = BodyOf(
      "  if torch.__is__(x, None):\n"
      "    pass\n"
      "  elif x:\n"
      "    y = 1\n"
      "  else:\n"
      "    y = 2\n"
      "  for _0 in range(torch.len(x)):\n"
      "    i = torch.__derive_index(_0, 0, 2)\n"
      "  _1 = True\n"
      "  while _1:\n"
      "    break\n"
      "  with _2 as _3:\n"
      "    continue\n"
      "  # a comment\n"
      "  raise ValueError(\"no\")\n"
      "  return\n");
  ASSERT_EQ(body.size(), 7u);
  EXPECT_EQ(body[0].kind, StmtKind::kIf);
  ASSERT_EQ(body[0].orelse.size(), 1u);
  EXPECT_EQ(body[0].orelse[0].orelse.size(), 1u);
  EXPECT_EQ(body[1].kind, StmtKind::kFor);
  EXPECT_EQ(body[3].kind, StmtKind::kWhile);
  EXPECT_EQ(body[4].kind, StmtKind::kWith);
  EXPECT_EQ(body[5].kind, StmtKind::kRaise);
  EXPECT_EQ(body[6].value, nullptr);
}

TEST(ParserTest, Expressions) {
  const std::vector<Stmt> body = BodyOf(
      "  a = 1 + 2 * 3 ** 2 - -x[0]\n"
      "  b = not x and y or z\n"
      "  c = x if y else z\n"
      "  d = {\"k\": 1, \"l\": [1., .5, 1e3], }\n"
      "  e = x[1:2, :, ::2]\n"
      "  f = (self).forward(x, alpha=2, )\n"
      "  g = x is not None\n"
      "  h = y not in (1, 2)\n"
      "  i = \"a\\n\\\"\\303\\244\"\n"
      "  j = annotate(List[Tensor], [])\n");
  ASSERT_EQ(body.size(), 10u);
  EXPECT_EQ(body[0].value->text, "-");
  EXPECT_EQ(body[0].value->children[0]->text, "+");
  EXPECT_EQ(body[1].value->text, "or");
  EXPECT_EQ(body[2].value->kind, ExprKind::kTernary);
  EXPECT_EQ(body[3].value->children.size(), 4u);
  EXPECT_EQ(body[4].value->children[1]->children[2]->kind, ExprKind::kSlice);
  EXPECT_EQ(body[5].value->keywords.size(), 1u);
  EXPECT_EQ(body[6].value->text, "is not");
  EXPECT_EQ(body[7].value->text, "not in");
  EXPECT_EQ(body[8].value->string, "a\n\"\303\244");
  EXPECT_EQ(body[9].value->kind, ExprKind::kCall);
}

TEST(ParserTest, ErrorsNameTheirPlace) {
  EXPECT_EQ(ErrorOf("x = 1\n"), "1:1 expected a class or a function, found 'x'");
  EXPECT_EQ(ErrorOf("def f(x):\n  y = = 2\n"), "2:7 expected an expression, found '='");
  EXPECT_EQ(ErrorOf("def f(x):\nreturn x\n"), "2:1 expected an indented block, found 'return'");
  EXPECT_EQ(ErrorOf("def f(x):\n  y = (1, 2\n"), "3:1 expected ')', found the end of the line");
  EXPECT_EQ(ErrorOf("def f(x):\n  y = \"abc\n"), "2:7 a string that does not end on its line");
  EXPECT_EQ(ErrorOf("def f(x):\n\ty = 1\n"), "2:1 a tab in the indentation; torch writes spaces");
  EXPECT_EQ(ErrorOf("def f(x):\n    y = 1\n  z = 2\n"), "3:3 the indentation matches no block");
  EXPECT_EQ(ErrorOf("def f(x):\n  y = 1$\n"), "2:8 character '$' is not part of TorchScript");
  EXPECT_EQ(ErrorOf("def f(x):\n  1 = y\n"),
            "2:7 the left side of the assignment is neither a name nor a place");
  EXPECT_EQ(ErrorOf("def f(x):\n  y = \"\\q\"\n"), "2:7 a string with a malformed escape");
  EXPECT_EQ(ErrorOf("def f(x):\n  y = 12abc\n"), "2:9 a number runs into a name");
}

TEST(ParserTest, DepthIsBounded) {
  const auto nested = [](const std::string& open, const std::string& close, int times) {
    std::string text = "def f(x):\n  y = ";
    for (int i = 0; i < times; ++i) text += open;
    text += "x";
    for (int i = 0; i < times; ++i) text += close;
    return text + "\n";
  };
  EXPECT_EQ(ErrorOf(nested("(", ")", 100)), "");
  for (const auto& [open, close] : std::vector<std::pair<std::string, std::string>>{{"(", ")"},
                                                                                    {"[", "]"},
                                                                                    {"-", ""},
                                                                                    {"not ", ""},
                                                                                    {"f(", ")"},
                                                                                    {"{1:", "}"},
                                                                                    {"1 + (", ")"},
                                                                                    {"1 ** ", ""},
                                                                                    {"", ".a"},
                                                                                    {"", "[0]"},
                                                                                    {"", " + 1"},
                                                                                    {"", "()"}}) {
    EXPECT_NE(ErrorOf(nested(open, close, 100000)).find("nested deeper than 200"),
              std::string::npos)
        << open << close;
  }
  std::string blocks = "def f(x):\n";
  std::string elifs = "def f(x):\n  if x:\n    pass\n";
  for (int i = 1; i < 500; ++i) {
    blocks += std::string(static_cast<size_t>(i) * 2, ' ') + "if x:\n";
    elifs += "  elif x:\n    pass\n";
  }
  EXPECT_NE(ErrorOf(blocks).find("nested deeper than 128"), std::string::npos);
  EXPECT_NE(ErrorOf(elifs).find("more than 128 branches"), std::string::npos);
  CodeLimits limits;
  limits.tokens = 100;
  CodeError error;
  EXPECT_EQ(ParseCode("def f(x):\n  y = 1\n" + std::string(200, '('), limits, error), nullptr);
  EXPECT_TRUE(error.is_limit);
}

TEST(ParserTest, LowestInteger) {
  const std::vector<Stmt> body = BodyOf("  y = -9223372036854775808\n  z = 9223372036854775807\n");
  ASSERT_EQ(body.size(), 2u);
  EXPECT_EQ(body[1].value->integer, INT64_MAX);
}

}  // namespace
}  // namespace npuc::pt
