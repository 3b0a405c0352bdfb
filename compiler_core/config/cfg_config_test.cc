#include "compiler_core/config/cfg_config.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/config/config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using ::testing::ElementsAreArray;

std::vector<std::string> Problems(absl::string_view text) {
  Diagnostics diagnostics;
  const bool ok = ParseConfig(text, "c.cfg", diagnostics).ok();
  EXPECT_EQ(ok, !diagnostics.has_errors());
  std::vector<std::string> list;
  for (const Diagnostic& diagnostic : diagnostics.list()) list.push_back(diagnostic.ToString());
  return list;
}

// Both texts mean the same.
void ExpectSame(absl::string_view cfg, absl::string_view yaml) {
  Diagnostics diagnostics;
  const auto a = ParseConfig(cfg, "c.cfg", diagnostics);
  const auto b = ParseConfig(yaml, "c.yaml", diagnostics);
  ASSERT_TRUE(a.ok()) << a.status();
  ASSERT_TRUE(b.ok()) << b.status();
  EXPECT_EQ(CanonicalOptions(a->options), CanonicalOptions(b->options));
  EXPECT_EQ(a->output_path, b->output_path);
  ASSERT_EQ(a->files.size(), b->files.size());
  for (size_t i = 0; i < a->files.size(); ++i) {
    EXPECT_EQ(a->files[i].role, b->files[i].role);
    EXPECT_EQ(a->files[i].path, b->files[i].path);
    EXPECT_GT(a->files[i].line, 0);
  }
}

constexpr char kGood[] =
    "[Common]\nmode = build\n[Parser]\nmodel_type = TFLite\ninput_model = m.tflite\n"
    "model_name = m\n";

TEST(CfgConfigTest, AnIrIsNamedByItsTwoFiles) {
  ExpectSame(
      "[Common]\nmode = build\n[Parser]\nmodel_type = Compass\nmodel_name = m\n"
      "input_model = ir/m.txt\ninput_bin = ir/w.bin\n",
      "CORENAME: X2_1204\nFRAMEWORK: COMPASS\nMODEL_FILE: ir/m.txt\nMODEL_BIN: ir/w.bin\n"
      "OUTPUT_FILE: m.h\n");
}

TEST(CfgConfigTest, MeansWhatTheYamlMeans) {
  ExpectSame(R"(# aipubuild

[Common]
mode=build
[Parser]
model_type = tensorflow
model_name = net
input_model = ../models/net.pb
input = x:0, state
input_shape = [1,4, 8], [1,3]
output = y, z
force_float_ir = false

[Optimizer]
calibration_data = data/x.npz
calibration_batch_size = 16
dataset = numpydataset
weight_bits = 8
activation_bits : 16
quantize_method_for_weight = per_channel_symmetric_restricted_range
trim_infinity_before_statistic = (-10, 10):clip
mixed_precision_auto_search = 1,0.02,L
global_calibration = equalization, adaround
fake_quant_operators_for_debug = Softmax
[GBuilder]
; the target
target = Z2_1004
outputs = out/net.h
)",
             R"(CORENAME: Z2_1004
FRAMEWORK: TF
MODEL_FILE: ../models/net.pb
OUTPUT_FILE: out/net.h
INPUT_OPS: {"x:0": [1, 4, 8], state: [1, 3]}
OUTPUT_OPS: [y, z]
QUANT:
  force_float_ir: false
  calibration_data: data/x.npz
  calibration_batch_size: 16
  dataset: numpy
  weight_bits: 8
  activation_bits: 16
  quantize_method_for_weight: per_channel_symmetric_restricted_range
  trim_infinity_before_statistic: (-10, 10):clip
  mixed_precision_auto_search: 1,0.02,L
  global_calibration: [equalization, adaround]
  fake_quant_operators_for_debug: [Softmax]
)");
}

TEST(CfgConfigTest, DefaultsAndLineEnds) {
  ExpectSame("\xef\xbb\xbf[Parser]\r\nmodel_type=ONNX\r\nmodel_name=kws\r\ninput_model=m.onnx\r\n",
             "CORENAME: X2_1204\nFRAMEWORK: ONNX\nMODEL_FILE: m.onnx\nOUTPUT_FILE: kws.h\n");
}

TEST(CfgConfigTest, IsToldByItsFirstLine) {
  EXPECT_TRUE(IsCfgConfig("[Common]"));
  EXPECT_TRUE(IsCfgConfig("; c\n\n# d\n  [Parser]\n"));
  EXPECT_FALSE(IsCfgConfig(""));
  EXPECT_FALSE(IsCfgConfig("# [Common]\nCORENAME: GRUS\n[Common]\n"));
  EXPECT_FALSE(IsCfgConfig("[1, 2]"));
  EXPECT_FALSE(IsCfgConfig("[]"));
}

TEST(CfgConfigTest, SaysWhatACfgCallsTheKeysOfMessages) {
  Diagnostics diagnostics;
  AddCfgWords("job.cfg", diagnostics);
  EXPECT_TRUE(diagnostics.list().empty());
  diagnostics.Add({.kind = DiagnosticKind::kUnsupportedOperator,
                   .message = "MY_OUTPUT_OPS is no key",
                   .fix = "begin the model behind it with INPUT_OPS: {'t': [shape]}"});
  AddCfgWords("job.cfg", diagnostics);
  ASSERT_EQ(diagnostics.list().size(), 2u);
  EXPECT_EQ(
      diagnostics.list()[1].ToString(),
      "job.cfg: note: the messages name keys of a YAML config; in a .cfg INPUT_OPS is input of "
      "[Parser] and input_shape of [Parser] [NPUC1012]");
}

struct Case {
  std::string text;
  std::vector<std::string> problems;
};

TEST(CfgConfigTest, Malformed) {
  const std::vector<Case> cases = {
      {"[Common]\n",
       {"c.cfg: [Parser] model_type is missing: the model's format; add a line like model_type = "
        "TFLite [NPUC1005]",
        "c.cfg: [Parser] input_model is missing: the model; add a line like input_model = "
        "model.tflite [NPUC1005]",
        "c.cfg: [Parser] model_name is missing: it names the result where [GBuilder] has no "
        "outputs; add a line like model_name = kws [NPUC1005]"}},
      {absl::StrCat(kGood, "[Optimiser]\nwhatever\nweight_bits = 99\n"),
       {"c.cfg:7:1: unknown section 'Optimiser'; did you mean 'Optimizer'? [NPUC1003]",
        "c.cfg:8:1: not a well-formed .cfg file: 'whatever' is no KEY = VALUE; write KEY = VALUE "
        "[NPUC1001]"}},
      {absl::StrCat(kGood, "[Optimizer]\nweigth_bits = 8\n"),
       {"c.cfg:8:1: [Optimizer]: unknown key 'weigth_bits'; did you mean 'weight_bits'? "
        "[NPUC1003]"}},
      {absl::StrCat(kGood, "weight_bits = 8\ntarget = X2_1204\n"),
       {"c.cfg:7:1: [Parser]: unknown key 'weight_bits'; it is a key of [Optimizer] [NPUC1003]",
        "c.cfg:8:1: [Parser]: unknown key 'target'; it is a key of [GBuilder] [NPUC1003]"}},
      {absl::StrCat(kGood, "[Optimizer]\nweight_bits = 3\n"),
       {"c.cfg:8:15: QUANT: weight_bits is '3'; allowed: 4 to 16; write one of these [NPUC1007]"}},
      {absl::StrCat(kGood, "model_name = n\n[Parser]\nmodel_name = o\n"),
       {"c.cfg:7:1: key 'Parser.model_name' is given twice, first on line 6; keep one of the two "
        "[NPUC1004]",
        "c.cfg:8:1: section '[Parser]' is given twice, first on line 3; keep one of the two "
        "[NPUC1004]"}},
      {absl::StrCat(kGood, "[Common\nmodel_name\n = 3\n  input = x\n"),
       {"c.cfg:7:1: not a well-formed .cfg file: section '[Common' is not closed; write [Section] "
        "[NPUC1001]",
        "c.cfg:8:1: not a well-formed .cfg file: 'model_name' is no KEY = VALUE; write KEY = VALUE "
        "[NPUC1001]",
        "c.cfg:9:2: not a well-formed .cfg file: a line that begins with a space would go on with "
        "the line above; write each value on one line [NPUC1001]",
        "c.cfg:10:3: not a well-formed .cfg file: a line that begins with a space would go on with "
        "the line above; write each value on one line [NPUC1001]"}},
      {absl::StrCat(kGood, "input =\n"),
       {"c.cfg:7:1: input has no value; write KEY = VALUE [NPUC1006]"}},
      {absl::StrCat(kGood, "input = a, b\ninput_shape = [1,2]\n"),
       {"c.cfg:8:15: input names 2 tensors, input_shape has 1; give one shape for each input, such "
        "as [1,224,224,3],[1,10] [NPUC1008]"}},
      {absl::StrCat(kGood, "input = a, a\ninput_shape = [1,2],1\n"),
       {"c.cfg:7:12: tensor 'input a' is given twice, first on line 7; keep one of the two "
        "[NPUC1004]"}},
      {absl::StrCat(kGood, "input = a\ninput_shape = 1\n"),
       {"c.cfg:8:15: input_shape takes lists of numbers, found '1'; write it like input_shape = "
        "[1,224,224,3] [NPUC1006]"}},
      {absl::StrCat(kGood, "input = a\n"),
       {"c.cfg: [Parser] input_shape is missing: the inputs' shapes; add a line like input_shape = "
        "[1,224,224,3] [NPUC1005]"}},
      {"[Common]\nmode = run\n[Parser]\nmodel_type = torch\ninput_model = m\nmodel_name = m\n",
       {"c.cfg:2:1: [Common] mode = run is not supported: this program builds; npuc run runs what "
        "was built; write mode = build [NPUC1010]",
        "c.cfg:4:14: model_type is 'torch'; allowed: TensorFlow, TFLite, ONNX, Caffe, Compass; "
        "write one of "
        "these [NPUC1007]"}},
      {absl::StrCat(kGood,
                    "preprocess_type = RESIZE\ndetection_postprocess = SSD\n"
                    "model_domain = audio\n[GBuilder]\ntiling = fps\ntarget = X2_1203\n"),
       {"c.cfg:7:1: [Parser] preprocess_type = RESIZE is not supported: no preprocessing is built: "
        "give the model its inputs as they are; remove the line [NPUC1010]",
        "c.cfg:8:1: [Parser] detection_postprocess = SSD is not supported: no detection "
        "post-processing is built; remove the line [NPUC1010]",
        "c.cfg:9:16: model_domain is 'audio'; allowed: image_classification, object_detection, "
        "keyword_spotting, speech_recognition, image_segmentation; write one of these [NPUC1007]",
        "c.cfg:11:1: [GBuilder] tiling = fps is not supported: layers are not tiled; remove the "
        "line [NPUC1010]",
        "c.cfg:12:10: CORENAME is 'X2_1203', not one of GRUS, V150, LEO, V100, APUS, V120, "
        "Z2_0901, Z2_1002, Z2_1004, Z2_1104, Z3_0901, Z3_1104, X1_1204, X2_1204, X2_1204MP3; did "
        "you mean 'X2_1204'? [NPUC1007]"}},
      {absl::StrCat(kGood, "force_float_ir = true\n[Optimizer]\nforce_float_ir = true\n"),
       {"c.cfg:9:1: key 'QUANT.force_float_ir' is given twice, first on line 7; keep one of the "
        "two "
        "[NPUC1004]"}},
      {absl::StrCat(kGood, "model_domain = keyword_spotting\n[GBuilder]\nprofile = true\n"),
       {"c.cfg:7:1: warning: model_domain changes nothing: it is a word about the model; remove "
        "the "
        "line [NPUC1011]",
        "c.cfg:9:1: warning: profile changes nothing: report.json has the profile of each build; "
        "remove the line [NPUC1011]"}},
      {std::string("[Common]\nmode = \001", 17),
       {"c.cfg:2:8: control character \\x01; save the config as plain text [NPUC1000]"}},
  };
  for (const Case& c : cases) EXPECT_THAT(Problems(c.text), ElementsAreArray(c.problems)) << c.text;
}

}  // namespace
}  // namespace npuc
