// Quantized models: their weights lie in states that the archive's own code restores, or in objects
// of packed ones.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler_core/frontends/torchscript/archive_test_util.h"
#include "compiler_core/frontends/torchscript/import.h"
#include "compiler_core/frontends/torchscript/import_test_util.h"
#include "compiler_core/ops/op.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::pt {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;

// Six integers of 8 bits: 1, 2, 3, -1, -2, -3.
constexpr char kIntegers[] = "\x01\x02\x03\xff\xfe\xfd";

PickleBuilder& AddQuantized(PickleBuilder& pickle, const std::vector<int64_t>& sizes,
                            const std::vector<int64_t>& strides, double scale, int64_t zero_point) {
  pickle.Global("torch._utils", "_rebuild_qtensor").Raw("(").Storage("QInt8", "0", 6).Int(0);
  pickle.Ints(sizes).Ints(strides).Raw("(").Global("torch", "per_tensor_affine");
  pickle.Float(scale).Int(zero_point).Raw("t\x89");
  return pickle.Global("collections", "OrderedDict").Raw(")RtR");
}

// A net whose attribute `layer` is an object of `class_name` with this state, a tuple's items; its
// forward has these lines.
ImportResult Import(const std::string& class_name, const PickleBuilder& state,
                    const std::string& forward, const std::vector<int64_t>& shape) {
  const std::string items = state.Bytes().substr(2);  // without the protocol; "." is at the end
  PickleBuilder data;
  data.BeginObject("Net").String("layer").Raw(absl::StrCat("c", class_name, "\n"));
  data.Raw(")\x81(").Raw(items.substr(0, items.size() - 1)).Raw("tb").EndObject();
  std::string code =
      "class Layer(Module):\n  packed : Tensor\n"
      "  def __setstate__(self, state: Tuple[Tensor, Optional[Tensor]]) -> NoneType:\n"
      "    self.packed = ops.quantized.linear_prepack((state)[0], (state)[1])\n"
      "    return None\n"
      "class Net(Module):\n  layer : Layer\n  def forward(self, x: Tensor) -> Tensor:\n";
  for (const absl::string_view line : absl::StrSplit(forward, '\n')) {
    absl::StrAppend(&code, "    ", line, "\n");
  }
  ZipBuilder zip;
  zip.Stored("net/data.pkl", data.Bytes()).Stored("net/code/__torch__.py", code);
  zip.Stored("net/constants.pkl", NoConstants()).Stored("net/version", "3\n");
  zip.Stored("net/data/0", absl::string_view(kIntegers, 6));
  zip.Stored("net/data/1", Floats(2));
  zip.Stored("net/data/2",
             std::string("\x02\0\x01\0\x01\0\0\0\0\0\x01\0\x01\0\0\0\0\0\x01\0\0\0", 22));
  CompileOptions options;
  options.framework = Framework::kTorchScript;
  options.model_name = "net.pt";
  options.core = "GRUS";
  options.inputs = {{"0", shape}};
  Diagnostics diagnostics;
  absl::StatusOr<Graph> graph = ImportTorchScript(zip.Bytes(), options, diagnostics);
  return {std::move(graph), std::move(diagnostics)};
}

PickleBuilder LinearState(double scale = 0.5) {
  PickleBuilder state;
  AddQuantized(state, {2, 3}, {3, 1}, scale, 0);
  return state.Tensor("Float", "1", 2, 0, {2}, {1});
}

ImportResult ImportLinear(const std::string& forward, const PickleBuilder& state = LinearState()) {
  return Import("__torch__\nLayer", state, forward, {1, 3});
}

constexpr char kQuantizeInput[] = "q = torch.quantize_per_tensor(x, 0.5, 128, 13)\n";

// The inputs -1, -0.75, -0.5 are stored as -1, -1, -0.5; the bias is 0, 1.
TEST(QuantizedTest, LinearLayerIsRestoredAndComputed) {
  const ImportResult result = ImportLinear(
      absl::StrCat(kQuantizeInput, "y = ops.quantized.linear(q, self.layer.packed, 0.25, 128)\n",
                   "return torch.dequantize(y)"));
  EXPECT_THAT(result.Run(), ElementsAre(-2.25, 3.25)) << result.Text();
}

TEST(QuantizedTest, ResultsSaturate) {
  const ImportResult result = ImportLinear(
      absl::StrCat(kQuantizeInput, "y = ops.quantized.linear(q, self.layer.packed, 0.01, 128)\n",
                   "return torch.dequantize(y)"));
  EXPECT_THAT(result.Run(), ElementsAre(FloatEq(-1.28), FloatEq(1.27))) << result.Text();
}

TEST(QuantizedTest, ReluIsPartOfTheName) {
  const ImportResult result = ImportLinear(
      absl::StrCat(kQuantizeInput, "y = ops.quantized.linear_relu(q, self.layer.packed, 0.25, 0)\n",
                   "return torch.dequantize(y)"));
  EXPECT_THAT(result.Run(), ElementsAre(0, 3.25)) << result.Text();
}

TEST(QuantizedTest, LeakyReluIsNoRelu) {
  const ImportResult result = ImportLinear(
      absl::StrCat(kQuantizeInput, "y = ops.quantized.leaky_relu(q, 0.5, False, 0.25, 128)\n",
                   "return torch.dequantize(y)"));
  EXPECT_THAT(result.Run(), ElementsAre(-0.5, -0.5, -0.25)) << result.Text();
}

TEST(QuantizedTest, DynamicLayersComputeInFloat) {
  const ImportResult result =
      ImportLinear("return ops.quantized.linear_dynamic(x, self.layer.packed, True)");
  // -1 * 0.5 - 0.75 * 1 - 0.5 * 1.5 = -2, and 2 + 1.
  EXPECT_THAT(result.Run(), ElementsAre(-2, 3)) << result.Text();
}

TEST(QuantizedTest, OperatorsOfFloatsKeepTheOperandsParameters) {
  const ImportResult result =
      ImportLinear(absl::StrCat(kQuantizeInput, "y = torch.mean(torch.reshape(q, [3]), [0])\n",
                                "return torch.dequantize(y)"));
  // -2.5 / 3 in steps of 0.5.
  EXPECT_THAT(result.Run(), ElementsAre(-1)) << result.Text();
}

TEST(QuantizedTest, FunctionsHaveARangeOfTheirOwn) {
  const ImportResult result =
      ImportLinear(absl::StrCat(kQuantizeInput, "return torch.dequantize(torch.sigmoid(q))"));
  // 0.2689 and 0.3775 in steps of 1 / 256.
  EXPECT_THAT(result.Run(), ElementsAre(69.0 / 256, 69.0 / 256, 97.0 / 256)) << result.Text();
}

TEST(QuantizedTest, ScaleAndZeroPointAreNumbers) {
  const ImportResult result = ImportLinear(absl::StrCat(
      kQuantizeInput, "return torch.mul(x, torch.add(torch.q_scale(q), torch.q_zero_point(q)))"));
  EXPECT_THAT(result.Run(), ElementsAre(-128.5, -96.375, -64.25)) << result.Text();
}

TEST(QuantizedTest, PackedConvolutionsOfVersion2AreRead) {
  // A kernel of 1 x 1 over 3 channels, two results; data/2 has the settings.
  PickleBuilder state;
  state.String("2").Raw("](").Tensor("Short", "2", 11, 0, {11}, {1});
  AddQuantized(state, {2, 3, 1, 1}, {3, 1, 1, 1}, 0.5, 0).Raw("e](");
  state.Tensor("Float", "1", 2, 0, {2}, {1}).Raw("e");
  const ImportResult result =
      Import("__torch__.torch.classes.quantized\nConv2dPackedParamsBase", state,
             absl::StrCat(kQuantizeInput, "y = ops.quantized.conv2d(q, self.layer, 0.25, 128)\n",
                          "return torch.dequantize(y)"),
             {1, 3, 1, 1});
  EXPECT_THAT(result.Run(), ElementsAre(-2.25, 3.25)) << result.Text();
}

TEST(QuantizedTest, WeightsStayIntegers) {
  const ImportResult result = ImportLinear(
      absl::StrCat(kQuantizeInput, "y = ops.quantized.linear(q, self.layer.packed, 0.25, 128)\n",
                   "return torch.dequantize(y)"));
  ASSERT_TRUE(result.graph.ok()) << result.Text();
  bool has_weight = false;
  for (const Node& node : result.graph->nodes()) {
    if (node.op != Op::kDequantize) continue;
    has_weight |= result.graph->type(node.inputs[0]).dtype == DType::kInt8;
  }
  EXPECT_TRUE(has_weight);
}

TEST(QuantizedTest, OperatorsThatTorchLacksAreRefused) {
  const ImportResult result =
      ImportLinear(absl::StrCat(kQuantizeInput, "return torch.dequantize(torch.exp(q))"));
  EXPECT_TRUE(result.Has(DiagnosticKind::kUnsupportedOperatorMode)) << result.Text();
  EXPECT_THAT(result.Text(), HasSubstr("quantized tensor"));
}

TEST(QuantizedTest, FloatOperandsAreRefused) {
  const ImportResult result =
      ImportLinear("return ops.quantized.linear(x, self.layer.packed, 0.25, 128)");
  EXPECT_TRUE(result.Has(DiagnosticKind::kOperandMismatch)) << result.Text();
}

TEST(QuantizedTest, ObjectsOfOtherLayersAreRefused) {
  const ImportResult result = ImportLinear(
      absl::StrCat(kQuantizeInput, "return ops.quantized.conv2d(q, self.layer.packed, 0.25, 128)"));
  EXPECT_TRUE(result.Has(DiagnosticKind::kOperandMismatch)) << result.Text();
  EXPECT_THAT(result.Text(), HasSubstr("no weights of such a layer"));
}

TEST(QuantizedTest, ScalesMustBePositive) {
  const ImportResult weight = ImportLinear(
      "return ops.quantized.linear_dynamic(x, self.layer.packed, True)", LinearState(/*scale=*/0));
  EXPECT_TRUE(weight.Has(DiagnosticKind::kTorchQuantized)) << weight.Text();
  const ImportResult result =
      ImportLinear("return torch.dequantize(torch.quantize_per_tensor(x, -1., 0, 13))");
  EXPECT_FALSE(result.graph.ok());
}

}  // namespace
}  // namespace npuc::pt
