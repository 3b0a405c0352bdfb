#include "compiler_core/config/config.h"

#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/config/config_keys.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

ParsedConfig Parse(absl::string_view text, std::vector<std::string>* warnings = nullptr) {
  Diagnostics diagnostics;
  absl::StatusOr<ParsedConfig> config = ParseConfig(text, "c.yaml", diagnostics);
  EXPECT_TRUE(config.ok()) << config.status();
  for (const Diagnostic& d : diagnostics.list()) {
    if (warnings != nullptr) warnings->push_back(d.ToString());
  }
  if (warnings == nullptr) {
    EXPECT_THAT(diagnostics.list(), IsEmpty());
  }
  return config.ok() ? *config : ParsedConfig();
}

constexpr char kSmall[] =
    "CORENAME: GRUS\nMODEL_FILE: m.pb\nOUTPUT_FILE: m.h\nINPUT_OPS: {x: [1, 4]}\n"
    "OUTPUT_OPS: [y]\n";

ParsedConfig ParseWith(absl::string_view more) { return Parse(absl::StrCat(kSmall, more)); }

TEST(ConfigTest, PublishedExample) {
  const ParsedConfig config = Parse(
      "CORENAME: GRUS # chip core name\r\n"
      "PB_FILE: mnist_with_ckpt.pb # input pb file name\r\n"
      "OUTPUT_FILE: model.h # output NPU file name\r\n"
      "NPU_UNIT: NPU32 # NPU MAC type\r\n"
      "COMPRESS: true # compress FC weight\r\n"
      "CONV2D_COMPRESS: true # compress Conv2D weight\r\n"
      "OUTPUT_TYPE: c_code # output NPU file format\r\n"
      "INPUT_OPS:\r\n"
      "        input_x: [1, 784] # input node name and shape\r\n"
      "OUTPUT_OPS: [result] # output node name\r\n");
  const CompileOptions& o = config.options;
  EXPECT_EQ(o.core, "GRUS");
  EXPECT_EQ(o.npu_unit, "NPU32");
  EXPECT_EQ(o.framework, Framework::kTensorFlow);
  EXPECT_EQ(o.model_name, "mnist_with_ckpt.pb");
  EXPECT_EQ(o.output_type, "c_code");
  EXPECT_EQ(o.output_file, "model.h");
  ASSERT_EQ(o.inputs.size(), 1u);
  EXPECT_EQ(o.inputs[0].name, "input_x");
  EXPECT_THAT(o.inputs[0].shape, ElementsAre(1, 784));
  EXPECT_THAT(o.outputs, ElementsAre("result"));
  EXPECT_TRUE(o.compress);
  EXPECT_TRUE(o.conv2d_compress);
  EXPECT_EQ(o.memory_plan, CompileOptions::MemoryPlan::kAuto);
  ASSERT_EQ(config.files.size(), 1u);
  EXPECT_EQ(config.files[0].role, "MODEL_FILE");
  EXPECT_EQ(config.files[0].path, "mnist_with_ckpt.pb");
  EXPECT_EQ(config.files[0].line, 2);
  EXPECT_EQ(config.output_path, "model.h");
}

TEST(ConfigTest, EverySupportedKey) {
  const ParsedConfig config = Parse(R"(
CORENAME: V150
FRAMEWORK: TF
MODEL_FILE: ../models/net.pb
OUTPUT_TYPE: c_code
OUTPUT_FILE: out/net.h
INPUT_OPS:
  Feats: [1, 1, 64]
  "State_c0:0": [1, 3, 0x40]
  scale: []
OUTPUT_OPS: [State_c0_out, "split:1", prob]
FP16_OUT_OPS: ["State_c0_out:0"]
COMPRESS: on
CONV2D_COMPRESS: No
EXCLUDE_COMPRESS_OPS: [w0]
WEIGHT_MIN_MAX:
  w1: [-0.5, 0.5]
  w2: [-1, 2.5e-1]
FUSE_BN: off
FUSE_BIASADD: True
WEIGHT_CACHE_SIZE: 0
MODEL_INFO: kws 0.1
OPT_CONFIG: t/opt.json
MEMORY_PLAN: in_place
)");
  const CompileOptions& o = config.options;
  EXPECT_EQ(o.core, "GRUS");
  EXPECT_EQ(o.npu_unit, "NPU32");
  EXPECT_EQ(o.model_name, "net.pb");
  EXPECT_EQ(o.output_file, "net.h");
  EXPECT_EQ(config.output_path, "out/net.h");
  ASSERT_EQ(o.inputs.size(), 3u);
  EXPECT_EQ(o.inputs[1].name, "State_c0:0");
  EXPECT_THAT(o.inputs[1].shape, ElementsAre(1, 3, 64));
  EXPECT_THAT(o.inputs[2].shape, IsEmpty());
  EXPECT_THAT(o.outputs, ElementsAre("State_c0_out", "split:1", "prob"));
  EXPECT_THAT(o.fp16_outputs, ElementsAre("State_c0_out:0"));
  EXPECT_TRUE(o.compress);
  EXPECT_TRUE(o.fuse_biasadd);
  EXPECT_FALSE(o.conv2d_compress);
  EXPECT_THAT(o.exclude_compress_ops, ElementsAre("w0"));
  EXPECT_THAT(o.weight_min_max,
              ElementsAre(Pair("w1", Pair(-0.5, 0.5)), Pair("w2", Pair(-1, 0.25))));
  EXPECT_FALSE(o.weight_cache_size_bytes.has_value());
  EXPECT_EQ(o.model_info, "kws 0.1");
  EXPECT_EQ(o.memory_plan, CompileOptions::MemoryPlan::kInPlace);
  ASSERT_EQ(config.files.size(), 2u);
  EXPECT_EQ(config.files[1].role, "OPT_CONFIG");
  EXPECT_EQ(config.files[1].path, "t/opt.json");
  EXPECT_EQ(config.files[1].line, 23);
}

TEST(ConfigTest, TorchInputsAndOutputsByIndex) {
  const CompileOptions o = Parse(
                               "CORENAME: GRUS\nMODEL_FILE: m.pt\nOUTPUT_FILE: m.h\nFRAMEWORK: PT\n"
                               "INPUT_OPS: {0: [1, 8, 8, 3], 1: [1, 64], 2: [1, 9, 4]}\n"
                               "INPUT_NCX_TO_NXC: [0, 2]\nFP16_OUT_OPS: [5]\n")
                               .options;
  EXPECT_EQ(o.framework, Framework::kTorchScript);
  EXPECT_EQ(o.inputs[2].name, "2");
  EXPECT_THAT(o.input_ncx_to_nxc, ElementsAre(0, 2));
  EXPECT_THAT(o.fp16_outputs, ElementsAre("5"));
}

TEST(ConfigTest, BooleansAsYaml11HasThem) {
  for (const char* word : {"yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"}) {
    EXPECT_TRUE(ParseWith(absl::StrCat("COMPRESS: ", word)).options.compress) << word;
  }
  for (const char* word : {"no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"}) {
    EXPECT_FALSE(ParseWith(absl::StrCat("COMPRESS: ", word)).options.compress) << word;
  }
}

TEST(ConfigTest, WordsAndNumbersAreNamesWhereNamesAreMeant) {
  const ParsedConfig config = Parse(
      "CORENAME: GRUS\nMODEL_FILE: 1\nOUTPUT_FILE: on\nINPUT_OPS: {yes: [4], 2: [1]}\n"
      "OUTPUT_OPS: [off, 0.5, 7]\nMODEL_INFO: 1.0\n");
  EXPECT_EQ(config.options.inputs[0].name, "yes");
  EXPECT_EQ(config.options.inputs[1].name, "2");
  EXPECT_THAT(config.options.outputs, ElementsAre("off", "0.5", "7"));
  EXPECT_EQ(config.options.model_info, "1.0");
  EXPECT_EQ(config.options.model_name, "1");
}

TEST(ConfigTest, AnIrHasItsConstantsBesideIt) {
  const auto bin_of = [](absl::string_view lines) {
    const ParsedConfig config =
        Parse(absl::StrCat("CORENAME: X2_1204\nFRAMEWORK: COMPASS\nOUTPUT_FILE: m.h\n", lines));
    EXPECT_EQ(config.options.framework, Framework::kCompass);
    EXPECT_EQ(config.files.size(), 2u);
    EXPECT_EQ(config.files.back().role, "MODEL_BIN");
    EXPECT_EQ(config.files.back().line, absl::StrContains(lines, "BIN") ? 5 : 4);
    return config.files.back().path;
  };
  EXPECT_EQ(bin_of("MODEL_FILE: a.b/kws.txt\n"), "a.b/kws.bin");
  EXPECT_EQ(bin_of("MODEL_FILE: a.b/kws\n"), "a.b/kws.bin");
  EXPECT_EQ(bin_of("MODEL_FILE: .kws\n"), ".kws.bin");
  EXPECT_EQ(bin_of("MODEL_FILE: kws.txt\nMODEL_BIN: w/x.dat\n"), "w/x.dat");
}

TEST(ConfigTest, AByteOrderMarkIsSkipped) {
  EXPECT_EQ(Parse(absl::StrCat("\xef\xbb\xbf", kSmall)).options.core, "GRUS");
}

TEST(ConfigTest, NonAsciiNamesPass) {
  const ParsedConfig config = Parse(
      "CORENAME: GRUS\nMODEL_FILE: m\xc3\xa9.pb\nOUTPUT_FILE: m.h\nINPUT_OPS: {\xe8\xbe\x93: [1]}\n"
      "OUTPUT_OPS: [y]\n");
  EXPECT_EQ(config.options.inputs[0].name, "\xe8\xbe\x93");
}

TEST(ConfigTest, IntegerCoresSayWhichKeysAreNotForThem) {
  std::vector<std::string> warnings;
  Parse(
      "CORENAME: X2_1204\nFRAMEWORK: TFLITE\nMODEL_FILE: m.tflite\nOUTPUT_FILE: m.h\n"
      "COMPRESS: true\nCONV2D_COMPRESS: false\nEXCLUDE_COMPRESS_OPS: [w]\n",
      &warnings);
  EXPECT_THAT(warnings,
              ElementsAre("c.yaml:5:1: warning: COMPRESS changes nothing: core X2_1204 computes in "
                          "integers; remove the line [NPUC1011]",
                          HasSubstr("c.yaml:7:1: warning: EXCLUDE_COMPRESS_OPS changes nothing: "
                                    "core X2_1204")));
}

TEST(ConfigTest, WarningsDoNotStopACompile) {
  std::vector<std::string> warnings;
  Parse(absl::StrCat(kSmall, "EXCLUDE_COMPRESS_OPS: [w]\nWEIGHT_MIN_MAX: {w: [0, 1]}\n"),
        &warnings);
  EXPECT_THAT(
      warnings,
      ElementsAre(
          "c.yaml:6:1: warning: EXCLUDE_COMPRESS_OPS changes nothing: COMPRESS is not true; "
          "set COMPRESS: true or remove the line [NPUC1011]",
          "c.yaml:7:1: warning: WEIGHT_MIN_MAX changes nothing: neither COMPRESS nor "
          "CONV2D_COMPRESS is true; set COMPRESS: true or remove the line [NPUC1011]"));
  warnings.clear();
  Parse(absl::StrCat(kSmall,
                     "COMPRESS: true\nEXCLUDE_COMPRESS_OPS: [w]\nWEIGHT_MIN_MAX: {w: [0, 1]}\n"),
        &warnings);
  EXPECT_THAT(warnings, ElementsAre("c.yaml:8:18: warning: the range of 'w' changes nothing: "
                                    "EXCLUDE_COMPRESS_OPS keeps it uncompressed; name the weight "
                                    "in one of the two [NPUC1011]"));
  warnings.clear();
  // Each exclusion belongs to one flag; the other one does not give it an effect.
  Parse(absl::StrCat(kSmall, "COMPRESS: true\nEXCLUDE_CONV2D_COMPRESS_OPS: [c]\n"), &warnings);
  EXPECT_THAT(warnings,
              ElementsAre("c.yaml:7:1: warning: EXCLUDE_CONV2D_COMPRESS_OPS changes nothing: "
                          "CONV2D_COMPRESS is not true; set CONV2D_COMPRESS: true or remove the "
                          "line [NPUC1011]"));
  warnings.clear();
  Parse(absl::StrCat(kSmall, "CONV2D_COMPRESS: true\nEXCLUDE_COMPRESS_OPS: [w]\n"), &warnings);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("EXCLUDE_COMPRESS_OPS changes nothing")));
  warnings.clear();
  Parse(absl::StrCat(kSmall,
                     "CONV2D_COMPRESS: true\nWEIGHT_MIN_MAX: {c: [0, 1]}\n"
                     "EXCLUDE_CONV2D_COMPRESS_OPS: [d]\n"),
        &warnings);
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(ConfigTest, EarlierDiagnosticsOfTheCallerDoNotFailAConfig) {
  Diagnostics diagnostics;
  diagnostics.Add({.kind = DiagnosticKind::kInternalError, .message = "before"});
  EXPECT_TRUE(ParseConfig(kSmall, "c.yaml", diagnostics).ok());
  EXPECT_EQ(diagnostics.list().size(), 1u);
}

TEST(ConfigTest, TheStatusCarriesTheFirstProblem) {
  Diagnostics diagnostics;
  const absl::Status status =
      ParseConfig(absl::StrCat(kSmall, "Y: 1\nX: 1\n"), "c.yaml", diagnostics).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("(and 1 more)"));
}

TEST(ConfigTest, WeightAndFusionKeysReachTheOptions) {
  Diagnostics diagnostics;
  const auto config = ParseConfig(
      absl::StrCat(kSmall,
                   "FUSE_BN: true\nCONV2D_COMPRESS: true\nEXCLUDE_CONV2D_COMPRESS_OPS: [conv/w]\n"
                   "WEIGHT_CACHE_SIZE: 10240\n"),
      "c.yaml", diagnostics);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->options.fuse_bn);
  EXPECT_TRUE(config->options.conv2d_compress);
  EXPECT_THAT(config->options.exclude_conv2d_compress_ops, testing::ElementsAre("conv/w"));
  EXPECT_EQ(config->options.weight_cache_size_bytes, 10240);
}

constexpr char kLeo[] =
    "CORENAME: LEO\nNPU_UNIT: NPU64\nMODEL_FILE: m.pb\nOUTPUT_FILE: m.npu\nOUTPUT_TYPE: raw\n"
    "INPUT_OPS: {x: [1, 4]}\nOUTPUT_OPS: [y]\n";

TEST(ConfigTest, KeysOfLeo) {
  const CompileOptions o =
      Parse(absl::StrCat(kLeo,
                         "COMPRESS: true\nCOMPRESS_QUANT_BITS: 6\nCOMPRESS_TYPE: GAUSSIAN\n"
                         "FLOAT16: true\nFLOAT16_EXP_BITS: 4\nSPACE_OPTIMIZATION: true\n"
                         "INPUT_DATA: {is_train: false, scale: [1.5, 2]}\n"))
          .options;
  EXPECT_EQ(o.core, "LEO");
  EXPECT_EQ(o.npu_unit, "NPU64");
  EXPECT_EQ(o.output_type, "raw");
  EXPECT_EQ(o.compress_quant_bits, 6);
  EXPECT_EQ(o.compress_type, CompileOptions::CompressType::kGaussian);
  EXPECT_TRUE(o.float16);
  EXPECT_EQ(o.float16_exp_bits, 4);
  EXPECT_TRUE(o.space_optimization);
  ASSERT_EQ(o.const_inputs.size(), 2u);
  EXPECT_EQ(o.const_inputs[1].name, "scale");
  EXPECT_THAT(o.const_inputs[1].values, ElementsAre(1.5, 2));
}

TEST(ConfigTest, KeysOfLeoWithoutEffectSaySo) {
  std::vector<std::string> warnings;
  Parse(absl::StrCat(kLeo,
                     "COMPRESS_QUANT_BITS: 4\nCOMPRESS_TYPE: LINEAR\nFLOAT16: true\n"
                     "MEAN_SHRINK_OPS: [m]\nSECURE: true\nDEBUG_INFO_ENABLE: true\n"),
        &warnings);
  EXPECT_THAT(warnings,
              ElementsAre(HasSubstr("COMPRESS_QUANT_BITS changes nothing: neither COMPRESS nor"),
                          HasSubstr("COMPRESS_TYPE changes nothing: neither COMPRESS nor"),
                          HasSubstr("FLOAT16 changes nothing: weights are fp16"),
                          HasSubstr("MEAN_SHRINK_OPS changes nothing: each command of a mean"),
                          HasSubstr("SECURE changes nothing: how the vendor encrypts"),
                          HasSubstr("DEBUG_INFO_ENABLE changes nothing: report.json says")));
  warnings.clear();
  Parse(absl::StrCat(kLeo, "FLOAT16_EXP_BITS: 4\n"), &warnings);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("FLOAT16_EXP_BITS changes nothing: FLOAT16 is not")));
}

TEST(ConfigKeysTest, TableIsWellFormed) {
  std::set<absl::string_view> names;
  for (const ConfigKey& key : AllConfigKeys()) {
    EXPECT_TRUE(names.insert(key.name).second) << key.name;
    EXPECT_EQ(FindConfigKey(key.name), &key);
    EXPECT_FALSE(key.example.empty()) << key.name;
    EXPECT_FALSE(key.meaning.empty()) << key.name;
    EXPECT_EQ(key.type == ConfigType::kChoice, !key.choices.empty()) << key.name;
    EXPECT_EQ(key.type == ConfigType::kInteger || key.type == ConfigType::kBytes, key.hi > 0)
        << key.name;
  }
  EXPECT_EQ(FindConfigKey("corename"), nullptr);
}

TEST(ConfigTest, BytesHaveUnits) {
  const auto limit = [](absl::string_view text) {
    Diagnostics diagnostics;
    const auto config =
        ParseConfig(absl::StrCat("CORENAME: Z2_0901\nFRAMEWORK: TFLITE\nMODEL_FILE: m.tflite\n"
                                 "OUTPUT_FILE: m.h\nSRAM_LIMIT: ",
                                 text, "\n"),
                    "c.yaml", diagnostics);
    return config.ok() ? config->options.sram_limit_bytes.value_or(-1) : 0;
  };
  EXPECT_EQ(limit("20480"), 20480);
  EXPECT_EQ(limit("20K"), 20480);
  EXPECT_EQ(limit("1M"), 1 << 20);
  for (const char* bad : {"K", "-1K", "1.5K", "20k", "20KB", "9999999999M", "4M M", "0"}) {
    EXPECT_EQ(limit(bad), 0) << bad;
  }
}

TEST(ConfigKeysTest, HelpNamesEveryKey) {
  const std::string help = ConfigHelp();
  for (const ConfigKey& key : AllConfigKeys()) {
    EXPECT_THAT(help, HasSubstr(absl::StrCat(key.name, ": ", key.example, "\n")));
  }
  EXPECT_THAT(help, HasSubstr("COMPRESS_QUANT_BITS: 6\n    bits of a compressed weight's codes\n"
                              "    an integer, 4..8; default 8; only core LEO\n"));
}

}  // namespace
}  // namespace npuc
