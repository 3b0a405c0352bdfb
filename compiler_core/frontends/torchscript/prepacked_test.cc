// Layers of models that optimize_for_mobile prepared: their weights lie in objects of the archive.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/frontends/torchscript/archive_test_util.h"
#include "compiler_core/frontends/torchscript/import.h"
#include "compiler_core/frontends/torchscript/import_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::pt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Imports `ops.prepacked.OPERATOR(x, p)`, where p is an object of that class with such a state.
ImportResult ImportPacked(const std::string& op, const std::string& class_name,
                          const PickleBuilder& state, const std::vector<int64_t>& shape) {
  const std::string tuple = state.Bytes().substr(2);  // without the protocol; "." is at the end
  PickleBuilder data;
  data.BeginObject("Net").String("p").Global("__torch__.torch.classes.xnnpack", class_name);
  data.Raw(")\x81(").Raw(tuple.substr(0, tuple.size() - 1)).Raw("tb").EndObject();
  ZipBuilder zip;
  zip.Stored("net/data.pkl", data.Bytes());
  zip.Stored("net/code/__torch__.py",
             absl::StrCat("class Net(Module):\n  p : __torch__.torch.classes.xnnpack.", class_name,
                          "\n  def forward(self, x: Tensor) -> Tensor:\n    _0 = ops.prepacked.",
                          op, "(x, self.p)\n    return _0\n"));
  zip.Stored("net/constants.pkl", NoConstants()).Stored("net/version", "3\n");
  zip.Stored("net/data/0", Floats(6))
      .Stored("net/data/1", Floats(4))
      .Stored("net/data/2", Floats(2));
  CompileOptions options;
  options.framework = Framework::kTorchScript;
  options.model_name = "net.ptl";
  options.core = "GRUS";
  options.inputs = {{"0", shape}};
  Diagnostics diagnostics;
  absl::StatusOr<Graph> graph = ImportTorchScript(zip.Bytes(), options, diagnostics);
  return {std::move(graph), std::move(diagnostics)};
}

// The weights 0, 1, 2 ..., as each layer's first item.
PickleBuilder LinearWeight() { return PickleBuilder().Tensor("Float", "0", 6, 0, {2, 3}, {3, 1}); }
PickleBuilder ConvWeight() {
  return PickleBuilder().Tensor("Float", "1", 4, 0, {1, 1, 2, 2}, {4, 4, 2, 1});
}

constexpr char kNone[] = "N";

// Input i of ImportResult::Run is -1, -0.75, -0.5 ...
TEST(PrepackedTest, LinearHasWeightBiasAndBounds) {
  const PickleBuilder state =
      LinearWeight().Tensor("Float", "2", 2, 0, {2}, {1}).Float(-2).Raw(kNone);
  const ImportResult result = ImportPacked("linear_clamp_run", "LinearOpContext", state, {1, 3});
  // [-1.75, -8.5] + [0, 1], at least -2.
  EXPECT_THAT(result.Run(), ElementsAre(-1.75, -2)) << result.Text();
}

TEST(PrepackedTest, WithoutBoundsNothingIsClamped) {
  const PickleBuilder state = LinearWeight().Raw(kNone).Raw(kNone).Raw(kNone);
  const ImportResult result = ImportPacked("linear_clamp_run", "LinearOpContext", state, {1, 3});
  EXPECT_THAT(result.Run(), ElementsAre(-1.75, -8.5)) << result.Text();
  ASSERT_TRUE(result.graph.ok());
  for (const Node& node : result.graph->nodes()) {
    EXPECT_NE(node.op, Op::kMaximum);
    EXPECT_NE(node.op, Op::kMinimum);
  }
}

TEST(PrepackedTest, ConvolutionHasItsWindow) {
  // Strides of 2 over an image of 2 x 2 with a row of pads on each side: one pixel for each result.
  PickleBuilder state = ConvWeight();
  state.Raw(kNone).Ints({2, 2}).Ints({1, 1}).Ints({1, 1}).Int(1).Float(-2).Float(-1);
  const ImportResult result =
      ImportPacked("conv2d_clamp_run", "Conv2dOpContext", state, {1, 1, 2, 2});
  // [-3, -1.5, -0.5, 0] in -2..-1.
  EXPECT_THAT(result.Run(), ElementsAre(-2, -1.5, -1, -1)) << result.Text();
}

TEST(PrepackedTest, TransposedConvolutionStatesDilationsBeforeGroups) {
  PickleBuilder state = ConvWeight();
  state.Raw(kNone).Ints({1, 1}).Ints({0, 0}).Ints({0, 0}).Ints({2, 2}).Int(1);
  state.Raw(kNone).Raw(kNone);
  const ImportResult result =
      ImportPacked("conv2d_transpose_clamp_run", "TransposeConv2dOpContext", state, {1, 1, 1, 1});
  EXPECT_THAT(result.Run(), ElementsAre(0, 0, -1, 0, 0, 0, -2, 0, -3)) << result.Text();
}

TEST(PrepackedTest, StatesOfOtherLayersAreRefused) {
  const PickleBuilder short_state = LinearWeight().Raw(kNone).Raw(kNone);
  const ImportResult linear =
      ImportPacked("linear_clamp_run", "LinearOpContext", short_state, {1, 3});
  EXPECT_TRUE(linear.Has(DiagnosticKind::kTorchTensorInvalid)) << linear.Text();
  EXPECT_THAT(linear.Text(), HasSubstr("holds no weights of such a layer"));
  const PickleBuilder of_linear = LinearWeight().Raw(kNone).Raw(kNone).Raw(kNone);
  const ImportResult conv =
      ImportPacked("conv2d_clamp_run", "Conv2dOpContext", of_linear, {1, 1, 2, 2});
  EXPECT_TRUE(conv.Has(DiagnosticKind::kTorchTensorInvalid)) << conv.Text();
}

TEST(PrepackedTest, UnknownLayersAreNamed) {
  const PickleBuilder state = LinearWeight().Raw(kNone).Raw(kNone).Raw(kNone);
  const ImportResult result = ImportPacked("conv9d_clamp_run", "Conv9dOpContext", state, {1, 3});
  EXPECT_TRUE(result.Has(DiagnosticKind::kUnsupportedOperator)) << result.Text();
  EXPECT_THAT(result.Text(), HasSubstr("conv9d_clamp_run"));
}

}  // namespace
}  // namespace npuc::pt
