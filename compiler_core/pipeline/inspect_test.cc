#include "compiler_core/pipeline/inspect.h"

#include "compiler_core/config/config.h"
#include "compiler_core/config/starter_config.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

TEST(CoreFamiliesTest, EachCoreIsAStarterConfigs) {
  const ModelOutline outline = {.framework = Framework::kOnnx,
                                .inputs = {{"x", "x", "float32", {{1, 4}}}},
                                .outputs = {{"y", "y"}}};
  for (const CoreFamily& family : CoreFamilies()) {
    for (const std::string& core : family.cores) {
      const StarterConfig config = WriteStarterConfig(outline, {.core = core,
                                                                .model_path = "net.onnx",
                                                                .output_path = "net.h",
                                                                .config_path = "net.yaml"});
      Diagnostics diagnostics;
      const absl::StatusOr<ParsedConfig> parsed = ParseConfig(config.text, "net.yaml", diagnostics);
      ASSERT_TRUE(parsed.ok()) << parsed.status() << "\n" << config.text;
      EXPECT_EQ(parsed->options.core, core);
    }
  }
}

TEST(InspectTest, RefusesWhatIsNoModel) {
  for (const absl::string_view bytes :
       {absl::string_view(""), absl::string_view("CORENAME: GRUS\n"),
        absl::string_view("\x89HDF\r\n"), absl::string_view("\x0a\xff\x01", 3)}) {
    Diagnostics diagnostics;
    EXPECT_FALSE(InspectModel({.model_bytes = bytes, .model_name = "m"}, diagnostics).ok());
    EXPECT_TRUE(diagnostics.has_errors());
  }
}

}  // namespace
}  // namespace npuc
