#include "compiler_core/quant/kept/kept_scales.h"

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/ir/graph/text.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

// The ReLU reads the float value, which reaches further than the integers that the Quantize gives.
constexpr absl::string_view kReadAsFloatToo = R"(graph "m" {
  %x = Placeholder() : f32[2] @"x"
  %qx = Quantize(%x) {axis = -1, dtype = "i8", scale = [0.5], zero_point = [0]} : i8[2] @"x"
  %fx = Dequantize(%qx) {axis = -1, scale = [0.5], zero_point = [0]} : f32[2] @"x"
  %a = Neg(%fx) : f32[2] @"a"
  %qa = Quantize(%a) {axis = -1, dtype = "i8", scale = [0.125], zero_point = [0]} : i8[2] @"a"
  %fa = Dequantize(%qa) {axis = -1, scale = [0.125], zero_point = [0]} : f32[2] @"a"
  %b = Relu(%a) : f32[2] @"b"
  %qb = Quantize(%b) {axis = -1, dtype = "i8", scale = [0.5], zero_point = [0]} : i8[2] @"b"
  %fb = Dequantize(%qb) {axis = -1, scale = [0.5], zero_point = [0]} : f32[2] @"b"
  return %fa @"y", %fb @"z"
}
)";

TEST(KeepScales, AFloatReaderDoesNotReadSaturatedIntegers) {
  const absl::StatusOr<Graph> graph = ParseGraph(kReadAsFloatToo);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const absl::StatusOr<KeptScales> kept = KeepScales(*graph);
  ASSERT_TRUE(kept.ok()) << kept.status();
  const ValueId stored = kept->graph.outputs()[0].value;
  EXPECT_EQ(kept->plan.values.at(stored).scale[0], 0.125);
  int found = 0;
  for (const Node& node : kept->graph.nodes()) {
    if (node.op != Op::kRelu) continue;
    ++found;
    EXPECT_NE(node.inputs[0], stored);
    const auto params = kept->plan.values.find(node.inputs[0]);
    EXPECT_TRUE(params == kept->plan.values.end() || params->second.scale[0] != 0.125);
  }
  EXPECT_EQ(found, 1);
}

}  // namespace
}  // namespace npuc
