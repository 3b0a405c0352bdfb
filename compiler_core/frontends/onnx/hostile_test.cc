#include "absl/strings/str_cat.h"
#include "compiler_core/frontends/onnx/import.h"
#include "compiler_core/frontends/onnx/test_util.h"
#include "compiler_core/ops/op.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "npuc/fe/onnx/model.pb.h"

namespace npuc::onnx {
namespace {

using ::testing::HasSubstr;

std::string SmallNet() {
  ModelBuilder b;
  b.Input("x", {1, 1, 4, 4}).Floats("w", {2, 1, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}).Output("y");
  b.Node("Conv", {"x", "w"}, {"c"}).Ints("pads", {1, 1, 0, 0}).Node("Relu", {"c"}, {"r"});
  b.Node("GlobalAveragePool", {"r"}, {"y"});
  return b.Bytes();
}

TEST(OnnxHostileTest, EveryTruncationIsRefusedOrRead) {
  const std::string bytes = SmallNet();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const ImportResult result = RunImport(bytes.substr(0, size));
    EXPECT_EQ(result.graph.ok(), !result.diagnostics.has_errors()) << size;
    EXPECT_FALSE(absl::IsInternal(result.graph.status())) << size << ": " << result.Text();
  }
}

TEST(OnnxHostileTest, EveryFlippedByteIsRefusedOrRead) {
  const std::string bytes = SmallNet();
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const unsigned char flip : {0x01, 0x80, 0xff}) {
      std::string mutant = bytes;
      mutant[at] = static_cast<char>(static_cast<unsigned char>(mutant[at]) ^ flip);
      const ImportResult result = RunImport(mutant);
      EXPECT_FALSE(absl::IsInternal(result.graph.status())) << at << ": " << result.Text();
    }
  }
}

TEST(OnnxHostileTest, RefusesWhatIsNoModel) {
  EXPECT_EQ(RunImport("").CountOf(DiagnosticKind::kEmptyModel), 1);
  const ImportResult zip = RunImport(std::string("PK\x03\x04zipzip", 10));
  EXPECT_EQ(zip.CountOf(DiagnosticKind::kNotAnOnnxModel), 1);
  EXPECT_THAT(zip.Text(), HasSubstr("zip archive"));
}

TEST(OnnxHostileTest, RefusesOtherOperatorSets) {
  ModelBuilder b(99);
  EXPECT_EQ(RunImport(b.Bytes()).CountOf(DiagnosticKind::kOnnxOpset), 1);
}

TEST(OnnxHostileTest, RefusesCyclesAndDoubleProducers) {
  ModelBuilder cycle;
  cycle.Output("a").Node("Relu", {"b"}, {"a"}).Node("Neg", {"a"}, {"b"});
  EXPECT_EQ(RunImport(cycle.Bytes()).CountOf(DiagnosticKind::kGraphCycle), 1);
  ModelBuilder twice;
  twice.Input("x", {1}).Output("y").Node("Relu", {"x"}, {"y"}).Node("Neg", {"x"}, {"y"});
  EXPECT_EQ(RunImport(twice.Bytes()).CountOf(DiagnosticKind::kOnnxDuplicateTensor), 1);
}

TEST(OnnxHostileTest, RefusesHugeShapesBeforeAllocating) {
  ModelBuilder b;
  b.Output("y").Int64s("s", {1 << 20, 1 << 20}).Node("ConstantOfShape", {"s"}, {"y"});
  EXPECT_TRUE(RunImport(b.Bytes()).diagnostics.has_errors());
  ModelBuilder wide;
  wide.Input("x", {int64_t{1} << 40}).Output("y").Node("Relu", {"x"}, {"y"});
  EXPECT_EQ(RunImport(wide.Bytes()).CountOf(DiagnosticKind::kInputShapeConflict), 1);
}

TEST(OnnxHostileTest, RefusesExternalDataByName) {
  ModelBuilder b;
  b.Output("w").Floats("w", {2}, {});
  auto* entry = b.proto().mutable_graph()->mutable_initializer(0)->add_external_data();
  entry->set_key("location");
  entry->set_value("/etc/passwd");
  const ImportResult result = RunImport(b.Bytes());
  EXPECT_EQ(result.CountOf(DiagnosticKind::kOnnxExternalData), 1);
  EXPECT_THAT(result.Text(), HasSubstr("/etc/passwd"));
}

TEST(OnnxHostileTest, ReadsExternalDataWithinItsFile) {
  const std::string file("....\0\0\x80\x3f\0\0\0\x40", 12);
  const ViewSource bytes(file);
  const auto text = [&](const std::string& name, const std::string& offset,
                        const std::string& length) {
    ModelBuilder b;
    b.Output("y").Floats("w", {2}, {}).Node("Neg", {"w"}, {"y"});
    auto* w = b.proto().mutable_graph()->mutable_initializer(0);
    for (const auto& [key, value] :
         {std::pair("location", name), std::pair("offset", offset), std::pair("length", length)}) {
      if (value.empty()) continue;
      auto* entry = w->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    Diagnostics diagnostics;
    CompileOptions options;
    options.model_name = "test.onnx";
    const auto graph = ImportOnnx(b.Bytes(), options, diagnostics, {"w.bin", &bytes});
    if (!graph.ok()) return ImportResult{graph.status(), std::move(diagnostics)}.Text();
    const auto y = RunReference(*graph, {});
    return y.ok() ? absl::StrCat((*y)[0].at(0), " ", (*y)[0].at(1)) : std::string();
  };
  EXPECT_EQ(text("w.bin", "4", "8"), "-1 -2");
  EXPECT_EQ(text("w.bin", "4", ""), "-1 -2");
  EXPECT_THAT(text("v.bin", "4", "8"), HasSubstr("and MODEL_BIN is 'w.bin'"));
  EXPECT_THAT(text("../w.bin", "4", "8"), HasSubstr("NPUC1182"));
  EXPECT_THAT(text("w.bin", "5", ""), HasSubstr("in a file of 12"));
  EXPECT_THAT(text("w.bin", "9223372036854775807", ""), HasSubstr("in a file of 12"));
  EXPECT_THAT(text("w.bin", "-1", ""), HasSubstr("no number of bytes"));
  EXPECT_THAT(text("w.bin", "4", "4"), HasSubstr("stated as 4 bytes"));
}

TEST(OnnxHostileTest, DeepChainsNeedNoStack) {
  ModelBuilder b;
  b.Input("t0", {1}).Output("t50000");
  for (int i = 0; i < 50000; ++i) {
    b.Node("Relu", {absl::StrCat("t", i)}, {absl::StrCat("t", i + 1)});
  }
  EXPECT_TRUE(RunImport(b.Bytes()).graph.ok());
}

}  // namespace
}  // namespace npuc::onnx
