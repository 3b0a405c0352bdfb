#include "compiler_core/config/starter_config.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler_core/config/config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

ModelOutline Onnx(std::vector<ModelOutline::Port> inputs, std::vector<ModelOutline::Port> outputs) {
  return {
      .framework = Framework::kOnnx, .inputs = std::move(inputs), .outputs = std::move(outputs)};
}

StarterChoices Choices() {
  return {.core = "GRUS",
          .model_path = "nets/my net.onnx",
          .output_path = "net.h",
          .config_path = "net.yaml"};
}

ParsedConfig Parsed(const StarterConfig& config) {
  Diagnostics diagnostics;
  absl::StatusOr<ParsedConfig> parsed = ParseConfig(config.text, "net.yaml", diagnostics);
  EXPECT_TRUE(parsed.ok()) << parsed.status() << "\n" << config.text;
  return parsed.ok() ? *std::move(parsed) : ParsedConfig();
}

TEST(StatedShapeTest, ReadsNamesAndNumbers) {
  const absl::StatusOr<StatedShape> named = ParseStatedShape("a=b=1,40");
  ASSERT_TRUE(named.ok());
  EXPECT_EQ(named->name, "a=b");
  EXPECT_THAT(named->dims, ElementsAre(1, 40));
  EXPECT_THAT(ParseStatedShape("7")->dims, ElementsAre(7));
  for (const char* wrong : {"", "1,", "0", "-1", "1,x", "x=", "1,1,1,1,1,1,1,1,1"}) {
    EXPECT_FALSE(ParseStatedShape(wrong).ok()) << wrong;
  }
}

TEST(SettleInputsTest, TakesDimensionsAndConstants) {
  ModelOutline outline{.framework = Framework::kOnnx};
  outline.inputs = {{.key = "x", .name = "x", .dims = {{1, -1}}, .dim_names = {"", "time"}},
                    {.key = "sr", .name = "sr", .dims = {{-1, -1}}}};
  outline.data_file = "m.data";
  const StatedFacts stated{.dims = {{"time", "25"}}, .constants = {{"sr", "16000"}}};
  ASSERT_TRUE(SettleInputs(stated, outline).ok());
  const StarterConfig config = WriteStarterConfig(
      outline,
      {.core = "GRUS", .model_path = "nets/m.onnx", .output_path = "m.h", .config_path = "m.yaml"});
  EXPECT_TRUE(config.open.empty());
  EXPECT_THAT(config.text, HasSubstr("MODEL_BIN: nets/m.data\n"));
  EXPECT_THAT(config.text, HasSubstr("CONST_INPUTS: {sr: 16000}"));
  EXPECT_THAT(config.text, HasSubstr("  x: [1, 25]"));
  EXPECT_FALSE(SettleInputs({.dims = {{"tim", "25"}}}, outline).ok());
  EXPECT_FALSE(SettleInputs({.dims = {{"time", "0"}}}, outline).ok());
  EXPECT_FALSE(SettleInputs({.constants = {{"q", "1"}}}, outline).ok());
  EXPECT_FALSE(SettleInputs({.constants = {{"sr", "1}\nX: {"}}}, outline).ok());
  EXPECT_FALSE(ParseStatedValue("--dim", "25").ok());
}

TEST(HeaderNameTest, IsOneThatOutputFileTakes) {
  EXPECT_EQ(HeaderNameFor("net-1.0_a+b"), "net-1.0_a+b.h");
  EXPECT_EQ(HeaderNameFor("c_model (2)_default"), "c_model__2__default.h");
  EXPECT_EQ(HeaderNameFor(".hidden"), "_.hidden.h");
  EXPECT_EQ(HeaderNameFor(""), "_.h");
  EXPECT_EQ(HeaderNameFor(std::string(200, 'x')).size(), 100u);
}

TEST(SettleInputsTest, ANamedDimensionHasOneSize) {
  ModelOutline outline;
  outline.inputs = {
      {.key = "x", .name = "x", .dims = {{-1, -1}}, .dim_names = {"batch", "time"}},
      {.key = "h", .name = "h", .dims = {{2, -1, 64}}, .dim_names = {"", "batch", ""}}};
  ASSERT_TRUE(SettleInputs({.shapes = {{"x", {3, 512}}}}, outline).ok());
  EXPECT_EQ(*outline.inputs[1].dims, (std::vector<int64_t>{2, 3, 64}));
}

TEST(SettleInputsTest, TakesOneItemAndWhatIsStated) {
  ModelOutline outline = Onnx({{"x", "x", "float32", {{-1, 40}}},
                               {"s", "s", "float32", std::nullopt},
                               {"t", "t", "float32", {{-1, -1}}}},
                              {});
  ASSERT_TRUE(SettleInputs({.shapes = {{"s", {2, 3}}}}, outline).ok());
  EXPECT_THAT(*outline.inputs[0].dims, ElementsAre(1, 40));
  EXPECT_THAT(*outline.inputs[1].dims, ElementsAre(2, 3));
  EXPECT_THAT(*outline.inputs[2].dims, ElementsAre(-1, -1));
  EXPECT_THAT(outline.notes, ElementsAre(HasSubstr("'x'")));
  EXPECT_THAT(std::string(SettleInputs({.shapes = {{"q", {2}}}}, outline).message()),
              HasSubstr("no input of the model"));
  const std::vector<StatedShape> four(4, {"", {1}});
  EXPECT_THAT(std::string(SettleInputs({.shapes = four}, outline).message()),
              HasSubstr("more often"));
}

TEST(StarterConfigTest, ParsesToWhatTheModelStates) {
  const StarterConfig config = WriteStarterConfig(
      Onnx({{"a:0", "a:0", "float32", {{1, 4}}}, {"b \"c\"", "b", "float32", {{1}}}},
           {{"yes", "yes"}, {"out/y", "out/y"}}),
      Choices());
  EXPECT_THAT(config.open, IsEmpty());
  const ParsedConfig parsed = Parsed(config);
  ASSERT_EQ(parsed.options.inputs.size(), 2u);
  EXPECT_EQ(parsed.options.inputs[0].name, "a:0");
  EXPECT_THAT(parsed.options.inputs[0].shape, ElementsAre(1, 4));
  EXPECT_EQ(parsed.options.inputs[1].name, "b \"c\"");
  EXPECT_THAT(parsed.options.outputs, ElementsAre("yes", "out/y"));
  EXPECT_EQ(parsed.files[0].path, "nets/my net.onnx");
  EXPECT_EQ(parsed.options.framework, Framework::kOnnx);
}

TEST(StarterConfigTest, LeavesOutNamesThatAConfigCannotWrite) {
  const std::string not_utf8 = "\xff";
  for (const std::string& name : {std::string("a:b"), std::string("a\nb"), not_utf8}) {
    const StarterConfig config =
        WriteStarterConfig(Onnx({{name, name, "float32", {{1, 4}}}}, {{name, name}}), Choices());
    const ParsedConfig parsed = Parsed(config);
    EXPECT_THAT(parsed.options.inputs, IsEmpty());
    EXPECT_THAT(parsed.options.outputs, IsEmpty());
  }
  // NAME is NAME:0 to a config.
  const StarterConfig twice = WriteStarterConfig(
      Onnx({{"x", "x", "float32", {{1}}}, {"x:0", "x:0", "float32", {{1}}}}, {}), Choices());
  EXPECT_THAT(Parsed(twice).options.inputs, IsEmpty());
}

TEST(StarterConfigTest, MarksWhatOnlyTheUserKnows) {
  ModelOutline torch{.framework = Framework::kTorchScript,
                     .inputs = {{.key = "0", .name = "x"},
                                {.key = "1",
                                 .name = "rate",
                                 .type = "int",
                                 .may_be_left_out = true,
                                 .is_tensor = false}}};
  const StarterConfig config = WriteStarterConfig(torch, Choices());
  EXPECT_THAT(config.open, ElementsAre(HasSubstr("input 'x'")));
  EXPECT_THAT(config.text, HasSubstr("  0: [FILL_IN]  # x, write numbers"));
  Diagnostics diagnostics;
  EXPECT_FALSE(ParseConfig(config.text, "net.yaml", diagnostics).ok());
  EXPECT_THAT(diagnostics.ToStatus().message(), HasSubstr("FILL_IN"));
  torch.inputs[0].dims = {{1, 16}};
  EXPECT_EQ(Parsed(WriteStarterConfig(torch, Choices())).options.inputs.size(), 1u);
}

TEST(StarterConfigTest, HasATemplateOfCalibrationData) {
  StarterChoices choices = Choices();
  choices.core = "X2_1204";
  choices.needs_calibration = true;
  const StarterConfig config =
      WriteStarterConfig(Onnx({{"x", "x", "float32", {{1, 4}}}}, {{"y", "y"}}), choices);
  EXPECT_THAT(config.text, HasSubstr("#   calibration_data: samples.npy   # float32 [N, 4]"));
  EXPECT_FALSE(Parsed(config).options.quant.has_value());
  std::string with;  // as a user would complete it
  for (const absl::string_view line : {"# QUANT:", "#   calibration_data: samples.npy"}) {
    EXPECT_THAT(config.text, HasSubstr(std::string(line)));
    with += std::string(line.substr(2)) + "\n";
  }
  EXPECT_TRUE(Parsed({config.text + with, {}}).options.quant.has_value());
}

// The QUANT lines of the config for a model of so many inputs, as a user would complete them.
ParsedConfig WithCalibrationData(int inputs, const std::string& core = "X2_1204") {
  StarterChoices choices = Choices();
  choices.core = core;
  choices.needs_calibration = true;
  std::vector<ModelOutline::Port> ports;
  for (int i = 0; i < inputs; ++i) {
    ports.push_back({absl::StrCat("x", i), absl::StrCat("x", i), "float32", {{1, 4}}});
  }
  StarterConfig config = WriteStarterConfig(Onnx(ports, {{"y", "y"}}), choices);
  const size_t quant = config.text.find("# QUANT:");
  const size_t end = config.text.find("\n\n", quant);
  std::string lines = config.text.substr(quant, end - quant);
  lines = absl::StrReplaceAll(absl::StrCat("\n", lines), {{"\n# ", "\n"}});
  config.text.replace(quant, end - quant, lines);
  return Parsed(config);
}

TEST(StarterConfigTest, CalibrationDataOfManyInputsCompiles) {
  for (const int inputs : {2, 11, 15}) {
    EXPECT_EQ(WithCalibrationData(inputs).options.quant->calibration_inputs.size(),
              static_cast<size_t>(inputs));
  }
  // More than files may be named: one file has them all.
  EXPECT_EQ(WithCalibrationData(16).options.quant->calibration_inputs.size(), 1u);
}

TEST(StarterConfigTest, HasThePresetWhereItHasAnEffect) {
  const auto strategy = [](const std::string& core) {
    return WithCalibrationData(1, core).options.quant->activation_strategy;
  };
  EXPECT_FALSE(strategy("X2_1204") == QuantOptions().activation_strategy);
  EXPECT_TRUE(strategy("APUS") == QuantOptions().activation_strategy);
}

}  // namespace
}  // namespace npuc
