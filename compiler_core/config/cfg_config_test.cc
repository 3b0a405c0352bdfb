#include "compiler_core/config/cfg_config.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/framework.h"
#include "compiler_core/config/config.h"
#include "compiler_core/config/config_keys.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

std::vector<std::string> Problems(absl::string_view text) {
  Diagnostics diagnostics;
  const bool ok = ParseConfig(text, "c.cfg", diagnostics).ok();
  EXPECT_EQ(ok, !diagnostics.has_errors());
  std::vector<std::string> list;
  for (const Diagnostic& diagnostic : diagnostics.list()) list.push_back(diagnostic.ToString());
  return list;
}

// "TensorFlow, TFLite", of all front ends that a .cfg can name.
std::string ModelTypes() {
  std::vector<absl::string_view> words;
  for (const FrameworkInfo& info : AllFrameworks()) {
    if (!info.cfg_word.empty()) words.push_back(info.cfg_word);
  }
  return absl::StrJoin(words, ", ");
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

// The guide's example of aipubuild, letter by letter.
constexpr char kGuideExample[] = R"([Common]
mode=run

[Parser]
model_name=resnet_50
detection_postprocess=
model_domain=image_classification
output=resnet_v1_50/predictions/Reshape
input_model=./resnet_50/frozen.pb
input=Placeholder
input_shape=[1,224,224,3]
preprocess_type=RESIZE, RGB2BGR
preprocess_params={bilinear,[1,448,448,3]}, {}

[Optimizer]
model_name=resnet_50
calibration_data=./Dataset/ImageNet/preprocess/resnet/calibration_100.npy
data=./Dataset/ImageNet/preprocess/resnet/dataset_1000.npy
label=./Dataset/ImageNet/preprocess/resnet/label_1000.npy
calibration_batch_size=20
metric_batch_size=50
dataset=NumpyDataset
metric=TopKMetric

[GBuilder]
simulator=./aipu_simulator
target=Z2_1104
inputs=./resnet_50/input.bin
outputs=./resnet_50/output_resnet_50.bin
profile=True
prof_unit=DMA
tiling=fps
)";

ParsedConfig Parsed(absl::string_view text) {
  Diagnostics diagnostics;
  absl::StatusOr<ParsedConfig> config = ParseConfig(text, "c.cfg", diagnostics);
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *std::move(config) : ParsedConfig();
}

TEST(CfgConfigTest, TheGuidesExampleOfAipubuild) {
  ExpectSame(kGuideExample, R"(CORENAME: Z2_1104
FRAMEWORK: TF
MODEL_FILE: ./resnet_50/frozen.pb
OUTPUT_FILE: resnet_50.h
INPUT_OPS: {Placeholder: [1, 224, 224, 3]}
PREPROCESS: RESIZE {bilinear,[1,448,448,3]}, RGB2BGR
OUTPUT_OPS: [resnet_v1_50/predictions/Reshape]
QUANT:
  calibration_data: ./Dataset/ImageNet/preprocess/resnet/calibration_100.npy
  data: ./Dataset/ImageNet/preprocess/resnet/dataset_1000.npy
  label: ./Dataset/ImageNet/preprocess/resnet/label_1000.npy
  calibration_batch_size: 20
  metric: [topk:1]
)");
  const CfgTask task = Parsed(kGuideExample).task;
  EXPECT_EQ(task.kind, CfgTask::Kind::kRun);
  EXPECT_THAT(task.inputs, ElementsAre("./resnet_50/input.bin"));
  EXPECT_EQ(task.output_path, "./resnet_50/output_resnet_50.bin");
  EXPECT_TRUE(task.profiles);
  for (const std::string& problem : Problems(kGuideExample)) {
    EXPECT_THAT(problem, HasSubstr(" changes nothing: "));
  }
}

// The guide's examples of aipuparse and aipuopt, letter by letter.
TEST(CfgConfigTest, TheGuidesExamplesOfCommonAlone) {
  const ParsedConfig parse = Parsed(R"([Common]
model_type=tensorflow
model_name=alexnet
model_domain=image_classification
input_model=alexnet.pb
input=Placeholder
input_shape=[1, 28, 28, 1]

output=alexnet_v2/fc8/squeezed
output_dir=./IR_float
)");
  EXPECT_EQ(parse.task.kind, CfgTask::Kind::kParse);
  EXPECT_EQ(parse.task.ir_name, "alexnet");
  EXPECT_EQ(parse.task.output_dir, "./IR_float");
  ASSERT_EQ(parse.files.size(), 1u);
  EXPECT_EQ(parse.files[0].path, "alexnet.pb");
  const ParsedConfig quantize = Parsed(R"([Common]
graph=alexnet_float32.txt
bin=alexnet_float32.bin
model_name=alexnet
dataset=NumpyDataset
calibration_data=./caffe_alexnet/dataset_200.npy
calibration_batch_size=20
metric_batch_size=100
data=./caffe_alexnet/dataset_5000.npy
label=./caffe_alexnet/label_5000.npy
metric=TopKMetric
output_dir=./IR_int
data_loader_workers=4
)");
  EXPECT_EQ(quantize.task.kind, CfgTask::Kind::kQuantize);
  EXPECT_EQ(quantize.task.ir_name, "alexnet");
  EXPECT_EQ(quantize.options.framework, Framework::kCompass);
  ASSERT_EQ(quantize.files.size(), 5u);
  EXPECT_EQ(quantize.files[0].path, "alexnet_float32.txt");
  EXPECT_EQ(quantize.files[1].path, "alexnet_float32.bin");
}

TEST(CfgConfigTest, OutputsOfABuildNameAHeaderOrTheModelFile) {
  const std::string with = absl::StrCat(kGood, "[GBuilder]\noutputs = out/aipu.bin\n");
  const ParsedConfig config = Parsed(with);
  EXPECT_EQ(config.task.kind, CfgTask::Kind::kBuild);
  EXPECT_EQ(config.task.output_path, "out/aipu.bin");
  EXPECT_EQ(config.output_path, "out/m.h");
  const ParsedConfig runs = Parsed(
      "[Parser]\nmodel_type = TFLite\ninput_model = m.tflite\n"
      "model_name = m\n[GBuilder]\ninputs = a.bin, b.npy\n");
  EXPECT_EQ(runs.task.kind, CfgTask::Kind::kRun);
  EXPECT_THAT(runs.task.inputs, ElementsAre("a.bin", "b.npy"));
  EXPECT_EQ(runs.task.output_path, "output.bin");
}

// As Python's configparser has them, and quotes and comments beyond.
TEST(CfgConfigTest, KeysInAnyCaseQuotesAndComments) {
  ExpectSame(
      "[Parser] # sections too\nModel_Type: \"TFLite\"   ; the format\n"
      "model_name = 'a_b'\t# a name\nINPUT_MODEL=\"dir #1/m.tflite\"\n"
      "input = \"x\", 'y'\ninput_shape = [1,2],[3]\ndetection_postprocess =   ; none\n"
      "[Optimizer]\nweight_bits='4'\ncalibration_data=\n",
      "CORENAME: X2_1204\nFRAMEWORK: TFLITE\nMODEL_FILE: 'dir #1/m.tflite'\nOUTPUT_FILE: a_b.h\n"
      "INPUT_OPS: {x: [1, 2], y: [3]}\nQUANT: {weight_bits: 4}\n");
}

TEST(CfgConfigTest, DetectionBecomesBoxes) {
  const std::string parser =
      "[Parser]\nmodel_type = TFLite\nmodel_name = a\ninput_model = m.tflite\n";
  const std::string same =
      "CORENAME: X2_1204\nFRAMEWORK: TFLITE\nMODEL_FILE: m.tflite\nOUTPUT_FILE: a.h\n";
  ExpectSame(parser +
                 "detection_postprocess = yolo3_tiny\niou_threshold = 0.5\n"
                 "obj_threshold = 0.3\nmax_box_num = 50\nimage_width = 416\n"
                 "image_height = 320\n",
             same +
                 "BOXES: '{type: YOLO3_TINY, iou_threshold: 0.5, obj_threshold: 0.3, "
                 "max_box_num: 50, image_size: [320, 416]}'\n");
  ExpectSame(parser + "detection_postprocess = boxes.yaml\nobj_threshold = 0.3\n",
             same + "DETECTION_POSTPROCESS: boxes.yaml\nBOXES: '{obj_threshold: 0.3}'\n");
  EXPECT_THAT(Problems(parser + "detection_postprocess = SSD\nimage_width = 300\n"),
              ElementsAre(HasSubstr("image_height is missing")));
  EXPECT_THAT(Problems(parser + "detection_postprocess = SSD\nobj_threshold = 1}, x: {\n"),
              ElementsAre(HasSubstr("takes a number")));
}

TEST(CfgConfigTest, ReadsTheGuidesFormsOfOptimizerKeys) {
  const QuantOptions options =
      *Parsed(
           absl::StrCat(kGood,
                        "[Optimizer]\nfake_quant_scopes_for_debug = [(0,3),(5,6)]\n"
                        "fake_quant_operators_for_debug = Abs,reshape,tile\n"
                        "calibration_strategy_for_weighth = 3std\n"
                        "trim_infinity_before_statistic = [Abs:(0, inf):second, BatchNorm:(-32767, "
                        "65535):clip]\nmixed_precision_auto_search = 1,-0.02,G\n"
                        "data = d.npy\nmetric = cosdistancemetric\n"))
           .options.quant;
  EXPECT_THAT(options.fake_quant_ids, ElementsAre(LayerIds{0, 3}, LayerIds{5, 6}));
  EXPECT_THAT(options.fake_quant_operators, ElementsAre("Abs", "reshape", "tile"));
  EXPECT_EQ(options.weight_strategy.kind, QuantStrategy::Kind::kStd);
  EXPECT_THAT(options.trim_rules, ElementsAre(TrimRule{"Abs", {}, {0, 3e38, true}},
                                              TrimRule{"BatchNorm", {}, {-32767, 65535, false}}));
  EXPECT_FALSE(options.mixed_precision_less_is_better);
  EXPECT_EQ(options.mixed_precision_threshold, 0.02);
  EXPECT_THAT(options.metrics, ElementsAre("cosine"));
  const QuantOptions ranges =
      *Parsed(absl::StrCat(kGood,
                           "[Optimizer]\ntrim_infinity_before_statistic = "
                           "[(1,10):(-inf,inf):second, (20,30):(-32767,32767):clip]\n"))
           .options.quant;
  EXPECT_THAT(ranges.trim_rules, ElementsAre(TrimRule{"", {1, 10}, {-3e38, 3e38, true}},
                                             TrimRule{"", {20, 30}, {-32767, 32767, false}}));
}

// Every key that the guide's section 4.2 has: none is unknown.
TEST(CfgConfigTest, KnowsEveryKeyOfTheGuide) {
  std::string text = absl::StrCat(
      kGood,
      "model_domain = image_classification\ndetection_postprocess =\niou_threshold = 0.5\n"
      "obj_threshold = 0.3\nmax_box_num = 100\nimage_width = 300\nimage_height = 300\n"
      "force_float_ir = false\n[Optimizer]\ncalibration_batch_size = 1\nweight_bits = 8\n"
      "bias_bits = 32\nactivation_bits = 8\nrunning_statistic_momentum = 0.9\n"
      "histc_bins = 2048\nsave_statistic_info = False\nquant_ir_name = q\noutput_dir = .\n"
      "unify_scales_for_concat = False\nunify_scales_for_concat_max_depth = 20\n"
      "with_winograd = True\ndump = False\ndump_dir = d\ndataloader_workers = 0\n"
      "data_loader_workers = 4\nresize_degrade_to_nearest = False\nbias_effective_bits = 16\n"
      "cast_dtypes_for_lib = Abs,reshape,tile\nwithout_batch_dim = True\n"
      "featuremap_tiling_param = [(1,2,2,2),(3,4,1,2)]\nfeaturemap_splits_item_x = 2\n"
      "featuremap_splits_item_y = 2\nfeaturemap_splits_overlap_rate = 40\n"
      "lut_items_in_bits = 8\n[GBuilder]\nsimulator = s\nlocal_lib = l\ntarget = X2_1204\n"
      "profile = True\nprof_unit = TPC\nfast_perf = True\nmax_sample_point_num = 1\n"
      "max_aiff_sample_point_num = 1\nmax_dma_sample_point_num = 1\n"
      "max_custom_sample_point_num = 1\nstack_size = 257\npng = g.png\nsvg = g.svg\n"
      "tcm_size = 4\ngm_size = 1024\ntiling = fps\nocm_size = 0\nocm_addr = 0\n");
  for (const std::string& problem : Problems(text)) {
    EXPECT_THAT(problem, HasSubstr(" changes nothing: "));
  }
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
       {"c.cfg: [Parser] input_model is missing: the model; add a line like input_model = "
        "model.pb [NPUC1005]",
        "c.cfg: [Parser] model_name is missing: it names the result; add a line like model_name = "
        "kws [NPUC1005]",
        "c.cfg: [Parser] input is missing: the model's inputs; add a line like input = input "
        "[NPUC1005]",
        "c.cfg: [Parser] input_shape is missing: the inputs' shapes; add a line like input_shape = "
        "[1,224,224,3] [NPUC1005]",
        "c.cfg: [Parser] output is missing: the model's outputs; add a line like output = result "
        "[NPUC1005]"}},
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
      {absl::StrCat(kGood, "input =\ninput_shape =\n"), {}},
      {absl::StrCat(kGood, "input = a, b\ninput_shape = [1,2]\n"),
       {"c.cfg:8:15: input names 2 tensors, input_shape has 1; give one shape for each input, such "
        "as [1,224,224,3],[1,10] [NPUC1008]"}},
      {absl::StrCat(kGood, "input = a, a\ninput_shape = [1,2],1\n"),
       {"c.cfg:7:12: input 'a' is given twice; keep one of the two [NPUC1004]"}},
      {absl::StrCat(kGood, "input = a\ninput_shape = 1\n"),
       {"c.cfg:8:15: input_shape takes lists of numbers, found '1'; write it like input_shape = "
        "[1,224,224,3] [NPUC1006]"}},
      {absl::StrCat(kGood, "input = a\n"),
       {"c.cfg: [Parser] input_shape is missing: the inputs' shapes; add a line like input_shape = "
        "[1,224,224,3] [NPUC1005]"}},
      {"[Common]\nmode = run\n[Parser]\nmodel_type = torch\ninput_model = m\nmodel_name = m\n",
       {"c.cfg: [GBuilder] inputs is missing: the files that the simulator reads; mode is run; add "
        "a line like inputs = input.bin [NPUC1005]",
        absl::StrCat("c.cfg:4:14: model_type is 'torch'; allowed: ", ModelTypes(),
                     "; write one of these [NPUC1007]")}},
      {"[Common]\nmode = walk\ngraph = g.txt\nweight_bts = 8\n",
       {"c.cfg: [Common] bin is missing: the weights of the IR; add a line like bin = net.bin "
        "[NPUC1005]",
        "c.cfg: [Common] model_name is missing: it names the IR; add a line like model_name = kws "
        "[NPUC1005]",
        "c.cfg:2:1: [Common]: unknown key 'mode'; remove the line [NPUC1003]",
        "c.cfg:4:1: [Common]: unknown key 'weight_bts'; did you mean 'weight_bits'? [NPUC1003]"}},
      {absl::StrCat(kGood,
                    "preprocess_type = RESIZE, BGR\npreprocess_params = {bilinear,[1,8,8,3]}\n"
                    "detection_postprocess = YOLO9\nmodel_domain = audio\n[GBuilder]\n"
                    "tiling = best\ntarget = X2_1203\n"),
       {"c.cfg:8:21: preprocess_type has 2 steps, preprocess_params 1; give braces for each step, "
        "empty ones too: {bilinear,[1,448,448,3]}, {} [NPUC1008]",
        "c.cfg:9:25: detection_postprocess is 'YOLO9'; allowed: SSD, SSD_RESNET, YOLO2, "
        "YOLO3_TINY, YOLO3_FULL, YOLO5, YOLO8, CAFFE_FASTERRCNN; did you mean 'YOLO2'? [NPUC1007]",
        "c.cfg:10:16: model_domain is 'audio'; allowed: image_classification, object_detection, "
        "keyword_spotting, speech_recognition, image_segmentation; write one of these [NPUC1007]",
        "c.cfg:12:10: tiling is 'best'; allowed: fps; write one of these [NPUC1007]",
        absl::StrCat("c.cfg:13:10: CORENAME is 'X2_1203', not one of ",
                     WordsOf(FindConfigKey("CORENAME")->choices),
                     "; did you mean 'X2_1204'? [NPUC1007]")}},
      {absl::StrCat(kGood, "preprocess_type = RGB2BGR, YUV\npreprocess_params = {}, {}\n"),
       {"c.cfg:7:19: preprocess_type: 'YUV' is none of RESIZE, RGB2BGR, BGR2RGB, RGB2GRAY, "
        "BGR2GRAY, STANDARDIZATION; write steps and their braces like RESIZE, RGB2BGR and "
        "{bilinear,[1,448,448,3]}, {} [NPUC1007]"}},
      {absl::StrCat(kGood, "preprocess_params = {}\n"),
       {"c.cfg:7:21: warning: preprocess_params changes nothing: there is no preprocess_type; the "
        "line may stay [NPUC1011]"}},
      {absl::StrCat(kGood, "force_float_ir = true\n[Optimizer]\nforce_float_ir = true\n"),
       {"c.cfg:9:1: key 'QUANT.force_float_ir' is given twice, first on line 7; keep one of the "
        "two "
        "[NPUC1004]"}},
      {absl::StrCat(kGood, "model_domain = keyword_spotting\n[GBuilder]\nfast_perf = true\n"),
       {"c.cfg:7:1: warning: model_domain changes nothing: it is a word about the model; the line "
        "may stay [NPUC1011]",
        "c.cfg:9:1: warning: fast_perf changes nothing: a profile counts every unit; the line may "
        "stay [NPUC1011]"}},
      {absl::StrCat(kGood, "[GBuilder]\nprofile = perhaps\n"),
       {"c.cfg:8:11: profile is 'perhaps'; allowed: true, false; write one of these [NPUC1007]"}},
      {std::string("[Common]\nmode = \001", 17),
       {"c.cfg:2:8: control character \\x01; save the config as plain text [NPUC1000]"}},
  };
  for (const Case& c : cases) EXPECT_THAT(Problems(c.text), ElementsAreArray(c.problems)) << c.text;
}

}  // namespace
}  // namespace npuc
