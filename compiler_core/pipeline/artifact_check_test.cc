#include "compiler_core/pipeline/artifact_check.h"

#include <string>

#include "compiler_core/emit/raw_file.h"
#include "compiler_core/emit/written_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using ::testing::HasSubstr;

bool IsGood(absl::string_view name, absl::string_view bytes) {
  return CheckArtifact(name, "net.h", bytes).ok();
}

TEST(CheckArtifact, Json) {
  EXPECT_TRUE(IsGood("report.json", "{\"a\": [1, 2]}"));
  for (const char* bad : {"", "{", "{\"a\": 1}x", "{\"a\": nan}", "\xff"}) {
    EXPECT_FALSE(IsGood("report.json", bad)) << bad;
  }
  // Deep nesting neither recurses nor is refused: nothing is built.
  EXPECT_TRUE(IsGood("a.json", std::string(1 << 20, '[') + std::string(1 << 20, ']')));
  const absl::Status status = CheckArtifact("report.json", "net.h", "{");
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("report.json"));
}

TEST(CheckArtifact, ModelFileAndHeader) {
  CompiledModel model;
  model.version = "1.0";
  model.model_md5 = std::string(32, 'a');
  model.npu_unit = "NPU32";
  model.core = "GRUS";
  model.inputs = {{"x", {1, 2}, DType::kFloat16, 0, -1}};
  model.outputs = {{"y", {1, 2}, DType::kFloat16, 0, -1}};
  model.cmd_content = {1, 2, 3, 4};
  model.data_bytes = 8;
  const std::string file = ModelFileBytes(model);
  ASSERT_TRUE(IsGood("net.npuc", file));
  for (size_t i = 0; i < file.size(); ++i) {
    std::string bad = file;
    bad[i] ^= 1;
    EXPECT_FALSE(IsGood("net.npuc", bad)) << i;
    EXPECT_FALSE(IsGood("net.npuc", file.substr(0, i))) << i;
  }
  Diagnostics diagnostics;
  const std::string header = *HeaderText(model, diagnostics);
  EXPECT_TRUE(IsGood("net.h", header)) << CheckArtifact("net.h", "net.h", header);
  EXPECT_FALSE(IsGood("net.h", header.substr(0, header.size() / 2)));
  EXPECT_FALSE(IsGood("net.h", ""));
  EXPECT_FALSE(IsGood("net.h", "int main() {}"));
  EXPECT_FALSE(IsGood("net.h", file));
}

TEST(CheckArtifact, FilesOfLeo) {
  CompiledModel model;
  model.version = "1.0";
  model.npu_unit = "NPU32";
  model.core = "LEO";
  model.inputs = {{"x", {1, 2}, DType::kFloat16, 0, -1}};
  model.outputs = {{"y", {1, 2}, DType::kFloat16, 0, -1}};
  model.cmd_content = {1, 2, 3, 4};
  model.data_bytes = 8;
  std::string raw;
  std::string json;
  ASSERT_TRUE(WriteRawFile(model, AppendTo(raw)).ok());
  ASSERT_TRUE(WriteRawJson(model, AppendTo(json)).ok());
  Diagnostics diagnostics;
  for (const std::string& bytes : {raw, json, *HeaderText(model, diagnostics)}) {
    EXPECT_TRUE(IsGood("net.h", bytes)) << CheckArtifact("net.h", "net.h", bytes);
    EXPECT_FALSE(IsGood("net.h", bytes.substr(0, bytes.size() / 2)));
  }
}

TEST(CheckArtifact, HeaderOfAnIntegerCore) {
  CompiledModel model;
  model.version = "1.0";
  model.model_md5 = std::string(32, 'a');
  model.core = "Z2_0901";
  model.command_set = CommandSet::kInteger;
  model.inputs = {{"x", {1, 2}, DType::kInt8, 0, -1, 0.5, 3}};
  model.outputs = {{"y", {1, 2}, DType::kInt8, 0, -1, 0.25, 0}};
  model.cmd_content = {1, 2, 3, 4};
  model.data_bytes = 8;
  Diagnostics diagnostics;
  const std::string header = *HeaderText(model, diagnostics);
  EXPECT_TRUE(IsGood("net.h", header)) << CheckArtifact("net.h", "net.h", header);
  for (size_t cut = 1; cut < 64; ++cut) {
    EXPECT_FALSE(IsGood("net.h", header.substr(0, header.size() - cut))) << cut;
  }
}

TEST(CheckArtifact, OtherNamesAreTheirOwn) { EXPECT_TRUE(IsGood("compile.log", "\xff\0x")); }

}  // namespace
}  // namespace npuc
