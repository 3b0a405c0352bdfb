// Malformed configs with the exact diagnostics that they get.
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/yaml_tree.h"
#include "compiler_core/config/config.h"
#include "compiler_core/config/config_keys.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

struct Case {
  const char* name;
  std::string text;
  std::vector<std::string> diagnostics;
};

// Five lines without a fault; what a case adds begins on line 6.
constexpr char kGood[] =
    "CORENAME: GRUS\nMODEL_FILE: m.pb\nOUTPUT_FILE: m.h\nINPUT_OPS: {x: [1, 4]}\n"
    "OUTPUT_OPS: [y]\n";

constexpr char kInteger[] =
    "CORENAME: X2_1204\nFRAMEWORK: TFLITE\nMODEL_FILE: m.tflite\nOUTPUT_FILE: m.h\n";

// The names that a key takes, which new cores and front ends add to: "GRUS, V150, LEO".
std::string ChoicesOf(absl::string_view key) { return WordsOf(FindConfigKey(key)->choices); }
std::string CoresOfKey(absl::string_view key) {
  return WordsOf(CoresOf(FindConfigKey(key)->families));
}
std::string FrameworksOfKey(absl::string_view key) {
  return WordsOf(FindConfigKey(key)->frameworks);
}

const std::vector<Case>& Cases() {
  static const auto& cases = *new std::vector<Case>{
      {"Empty",
       "",
       {"c.yaml: the config has no keys; write CORENAME, MODEL_FILE, OUTPUT_FILE, INPUT_OPS and "
        "OUTPUT_OPS [NPUC1000]"}},
      {"OnlyComments",
       "# nothing\n\n",
       {"c.yaml: the config has no keys; write CORENAME, MODEL_FILE, OUTPUT_FILE, INPUT_OPS and "
        "OUTPUT_OPS [NPUC1000]"}},
      {"NotUtf8",
       "CORENAME: GR\377",
       {"c.yaml:1:13: byte \\xff is not UTF-8; save the config as UTF-8 [NPUC1000]"}},
      {"OverlongUtf8",
       "CORENAME: GRUS\nMODEL_FILE: \300\257",
       {"c.yaml:2:13: byte \\xc0 is not UTF-8; save the config as UTF-8 [NPUC1000]"}},
      {"Utf16",
       std::string("\377\376C\000O\000", 6),
       {"c.yaml:1:1: byte \\xff is not UTF-8; save the config as UTF-8 [NPUC1000]"}},
      {"NulByte",
       std::string("CORENAME: GRUS\000", 15),
       {"c.yaml:1:15: control character \\x00; save the config as plain text [NPUC1000]"}},
      {"Scalar",
       "just text",
       {"c.yaml:1:1: a config is a mapping of keys to values, found 'just text'; write KEY: value, "
        "a key a line [NPUC1006]"}},
      {"Sequence",
       "- CORENAME\n- GRUS\n",
       {"c.yaml:1:1: a config is a mapping of keys to values, found a list; write KEY: value, a "
        "key a line [NPUC1006]"}},
      {"AllRequiredKeysMissing",
       "NPU_UNIT: NPU32\n",
       {"c.yaml: CORENAME is missing: the NPU core, by name or alias; add a line like CORENAME: "
        "GRUS [NPUC1005]",
        "c.yaml: MODEL_FILE is missing: the model; add a line like MODEL_FILE: model.pb [NPUC1005]",
        "c.yaml: OUTPUT_FILE is missing: the name of the output; add a line like OUTPUT_FILE: "
        "model.h [NPUC1005]",
        "c.yaml: INPUT_OPS is missing: every model input with its shape at inference time; add a "
        "line like INPUT_OPS: {input: [1, 64]}, or let npuc init MODEL write it [NPUC1005]",
        "c.yaml: OUTPUT_OPS is missing: every output, state outputs before the prediction outputs; "
        "NAME:K is output K; add a line like OUTPUT_OPS: [result], or let npuc init MODEL write "
        "it [NPUC1005]"}},
      {"UnclosedList",
       absl::StrCat(kGood, "FP16_OUT_OPS: [a, b\n"),
       {"c.yaml:7:1: not well-formed YAML: end of sequence flow not found; correct the syntax at "
        "this place or just before it [NPUC1001]"}},
      {"UnclosedQuote",
       absl::StrCat(kGood, "MODEL_INFO: \"abc\n"),
       {"c.yaml:6:13: not well-formed YAML: the quoted text is not closed; close the quote "
        "[NPUC1001]"}},
      {"UnclosedSingleQuote",
       absl::StrCat(kGood, "MODEL_INFO: 'abc''\n"),
       {"c.yaml:6:13: not well-formed YAML: the quoted text is not closed; close the quote "
        "[NPUC1001]"}},
      {"UnclosedQuoteAfterEscape",
       absl::StrCat(kGood, "MODEL_INFO: \"\303\251 abc\\\"\n"),
       {"c.yaml:6:13: not well-formed YAML: the quoted text is not closed; close the quote "
        "[NPUC1001]"}},
      {"ColonInPlainValue",
       absl::StrCat(kGood, "MODEL_INFO: a: b\n"),
       {"c.yaml:6:14: not well-formed YAML: illegal map value; correct the syntax at this place or "
        "just before it [NPUC1001]"}},
      {"TabIndent",
       "INPUT_OPS:\n\011x: [1]\n",
       {"c.yaml:2:3: not well-formed YAML: illegal map value; correct the syntax at this place or "
        "just before it [NPUC1001]"}},
      {"BadEscape",
       absl::StrCat(kGood, "MODEL_INFO: \"\\q\"\n"),
       {"c.yaml:6:16: not well-formed YAML: unknown escape character: q; correct the syntax at "
        "this place or just before it [NPUC1001]"}},
      {"Alias",
       absl::StrCat(kGood, "EXCLUDE_COMPRESS_OPS: &a [w]\nEXCLUDE_CONV2D_COMPRESS_OPS: *a\n"),
       {"c.yaml:6:23: configs may not have an anchor (&name); remove it [NPUC1002]",
        "c.yaml:7:30: configs may not have an alias (*name); write the value out [NPUC1002]"}},
      {"AliasBomb",
       "a: &a [x, x, x, x]\nb: &b [*a, *a, *a, *a]\nc: &c [*b, *b, *b, *b]\n",
       {"c.yaml:1:4: configs may not have an anchor (&name); remove it [NPUC1002]",
        "c.yaml:2:4: configs may not have an anchor (&name); remove it [NPUC1002]",
        "c.yaml:2:8: configs may not have an alias (*name); write the value out [NPUC1002]",
        "c.yaml:2:12: configs may not have an alias (*name); write the value out [NPUC1002]",
        "c.yaml:2:16: configs may not have an alias (*name); write the value out [NPUC1002]",
        "c.yaml:2:20: configs may not have an alias (*name); write the value out [NPUC1002]",
        "c.yaml:3:4: configs may not have an anchor (&name); remove it [NPUC1002]",
        "c.yaml:3:8: configs may not have an alias (*name); write the value out [NPUC1002]",
        "c.yaml:3:12: configs may not have an alias (*name); write the value out [NPUC1002]",
        "c.yaml:3:16: configs may not have an alias (*name); write the value out [NPUC1002]",
        "c.yaml:3:20: configs may not have an alias (*name); write the value out [NPUC1002]"}},
      {"UnknownAlias",
       absl::StrCat(kGood, "MODEL_INFO: *x\n"),
       {"c.yaml:6:13: not well-formed YAML: the referenced anchor is not defined; correct the "
        "syntax at this place or just before it [NPUC1001]"}},
      {"Tag",
       absl::StrCat(kGood, "MODEL_INFO: !!str 5\n"),
       {"c.yaml:6:13: configs may not have the tag 'tag:yaml.org,2002:str'; remove it [NPUC1002]"}},
      {"TwoDocuments",
       absl::StrCat(kGood, "---\nCORENAME: GRUS\n"),
       {"c.yaml:6:1: configs may not have a second YAML document; keep one document [NPUC1002]"}},
      {"TooDeep",
       absl::StrCat(kGood, "QUANT: [[[[[[[[[[1]]]]]]]]]]\n"),
       {"c.yaml:6:15: configs may not have values nested deeper than 8; no key needs more than 3 "
        "levels [NPUC1002]"}},
      {"UnknownKey",
       absl::StrCat(kGood, "COMPRES: true\n"),
       {"c.yaml:6:1: unknown key 'COMPRES'; did you mean 'COMPRESS'? [NPUC1003]"}},
      {"UnknownKeyCase",
       absl::StrCat(kGood, "compress: true\n"),
       {"c.yaml:6:1: unknown key 'compress'; did you mean 'COMPRESS'? [NPUC1003]"}},
      {"UnknownKeyFar",
       absl::StrCat(kGood, "ZZZZZZ: true\n"),
       {"c.yaml:6:1: unknown key 'ZZZZZZ'; remove the line [NPUC1003]"}},
      {"MergeKey",
       absl::StrCat(kGood, "<<: {COMPRESS: true}\n"),
       {"c.yaml:6:1: unknown key '<<'; remove the line [NPUC1003]"}},
      {"DuplicateKey",
       absl::StrCat(kGood, "COMPRESS: true\nCOMPRESS: false\n"),
       {"c.yaml:7:1: key 'COMPRESS' is given twice, first on line 6; keep one of the two "
        "[NPUC1004]"}},
      {"DuplicateInput",
       "CORENAME: GRUS\nMODEL_FILE: m.pb\nOUTPUT_FILE: m.h\nINPUT_OPS:\n  x: [1]\n  x: "
       "[2]\nOUTPUT_OPS: [y]\n",
       {"c.yaml:6:3: key 'x' is given twice, first on line 5; keep one of the two [NPUC1004]"}},
      {"DuplicateInputByOutputNumber",
       "CORENAME: GRUS\nMODEL_FILE: m.pb\nOUTPUT_FILE: m.h\nINPUT_OPS:\n  \"x:0\": [1]\n  x: "
       "[2]\nOUTPUT_OPS: [y]\n",
       {"c.yaml:6:3: INPUT_OPS lists 'x' twice; list each tensor once; NAME is NAME:0 [NPUC1004]"}},
      {"DuplicateOutput",
       "CORENAME: GRUS\nMODEL_FILE: m.pb\nOUTPUT_FILE: m.h\nINPUT_OPS: {x: [1]}\nOUTPUT_OPS: [y, "
       "z, \"y:0\"]\n",
       {"c.yaml:5:20: OUTPUT_OPS lists 'y:0' twice; list each tensor once; NAME is NAME:0 "
        "[NPUC1004]"}},
      {"ListAsKey",
       absl::StrCat(kGood, "[a, b]: 1\n"),
       {"c.yaml:6:1: a key must be a name, found a list; write KEY: value [NPUC1006]"}},
      {"BoolIsText",
       absl::StrCat(kGood, "COMPRESS: maybe\n"),
       {"c.yaml:6:11: COMPRESS takes true or false, found 'maybe'; write it like COMPRESS: true "
        "[NPUC1006]"}},
      {"BoolIsQuoted",
       absl::StrCat(kGood, "COMPRESS: 'true'\n"),
       {"c.yaml:6:11: COMPRESS takes true or false, found the quoted text 'true'; write it like "
        "COMPRESS: true [NPUC1006]"}},
      {"BoolIsNumber",
       absl::StrCat(kGood, "COMPRESS: 1\n"),
       {"c.yaml:6:11: COMPRESS takes true or false, found '1'; write it like COMPRESS: true "
        "[NPUC1006]"}},
      {"BoolIsList",
       absl::StrCat(kGood, "COMPRESS: [true]\n"),
       {"c.yaml:6:11: COMPRESS takes true or false, found a list; write it like COMPRESS: true "
        "[NPUC1006]"}},
      {"NoValue",
       absl::StrCat(kGood, "COMPRESS:\nMODEL_INFO: ~\n"),
       {"c.yaml:6:1: COMPRESS takes true or false, found nothing; write it like COMPRESS: true "
        "[NPUC1006]",
        "c.yaml:7:1: MODEL_INFO takes one line of text, found nothing; write it like MODEL_INFO: "
        "kws-v1 [NPUC1006]"}},
      {"UnknownCore",
       "CORENAME: GRU\nMODEL_FILE: m.pb\nOUTPUT_FILE: m.h\nINPUT_OPS: {x: [1]}\nOUTPUT_OPS: [y]\n",
       {absl::StrCat("c.yaml:1:11: CORENAME is 'GRU', not one of ", ChoicesOf("CORENAME"),
                     "; did you mean 'GRUS'? [NPUC1007]")}},
      {"KeyOfApusOnLeo",
       "CORENAME: V100\nNPU_UNIT: NPU32\nMODEL_FILE: m.pb\nOUTPUT_FILE: m.h\nINPUT_OPS: {x: "
       "[1]}\nOUTPUT_OPS: [y]\nMAX_CACHE_SIZE: 5\n",
       {"c.yaml:7:1: MAX_CACHE_SIZE is a key of core APUS, CORENAME is LEO; remove the line "
        "[NPUC1009]"}},
      {"LeoWithoutUnit",
       "CORENAME: LEO\nMODEL_FILE: m.pb\nOUTPUT_FILE: m.h\nINPUT_OPS: {x: [1]}\nOUTPUT_OPS: [y]\n",
       {"c.yaml: NPU_UNIT is missing: core LEO has NPU16, NPU32, NPU64; add a line like NPU_UNIT: "
        "NPU16 [NPUC1005]"}},
      {"LeoContradictions",
       "CORENAME: LEO\nNPU_UNIT: NPU16\nMODEL_FILE: m.pb\nOUTPUT_FILE: m.h\nINPUT_OPS: {x: [1]}\n"
       "OUTPUT_OPS: [y]\nSPACE_OPTIMIZATION: true\nMEMORY_PLAN: compatible\nINPUT_DATA: {z: 1}\n"
       "CONST_INPUTS: {z: 1}\nFLOAT16_EXP_BITS: 7\n",
       {"c.yaml:7:1: SPACE_OPTIMIZATION lets results lie over operands that are not used again, "
        "and "
        "MEMORY_PLAN: compatible never does; remove one of the two lines [NPUC1008]",
        "c.yaml:9:1: INPUT_DATA is another name of CONST_INPUTS, and both are given; keep "
        "CONST_INPUTS [NPUC1008]",
        "c.yaml:11:19: FLOAT16_EXP_BITS is 7, not in 3..6; write a number in that range "
        "[NPUC1007]"}},
      {"CoreIsList",
       "CORENAME: [GRUS]\nMODEL_FILE: m.pb\nOUTPUT_FILE: m.h\nINPUT_OPS: {x: [1]}\nOUTPUT_OPS: "
       "[y]\n",
       {"c.yaml:1:11: CORENAME takes one of a few words, found a list; write it like CORENAME: "
        "GRUS [NPUC1006]"}},
      {"UnitOfAnotherCore",
       absl::StrCat(kGood, "NPU_UNIT: NPU64\n"),
       {"c.yaml:6:11: core GRUS takes NPU_UNIT NPU32, found 'NPU64'; write NPU_UNIT: NPU32 "
        "[NPUC1009]"}},
      {"UnknownUnit",
       absl::StrCat(kGood, "NPU_UNIT: NPU31\n"),
       {"c.yaml:6:11: NPU_UNIT is 'NPU31', not one of NPU16, NPU32, NPU64; did you mean 'NPU32'? "
        "[NPUC1007]"}},
      {"OutputTypeOfAnotherCore",
       absl::StrCat(kGood, "OUTPUT_TYPE: json\n"),
       {"c.yaml:6:14: core GRUS takes OUTPUT_TYPE c_code, found 'json'; write OUTPUT_TYPE: c_code "
        "[NPUC1009]"}},
      {"UnknownOutputType",
       absl::StrCat(kGood, "OUTPUT_TYPE: c-code\n"),
       {"c.yaml:6:14: OUTPUT_TYPE is 'c-code', not one of c_code, raw, json; did you mean "
        "'c_code'? [NPUC1007]"}},
      {"KeysOfOtherCores",
       absl::StrCat(
           kGood,
           "MAX_CACHE_SIZE: 100\nUSE_DATA_CACHE: true\nFLOAT16: true\nCOMPRESS_QUANT_BITS: 9\n"),
       {"c.yaml:6:1: MAX_CACHE_SIZE is a key of core APUS, CORENAME is GRUS; remove the line "
        "[NPUC1009]",
        "c.yaml:7:1: USE_DATA_CACHE is a key of core APUS, CORENAME is GRUS; remove the line "
        "[NPUC1009]",
        "c.yaml:8:1: FLOAT16 is a key of core LEO, CORENAME is GRUS; remove the line [NPUC1009]",
        "c.yaml:9:1: COMPRESS_QUANT_BITS is a key of core LEO, CORENAME is GRUS; remove the line "
        "[NPUC1009]",
        "c.yaml:9:22: COMPRESS_QUANT_BITS is 9, not in 4..8; write a number in that range "
        "[NPUC1007]"}},
      {"UnknownFramework",
       absl::StrCat(kGood, "FRAMEWORK: TFLIT\n"),
       {absl::StrCat("c.yaml:6:12: FRAMEWORK is 'TFLIT', not one of ", ChoicesOf("FRAMEWORK"),
                     "; did you mean 'TFLITE'? [NPUC1007]")}},
      {"TorchConfig",
       "CORENAME: GRUS\nMODEL_FILE: m.pt\nOUTPUT_FILE: m.h\nFRAMEWORK: PT\nINPUT_OPS: {0: [1, 4], "
       "x: [1]}\nOUTPUT_OPS: [y]\nINPUT_NCX_TO_NXC: [0, 3]\nFP16_OUT_OPS: [5, s]\n",
       {"c.yaml:5:24: INPUT_OPS takes indices where FRAMEWORK is PT, found 'x'; count from 0 "
        "[NPUC1007]",
        absl::StrCat("c.yaml:6:1: OUTPUT_OPS is a key of framework ", FrameworksOfKey("OUTPUT_OPS"),
                     ", FRAMEWORK is PT; remove the line [NPUC1009]"),
        "c.yaml:7:23: INPUT_NCX_TO_NXC names input 3, which is not in INPUT_OPS; list the input in "
        "INPUT_OPS [NPUC1008]",
        "c.yaml:8:19: FP16_OUT_OPS takes indices where FRAMEWORK is PT, found 's'; count from 0 "
        "[NPUC1007]"}},
      {"TransposedInputOfTensorFlow",
       absl::StrCat(kGood, "INPUT_NCX_TO_NXC: [0]\n"),
       {"c.yaml:6:1: INPUT_NCX_TO_NXC is a key of framework PT, FRAMEWORK is TF; remove the line "
        "[NPUC1009]"}},
      {"IndexOutOfRange",
       absl::StrCat(kGood, "INPUT_NCX_TO_NXC: [-1, 5000, a]\n"),
       {"c.yaml:6:1: INPUT_NCX_TO_NXC is a key of framework PT, FRAMEWORK is TF; remove the line "
        "[NPUC1009]",
        "c.yaml:6:20: index -1 is not in 0..1023; count inputs from 0 [NPUC1007]",
        "c.yaml:6:24: index 5000 is not in 0..1023; count inputs from 0 [NPUC1007]",
        "c.yaml:6:30: INPUT_NCX_TO_NXC takes a list of indices, found 'a'; write it like "
        "INPUT_NCX_TO_NXC: [0] [NPUC1006]"}},
      {"CaffePrototxt",
       absl::StrCat(kGood, "PROTOTXT: m.prototxt\n"),
       {"c.yaml:6:1: PROTOTXT is a key of framework CAFFE, FRAMEWORK is TF; remove the line "
        "[NPUC1009]"}},
      {"Preprocess",
       absl::StrCat(kGood, "PREPROCESS: RGB2YUV\n"),
       {"c.yaml:6:13: PREPROCESS: 'RGB2YUV' is none of RESIZE, RGB2BGR, BGR2RGB, RGB2GRAY, "
        "BGR2GRAY, STANDARDIZATION; write it like PREPROCESS: 'RESIZE "
        "{bilinear,[1,448,448,3]}, RGB2BGR' [NPUC1007]"}},
      {"QuantOfAFloatCore",
       absl::StrCat(kGood, "QUANT: {weight_bits: 8}\n"),
       {absl::StrCat("c.yaml:6:1: QUANT is a key of core ", CoresOfKey("QUANT"),
                     ", CORENAME is GRUS; remove the line [NPUC1009]")}},
      {"QuantValues",
       absl::StrCat(kInteger, "QUANT:\n  weight_bit: 8\n  activation_bits: 7\n"),
       {"c.yaml:6:3: QUANT: unknown key 'weight_bit'; did you mean 'weight_bits'? [NPUC1003]",
        "c.yaml:7:20: QUANT: activation_bits is '7'; allowed: 8 to 16; write one of these "
        "[NPUC1007]"}},
      {"MoreCoresThanThereAre",
       absl::StrCat(kInteger, "CORES: 2\n"),
       {"c.yaml:5:8: CORES is 2; core X2_1204 has 1; remove the line [NPUC1007]"}},
      {"TilesForOneCore",
       absl::StrCat(kInteger, "QUANT: {featuremap_splits_item_y: 2}\nX: 1\n"),
       {"c.yaml:5:1: warning: featuremap_splits_item_y in QUANT changes nothing: core X2_1204 is "
        "one "
        "core; OPTIMIZE: size finds its own stripes; remove the line [NPUC1011]",
        "c.yaml:6:1: unknown key 'X'; remove the line [NPUC1003]"}},
      {"TwoTemplates",
       absl::StrCat(kInteger, "QUANT: {opt_config: a.json}\nOPT_CONFIG: b.json\n"),
       {"c.yaml:6:1: OPT_CONFIG is the same as opt_config in QUANT, and both are given; keep one "
        "of the two [NPUC1008]"}},
      {"FixedPoint",
       "CORENAME: V120\nMODEL_FILE: m.pb\nOUTPUT_FILE: m.h\nINPUT_OPS: {x: [1]}\nOUTPUT_OPS: [y]\n"
       "USE_DATA_CACHE: true\nQUANT: {weight_bits: 4, activation_bits: 16}\nX: 1\n",
       {"c.yaml:6:1: warning: USE_DATA_CACHE changes nothing: core APUS computes in integers; "
        "remove the "
        "line [NPUC1011]",
        "c.yaml:7:1: warning: weight_bits in QUANT changes nothing: core APUS has 16 bits and a "
        "power of "
        "two "
        "as scale that holds every value; remove the line [NPUC1011]",
        "c.yaml:8:1: unknown key 'X'; remove the line [NPUC1003]"}},
      {"BothModelKeys",
       absl::StrCat(kGood, "PB_FILE: n.pb\n"),
       {"c.yaml:6:1: PB_FILE is the older name of MODEL_FILE, and both are given; keep MODEL_FILE "
        "[NPUC1008]"}},
      {"ModelIsFolder",
       "CORENAME: GRUS\nMODEL_FILE: models/..\nOUTPUT_FILE: ..\nINPUT_OPS: {x: [1]}\nOUTPUT_OPS: "
       "[y]\n",
       {"c.yaml:2:13: MODEL_FILE 'models/..' does not name a file; write it like MODEL_FILE: "
        "model.pb [NPUC1007]",
        "c.yaml:3:14: OUTPUT_FILE '..' does not name a file; write it like OUTPUT_FILE: model.h "
        "[NPUC1007]"}},
      {"OutputIsAnotherArtifact",
       "CORENAME: GRUS\nMODEL_FILE: m.pb\nOUTPUT_FILE: a/opt_template.json\nINPUT_OPS: {x: "
       "[1]}\nOUTPUT_OPS: [y]\n",
       {"c.yaml:3:14: OUTPUT_FILE opt_template.json is the name of another artifact; choose "
        "another name, such as model.h [NPUC1008]"}},
      {"OutputNameWithABlank",
       "CORENAME: GRUS\nMODEL_FILE: m.pb\nOUTPUT_FILE: out/my model.h\nINPUT_OPS: {x: "
       "[1]}\nOUTPUT_OPS: [y]\n",
       {"c.yaml:3:14: OUTPUT_FILE 'my model.h' is not 1 to 100 letters, digits, '_', '-', '.' and "
        "'+', with no '.' first; write it like OUTPUT_FILE: model.h [NPUC1007]"}},
      {"OutputNameTooLong",
       absl::StrCat("CORENAME: GRUS\nMODEL_FILE: m.pb\nOUTPUT_FILE: ", std::string(101, 'm'),
                    "\nINPUT_OPS: {x: [1]}\nOUTPUT_OPS: [y]\n"),
       {absl::StrCat("c.yaml:3:14: OUTPUT_FILE '", std::string(101, 'm'),
                     "' is not 1 to 100 letters, digits, '_', '-', '.' and '+', with no '.' first; "
                     "write it like OUTPUT_FILE: model.h [NPUC1007]")}},
      {"OutputIsAModelFile",
       "CORENAME: GRUS\nMODEL_FILE: m.pb\nOUTPUT_FILE: x.npuc\nINPUT_OPS: {x: [1]}\nOUTPUT_OPS: "
       "[y]\n",
       {"c.yaml:3:14: OUTPUT_FILE x.npuc has the ending of the model file that is written beside "
        "it; choose another name, such as model.h [NPUC1008]"}},
      {"Fp16NotAnOutput",
       "CORENAME: GRUS\nMODEL_FILE: m.pb\nOUTPUT_FILE: m.h\nINPUT_OPS: {x: [1]}\nOUTPUT_OPS: "
       "[state_out, y]\nFP16_OUT_OPS: [state_ou, \"y:1\", other]\n",
       {"c.yaml:6:16: FP16_OUT_OPS names 'state_ou', which is not in OUTPUT_OPS; did you mean "
        "'state_out'? [NPUC1008]",
        "c.yaml:6:26: FP16_OUT_OPS names 'y:1', which is not in OUTPUT_OPS; list it in OUTPUT_OPS "
        "too [NPUC1008]",
        "c.yaml:6:33: FP16_OUT_OPS names 'other', which is not in OUTPUT_OPS; list it in "
        "OUTPUT_OPS too [NPUC1008]"}},
      {"Fp16Duplicate",
       absl::StrCat(kGood, "FP16_OUT_OPS: [y, y]\n"),
       {"c.yaml:6:19: FP16_OUT_OPS lists 'y' twice; list each tensor once; NAME is NAME:0 "
        "[NPUC1004]"}},
      {"ShapeZero",
       "CORENAME: GRUS\nMODEL_FILE: m.pb\nOUTPUT_FILE: m.h\nINPUT_OPS: {x: [1, 0]}\nOUTPUT_OPS: "
       "[y]\n",
       {"c.yaml:4:20: the shape of 'x' has dimension 0, not in 1..268435456; write the sizes that "
        "inference uses, the batch size included [NPUC1007]"}},
      {"ShapeNegative",
       "CORENAME: GRUS\nMODEL_FILE: m.pb\nOUTPUT_FILE: m.h\nINPUT_OPS: {x: [-1, 64]}\nOUTPUT_OPS: "
       "[y]\n",
       {"c.yaml:4:17: the shape of 'x' has dimension -1, not in 1..268435456; write the sizes that "
        "inference uses, the batch size included [NPUC1007]"}},
      {"ShapeHugeDim",
       "CORENAME: GRUS\nMODEL_FILE: m.pb\nOUTPUT_FILE: m.h\nINPUT_OPS: {x: "
       "[99999999999]}\nOUTPUT_OPS: [y]\n",
       {"c.yaml:4:17: the shape of 'x' has dimension 99999999999, not in 1..268435456; write the "
        "sizes that inference uses, the batch size included [NPUC1007]"}},
      {"ShapeHugeProduct",
       "CORENAME: GRUS\nMODEL_FILE: m.pb\nOUTPUT_FILE: m.h\nINPUT_OPS: {x: [65536, "
       "65536]}\nOUTPUT_OPS: [y]\n",
       {"c.yaml:4:16: the shape of 'x' has over 268435456 elements; check the shape [NPUC1007]"}},
      {"ShapeBeyondIntegers",
       "CORENAME: GRUS\nMODEL_FILE: m.pb\nOUTPUT_FILE: m.h\nINPUT_OPS: {x: "
       "[99999999999999999999999]}\nOUTPUT_OPS: [y]\n",
       {"c.yaml:4:17: INPUT_OPS takes a shape such as [1, 64] for each input, found "
        "'99999999999999999999999'; write it like INPUT_OPS: {input: [1, 64]} [NPUC1006]"}},
      {"ShapeRank",
       "CORENAME: GRUS\nMODEL_FILE: m.pb\nOUTPUT_FILE: m.h\nINPUT_OPS: {x: [1, 1, 1, 1, 1, 1, 1, "
       "1, 1]}\nOUTPUT_OPS: [y]\n",
       {"c.yaml:4:16: the shape of 'x' has 9 dimensions, over 8; check the shape [NPUC1007]"}},
      {"ShapeOfText",
       "CORENAME: GRUS\nMODEL_FILE: m.pb\nOUTPUT_FILE: m.h\nINPUT_OPS: {x: '1, 784'}\nOUTPUT_OPS: "
       "[y]\n",
       {"c.yaml:4:16: INPUT_OPS takes a shape such as [1, 64] for each input, found the quoted "
        "text '1, 784'; write it like INPUT_OPS: {input: [1, 64]} [NPUC1006]"}},
      {"ShapeOfNone",
       "CORENAME: GRUS\nMODEL_FILE: m.pb\nOUTPUT_FILE: m.h\nINPUT_OPS: {x: [None, 4], z: "
       "}\nOUTPUT_OPS: [y]\n",
       {"c.yaml:4:17: INPUT_OPS takes a shape such as [1, 64] for each input, found 'None'; write "
        "it like INPUT_OPS: {input: [1, 64]} [NPUC1006]",
        "c.yaml:4:27: INPUT_OPS takes a shape such as [1, 64] for each input, found nothing; write "
        "it like INPUT_OPS: {input: [1, 64]} [NPUC1006]"}},
      {"ShapeOfFloat",
       "CORENAME: GRUS\nMODEL_FILE: m.pb\nOUTPUT_FILE: m.h\nINPUT_OPS: {x: [1.0, 4]}\nOUTPUT_OPS: "
       "[y]\n",
       {"c.yaml:4:17: INPUT_OPS takes a shape such as [1, 64] for each input, found '1.0'; write "
        "it like INPUT_OPS: {input: [1, 64]} [NPUC1006]"}},
      {"ShapeOctal",
       "CORENAME: GRUS\nMODEL_FILE: m.pb\nOUTPUT_FILE: m.h\nINPUT_OPS: {x: [010]}\nOUTPUT_OPS: "
       "[y]\n",
       {"c.yaml:4:17: INPUT_OPS takes a shape such as [1, 64] for each input, found '010'; write "
        "it like INPUT_OPS: {input: [1, 64]} [NPUC1006]"}},
      {"InputsAsList",
       "CORENAME: GRUS\nMODEL_FILE: m.pb\nOUTPUT_FILE: m.h\nINPUT_OPS: [x]\nOUTPUT_OPS: y\n",
       {"c.yaml:4:12: INPUT_OPS takes a mapping of names to shapes, found a list; write it like "
        "INPUT_OPS: {input: [1, 64]} [NPUC1006]",
        "c.yaml:5:13: OUTPUT_OPS takes a list of names, found 'y'; write it like OUTPUT_OPS: "
        "[result] [NPUC1006]"}},
      // A graph of constants needs no inputs.
      {"NoOutputs",
       "CORENAME: GRUS\nMODEL_FILE: m.pb\nOUTPUT_FILE: m.h\nINPUT_OPS: {}\nOUTPUT_OPS: []\n",
       {"c.yaml:5:13: OUTPUT_OPS is empty; write it like OUTPUT_OPS: [result] [NPUC1007]"}},
      {"BadNames",
       "CORENAME: GRUS\nMODEL_FILE: m.pb\nOUTPUT_FILE: m.h\nINPUT_OPS: {\"a:b\": [1], \":0\": "
       "[1], onnx::Flatten_0: [1]}\nOUTPUT_OPS: [\"a:0:1\", \"\", \"x\\ny\", [y], \"z:1024\"]\n",
       {"c.yaml:4:13: the quoted text 'a:b' is not a name: NAME or NAME:K, K in 0..1023; name a "
        "node of the model, or its output K [NPUC1007]",
        "c.yaml:4:25: the quoted text ':0' is not a name: NAME or NAME:K, K in 0..1023; name a "
        "node of the model, or its output K [NPUC1007]",
        "c.yaml:5:14: the quoted text 'a:0:1' is not a name: NAME or NAME:K, K in 0..1023; name a "
        "node of the model, or its output K [NPUC1007]",
        "c.yaml:5:23: OUTPUT_OPS takes 1 to 4096 bytes here, found 0; write it like OUTPUT_OPS: "
        "[result] [NPUC1007]",
        "c.yaml:5:27: OUTPUT_OPS holds a control character: the quoted text 'x\\x0ay'; write one "
        "line of plain text [NPUC1007]",
        "c.yaml:5:35: OUTPUT_OPS takes names, found a list; write it like OUTPUT_OPS: [result] "
        "[NPUC1006]",
        "c.yaml:5:40: the quoted text 'z:1024' is not a name: NAME or NAME:K, K in 0..1023; name a "
        "node of the model, or its output K [NPUC1007]"}},
      {"RangeOrder",
       absl::StrCat(kGood, "COMPRESS: true\nWEIGHT_MIN_MAX: {w: [1, -1], v: [0, 0]}\n"),
       {"c.yaml:7:21: the range of 'w', [1, -1], does not have min below max; write [min, max] "
        "[NPUC1007]",
        "c.yaml:7:33: the range of 'v', [0, 0], does not have min below max; write [min, max] "
        "[NPUC1007]"}},
      {"RangeNotFinite",
       absl::StrCat(
           kGood, "COMPRESS: true\nWEIGHT_MIN_MAX: {w: [-.inf, 1], v: [0, 1e999], u: [.nan, 1]}\n"),
       {"c.yaml:7:22: WEIGHT_MIN_MAX takes two finite numbers for each weight, found '-.inf'; "
        "write it like WEIGHT_MIN_MAX: {dense/kernel: [-0.5, 0.5]} [NPUC1006]",
        "c.yaml:7:40: WEIGHT_MIN_MAX takes two finite numbers for each weight, found '1e999'; "
        "write it like WEIGHT_MIN_MAX: {dense/kernel: [-0.5, 0.5]} [NPUC1006]",
        "c.yaml:7:52: WEIGHT_MIN_MAX takes two finite numbers for each weight, found '.nan'; write "
        "it like WEIGHT_MIN_MAX: {dense/kernel: [-0.5, 0.5]} [NPUC1006]"}},
      {"RangeBeyondHalf",
       absl::StrCat(kGood, "COMPRESS: true\nWEIGHT_MIN_MAX: {w: [-70000, 1], v: [0, 0.000001]}\n"),
       {"c.yaml:7:21: the range of 'w', [-70000, 1], leaves fp16's -65504..65504; write a range "
        "that fp16 can hold [NPUC1007]",
        "c.yaml:7:37: the range of 'v', [0, 1e-06], is too narrow: its step is 0 in fp16; write a "
        "wider range [NPUC1007]"}},
      {"RangeShape",
       absl::StrCat(kGood, "COMPRESS: true\nWEIGHT_MIN_MAX: {w: [1], v: 3, u: , t: [a, b]}\n"),
       {"c.yaml:7:21: WEIGHT_MIN_MAX takes [min, max] for each weight, found a list; write it like "
        "WEIGHT_MIN_MAX: {dense/kernel: [-0.5, 0.5]} [NPUC1006]",
        "c.yaml:7:29: WEIGHT_MIN_MAX takes [min, max] for each weight, found '3'; write it like "
        "WEIGHT_MIN_MAX: {dense/kernel: [-0.5, 0.5]} [NPUC1006]",
        "c.yaml:7:32: WEIGHT_MIN_MAX takes [min, max] for each weight, found nothing; write it "
        "like WEIGHT_MIN_MAX: {dense/kernel: [-0.5, 0.5]} [NPUC1006]",
        "c.yaml:7:41: WEIGHT_MIN_MAX takes two finite numbers for each weight, found 'a'; write it "
        "like WEIGHT_MIN_MAX: {dense/kernel: [-0.5, 0.5]} [NPUC1006]"}},
      {"RangesAsList",
       absl::StrCat(kGood, "WEIGHT_MIN_MAX: [w, 0, 1]\n"),
       {"c.yaml:6:17: WEIGHT_MIN_MAX takes a mapping of names to [min, max], found a list; write "
        "it like WEIGHT_MIN_MAX: {dense/kernel: [-0.5, 0.5]} [NPUC1006]"}},
      {"ConstInputs",
       absl::StrCat(kGood, "CONST_INPUTS: {a: x, b: [], c: [1, .nan], d: , e: {}}\n"),
       {"c.yaml:6:19: CONST_INPUTS takes a finite number, true or false for each input, found 'x'; "
        "write it like CONST_INPUTS: {sr: 16000, is_train: false} [NPUC1006]",
        "c.yaml:6:25: the list of 'b' has 0 numbers; allowed are 1 to 4096; make it an initializer "
        "of the model, or an input [NPUC1007]",
        "c.yaml:6:36: CONST_INPUTS takes a finite number, true or false for each input, found "
        "'.nan'; write it like CONST_INPUTS: {sr: 16000, is_train: false} [NPUC1006]",
        "c.yaml:6:43: CONST_INPUTS takes a finite number, true or false for each input, found "
        "nothing; write it like CONST_INPUTS: {sr: 16000, is_train: false} [NPUC1006]",
        "c.yaml:6:51: CONST_INPUTS takes a finite number, true or false for each input, found a "
        "mapping; write it like CONST_INPUTS: {sr: 16000, is_train: false} [NPUC1006]"}},
      {"DimsOfAnotherFramework",
       absl::StrCat(kGood, "DIMS: {a: 0, b: 1.5}\n"),
       {"c.yaml:6:1: DIMS is a key of framework ONNX, FRAMEWORK is TF; remove the line [NPUC1009]",
        "c.yaml:6:11: dimension 'a' is 0, not in 1..268435456; write the size that inference uses "
        "[NPUC1007]",
        "c.yaml:6:17: DIMS takes an integer for each dimension, found '1.5'; write it like DIMS: "
        "{batch: 1, time: 25} [NPUC1006]"}},
      {"CacheSize",
       absl::StrCat(kGood, "WEIGHT_CACHE_SIZE: 131073\n"),
       {"c.yaml:6:20: WEIGHT_CACHE_SIZE is 131073, not in 0..131072; write a number in that range "
        "[NPUC1007]"}},
      {"CacheSizeText",
       absl::StrCat(kGood, "WEIGHT_CACHE_SIZE: 10k\n"),
       {"c.yaml:6:20: WEIGHT_CACHE_SIZE takes an integer, found '10k'; write it like "
        "WEIGHT_CACHE_SIZE: 10240 [NPUC1006]"}},
      {"InfoNotOneLine",
       absl::StrCat(kGood, "MODEL_INFO: |\n  a\n  b\n"),
       {"c.yaml:6:13: MODEL_INFO holds a control character: the quoted text 'a\\x0ab\\x0a'; write "
        "one line of plain text [NPUC1007]"}},
      {"MemoryPlan",
       absl::StrCat(kGood, "MEMORY_PLAN: inplace\n"),
       {"c.yaml:6:14: MEMORY_PLAN is 'inplace', not one of auto, compatible, in_place; did you "
        "mean "
        "'in_place'? [NPUC1007]"}},
      {"ManyProblemsAtOnce",
       "CORENAME: GRUSS\nCOMPRESS: 2\nINPUT_OPS: {x: [0]}\nOUTPUT_OPS: [y, y]\nFOO: 1\n",
       {"c.yaml: MODEL_FILE is missing: the model; add a line like MODEL_FILE: model.pb [NPUC1005]",
        "c.yaml: OUTPUT_FILE is missing: the name of the output; add a line like OUTPUT_FILE: "
        "model.h [NPUC1005]",
        absl::StrCat("c.yaml:1:11: CORENAME is 'GRUSS', not one of ", ChoicesOf("CORENAME"),
                     "; did you mean 'GRUS'? [NPUC1007]"),
        "c.yaml:2:11: COMPRESS takes true or false, found '2'; write it like COMPRESS: true "
        "[NPUC1006]",
        "c.yaml:3:17: the shape of 'x' has dimension 0, not in 1..268435456; write the sizes that "
        "inference uses, the batch size included [NPUC1007]",
        "c.yaml:4:17: OUTPUT_OPS lists 'y' twice; list each tensor once; NAME is NAME:0 [NPUC1004]",
        "c.yaml:5:1: unknown key 'FOO'; remove the line [NPUC1003]"}},
  };
  return cases;
}

std::vector<std::string> DiagnosticsOf(absl::string_view text) {
  Diagnostics diagnostics;
  const absl::StatusOr<ParsedConfig> config = ParseConfig(text, "c.yaml", diagnostics);
  EXPECT_FALSE(config.ok());
  std::vector<std::string> out;
  for (const Diagnostic& diagnostic : diagnostics.list()) out.push_back(diagnostic.ToString());
  return out;
}

class ConfigErrorsTest : public testing::TestWithParam<Case> {};

TEST_P(ConfigErrorsTest, GivesExactlyTheseDiagnostics) {
  EXPECT_THAT(DiagnosticsOf(GetParam().text), ElementsAreArray(GetParam().diagnostics));
}

INSTANTIATE_TEST_SUITE_P(All, ConfigErrorsTest, testing::ValuesIn(Cases()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ConfigErrorsCoverage, EveryErrorKindOfConfigsHasACase) {
  std::set<std::string> seen;
  for (const Case& c : Cases()) {
    for (const std::string& d : c.diagnostics) seen.insert(d.substr(d.rfind('[')));
  }
  for (const DiagnosticKindInfo& info : AllDiagnosticKinds()) {
    const int number = static_cast<int>(info.kind);
    if (number < 1000 || number > 1099 || info.severity != Severity::kError) continue;
    EXPECT_EQ(seen.count(absl::StrCat("[", IdOf(info.kind), "]")), 1u) << IdOf(info.kind);
  }
}

TEST(ConfigLimitsTest, TooManyBytes) {
  EXPECT_THAT(DiagnosticsOf(std::string(kMaxConfigBytes + 1, '#')),
              ElementsAre("c.yaml:1:1: the config has 1048577 bytes, over 1048576; name the "
                          "config, not the model [NPUC1000]"));
}

TEST(ConfigLimitsTest, TooManyFlowTokensAreRefusedBeforeTheyAreRead) {
  for (const char* token : {"[", "{", "a,"}) {
    std::string text = "[";
    while (text.size() < 200000) text += token;
    EXPECT_THAT(DiagnosticsOf(text), ElementsAre(HasSubstr("more than 60000 of the characters")));
  }
}

TEST(ConfigLimitsTest, TooManyValues) {
  std::string text = "OUTPUT_OPS:\n";
  for (int i = 0; i < kMaxConfigNodes; ++i) absl::StrAppend(&text, "- a", i, "\n");
  EXPECT_THAT(DiagnosticsOf(text), ElementsAre(HasSubstr("more than 20000 values")));
}

TEST(ConfigLimitsTest, DeepBlockNesting) {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "- ";
  EXPECT_THAT(DiagnosticsOf(text), ElementsAre(HasSubstr("nested deeper than 8")));
}

TEST(ConfigLimitsTest, ManyWrongNamesAreAnsweredInBoundedTime) {
  std::string text;
  for (int i = 0; i < 9000; ++i) absl::StrAppend(&text, "COMPRESS_", i, ": 1\n");
  Diagnostics diagnostics;
  EXPECT_FALSE(ParseConfig(text, "c.yaml", diagnostics).ok());
  EXPECT_EQ(diagnostics.list().size(), Diagnostics::kMaxDiagnostics);
}

}  // namespace
}  // namespace npuc
