#include "compiler_core/quant/opt_template.h"

#include <algorithm>
#include <limits>
#include <random>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

const std::vector<std::string>& Known() {
  static const auto& known =
      *new std::vector<std::string>{"dense/kernel", "dense_1/kernel", "conv"};
  return known;
}

WeightSettings Read(absl::string_view text) {
  Diagnostics diagnostics;
  absl::StatusOr<WeightSettings> settings =
      ReadOptTemplate(text, "t.json", Known(), 8, diagnostics);
  EXPECT_TRUE(settings.ok()) << settings.status();
  EXPECT_THAT(diagnostics.list(), IsEmpty());
  return settings.ok() ? *settings : WeightSettings();
}

std::vector<std::string> DiagnosticsOf(absl::string_view text) {
  Diagnostics diagnostics;
  EXPECT_FALSE(ReadOptTemplate(text, "t.json", Known(), 8, diagnostics).ok());
  std::vector<std::string> out;
  for (const Diagnostic& diagnostic : diagnostics.list()) out.push_back(diagnostic.ToString());
  return out;
}

TemplateWeight Compressed() {
  TemplateWeight weight;
  weight.name = "dense/kernel";
  weight.setting = {.q_bits = 8, .min = -0.5, .max = 0.1};
  weight.display = TemplateDisplay{.shape = {784, 10},
                                   .used_by = "MatMul \"0\"",
                                   .step = 0.6 / 255,
                                   .sparsity = 0.25,
                                   .error_max_abs = 0.001,
                                   .error_rms = 1e-10};
  return weight;
}

constexpr char kWritten[] = R"({
    "dense/kernel": {
        "q_bits_weight": 8,
        "min": -0.5,
        "max": 0.1,
        "just_for_display": {
            "shape": [784, 10],
            "used_by": "MatMul \"0\"",
            "step": 0.002352941176470588,
            "sparsity": 0.25,
            "error": {"max_abs": 0.001, "rms": 1e-10}
        }
    },
    "conv": {
        "q_bits_weight": 16
    },
    "dense_1/kernel": {}
}
)";

std::vector<TemplateWeight> ThreeWeights() {
  TemplateWeight conv;
  conv.name = "conv";
  conv.setting.q_bits = 16;
  TemplateWeight bare;
  bare.name = "dense_1/kernel";
  return {Compressed(), conv, bare};
}

TEST(OptTemplateTest, WritesInGraphOrder) {
  EXPECT_EQ(WriteOptTemplate(ThreeWeights()), kWritten);
  EXPECT_EQ(WriteOptTemplate({}), "{}\n");
}

TEST(OptTemplateTest, ReadsSettingsAndIgnoresTheRest) {
  EXPECT_THAT(Read(kWritten),
              ElementsAre(Pair("conv", WeightSetting{.q_bits = 16}),
                          Pair("dense/kernel", WeightSetting{.q_bits = 8, .min = -0.5, .max = 0.1}),
                          Pair("dense_1/kernel", WeightSetting{})));
  EXPECT_THAT(Read("{}"), IsEmpty());
  EXPECT_THAT(Read("\xef\xbb\xbf{\"conv\": {\"just_for_display\": 7}}"),
              ElementsAre(Pair("conv", WeightSetting{})));
  EXPECT_THAT(Read(R"({"conv":{"max":1E0,"min":-2,"just_for_display":{"q_bits_weight":[{"a":1}],
                                                                      "q_bits_weight":"b"}}})"),
              ElementsAre(Pair("conv", WeightSetting{.min = -2, .max = 1})));
}

TEST(OptTemplateTest, WriteOfReadIsTheSameText) {
  std::vector<TemplateWeight> weights = ThreeWeights();
  const std::string text = WriteOptTemplate(weights);
  const WeightSettings settings = Read(text);
  for (TemplateWeight& weight : weights) {
    weight.setting = settings.find(weight.name)->second;
  }
  EXPECT_EQ(WriteOptTemplate(weights), text);
}

TEST(OptTemplateTest, EveryNumberComesBackExactly) {
  std::mt19937_64 random(20240601);
  std::uniform_real_distribution<double> wide(-65504, 65504);
  std::uniform_real_distribution<double> narrow(-1, 1);
  for (int i = 0; i < 3000; ++i) {
    const double any = i % 2 == 0 ? wide(random) : narrow(random);
    const double value = i % 3 == 0 ? static_cast<double>(static_cast<float>(any)) : any;
    TemplateWeight weight;
    weight.name = "conv";
    weight.setting.min = std::min(value, 0.0) - 1e-3;
    weight.setting.max = std::max(value, 0.0);
    if (*weight.setting.min < -65504) continue;
    const WeightSettings settings = Read(WriteOptTemplate({weight}));
    ASSERT_EQ(settings.find("conv")->second, weight.setting) << value;
  }
}

TEST(OptTemplateTest, NumbersThatJsonLacks) {
  TemplateWeight weight;
  weight.name = "a\xff\"\n";
  weight.setting.min = -1;
  weight.setting.max = std::numeric_limits<double>::infinity();
  weight.display = TemplateDisplay{.error_max_abs = std::numeric_limits<double>::quiet_NaN()};
  const std::string text = WriteOptTemplate({weight});
  EXPECT_THAT(text, HasSubstr("\"a\xef\xbf\xbd\\\"\\n\": {\n        \"just_for_display\""));
  EXPECT_THAT(text, HasSubstr("{\"max_abs\": null, \"rms\": 0}"));
}

struct Case {
  const char* name;
  std::string text;
  std::vector<std::string> diagnostics;
};

const std::vector<Case>& Cases() {
  static const auto& cases = *new std::vector<Case>{
      {"Empty",
       "",
       {"t.json: the template is empty; start from the opt_template.json of an earlier compile "
        "[NPUC1600]"}},
      {"OnlySpace",
       " \n\011 ",
       {"t.json: the template is empty; start from the opt_template.json of an earlier compile "
        "[NPUC1600]"}},
      {"NotUtf8",
       "{\"a\377\": {}}",
       {"t.json: byte \\xff at offset 3 is not UTF-8; start from the opt_template.json of an "
        "earlier compile [NPUC1600]"}},
      {"NotAnObject",
       "[1, 2]",
       {"t.json:1:1: a template is an object of layers, found a list; start from the "
        "opt_template.json of an earlier compile [NPUC1605]"}},
      {"RootIsText",
       "\"dense/kernel\"",
       {"t.json:1:1: a template is an object of layers, found the text 'dense/kernel'; start from "
        "the opt_template.json of an earlier compile [NPUC1605]"}},
      {"Truncated",
       "{\n  \"dense/kernel\": {\n    \"q_bits_weight\": 8",
       {"t.json:3:23: not well-formed JSON: syntax error while parsing object - unexpected end of "
        "input; expected '}'; correct the syntax at this place or just before it [NPUC1601]"}},
      {"TrailingComma",
       "{\"dense/kernel\": {\"q_bits_weight\": 8,}}",
       {"t.json:1:38: not well-formed JSON: syntax error while parsing object key - unexpected "
        "'}'; expected string literal; correct the syntax at this place or just before it "
        "[NPUC1601]"}},
      {"TrailingText",
       "{\"dense/kernel\": {}} x",
       {"t.json:1:22: not well-formed JSON: syntax error while parsing value - invalid literal; "
        "last read: '\"dense/kernel\": {}} x'; expected end of input; correct the syntax at this "
        "place or just before it [NPUC1601]"}},
      {"Comment",
       "{// c\n}",
       {"t.json:1:2: not well-formed JSON: syntax error while parsing object key - invalid "
        "literal; last read: '{/'; expected string literal; correct the syntax at this place or "
        "just before it [NPUC1601]"}},
      {"SingleQuotes",
       "{'a': 1}",
       {"t.json:1:2: not well-formed JSON: syntax error while parsing object key - invalid "
        "literal; last read: '{''; expected string literal; correct the syntax at this place or "
        "just before it [NPUC1601]"}},
      {"NumberTooBig",
       "{\"dense/kernel\": {\"min\": -1e999, \"max\": 1}}",
       {"t.json:1:31: not well-formed JSON: number overflow parsing '-1e999'; correct the syntax "
        "at this place or just before it [NPUC1601]"}},
      {"NotANumber",
       "{\"dense/kernel\": {\"min\": NaN, \"max\": 1}}",
       {"t.json:1:26: not well-formed JSON: syntax error while parsing value - invalid literal; "
        "last read: '\"min\": N'; correct the syntax at this place or just before it [NPUC1601]"}},
      {"BadEscape",
       "{\"a\\q\": {}}",
       {"t.json:1:5: not well-formed JSON: syntax error while parsing object key - invalid string: "
        "forbidden character after backslash; last read: '\"a\\q'; expected string literal; "
        "correct the syntax at this place or just before it [NPUC1601]"}},
      {"UnknownLayer",
       "{\n  \"dense/kernal\": {\"q_bits_weight\": 8},\n  \"zzz\": {\"q_bits_weight\": 4}\n}",
       {"t.json:2:3: the model has no weight 'dense/kernal'; did you mean 'dense/kernel'? "
        "[NPUC1602]",
        "t.json:3:3: the model has no weight 'zzz'; remove the layer [NPUC1602]",
        "t.json:3:28: q_bits_weight is 4, not 8 or 16; write 8 to compress the weight, 16 to leave "
        "it [NPUC1606]"}},
      {"LayerIsNumber",
       "{\"dense/kernel\": 8, \"conv\": null, \"dense_1/kernel\": [8]}",
       {"t.json:1:18: layer 'dense/kernel' takes an object of settings, found 8; write it like "
        "\"NAME\": {\"q_bits_weight\": 8} [NPUC1605]",
        "t.json:1:29: layer 'conv' takes an object of settings, found null; write it like "
        "\"NAME\": {\"q_bits_weight\": 8} [NPUC1605]",
        "t.json:1:53: layer 'dense_1/kernel' takes an object of settings, found a list; write it "
        "like \"NAME\": {\"q_bits_weight\": 8} [NPUC1605]"}},
      {"UnknownKey",
       "{\"dense/kernel\": {\n    \"q_bits\": 8,\n    \"foo\": {\"bar\": [1]},\n \"min\": 1}}",
       {"t.json:2:5: unknown key 'q_bits'; a layer takes q_bits_weight, min, max, just_for_display "
        "[NPUC1603]",
        "t.json:3:5: unknown key 'foo'; a layer takes q_bits_weight, min, max, just_for_display "
        "[NPUC1603]"}},
      {"DuplicateLayer",
       "{\"dense/kernel\": {\"q_bits_weight\": 8},\n\"dense/kernel\": {\"q_bits_weight\": 16}}",
       {"t.json:2:1: layer 'dense/kernel' is given twice; keep one of the two [NPUC1604]"}},
      {"DuplicateKey",
       "{\"dense/kernel\": {\"q_bits_weight\": 8, \"q_bits_weight\": 16}}",
       {"t.json:1:39: layer 'dense/kernel' has 'q_bits_weight' twice; keep one of the two "
        "[NPUC1604]"}},
      {"BitsNotAllowed",
       "{\"dense/kernel\": {\"q_bits_weight\": 4}, \"conv\": {\"q_bits_weight\": -8}}",
       {"t.json:1:36: q_bits_weight is 4, not 8 or 16; write 8 to compress the weight, 16 to leave "
        "it [NPUC1606]",
        "t.json:1:66: q_bits_weight is -8, not 8 or 16; write 8 to compress the weight, 16 to "
        "leave it [NPUC1606]"}},
      {"BitsHuge",
       "{\"dense/kernel\": {\"q_bits_weight\": 18446744073709551615}, \"conv\": "
       "{\"q_bits_weight\": 99999999999999999999}}",
       {"t.json:1:36: q_bits_weight is 18446744073709551615, not 8 or 16; write 8 to compress the "
        "weight, 16 to leave it [NPUC1606]",
        "t.json:1:85: q_bits_weight takes 8 or 16, found 99999999999999999999; write 8 to compress "
        "the weight, 16 to leave it [NPUC1605]"}},
      {"BitsWrongType",
       "{\"dense/kernel\": {\"q_bits_weight\": 8.0}, \"conv\": {\"q_bits_weight\": \"8\"}, "
       "\"dense_1/kernel\": {\"q_bits_weight\": true}}",
       {"t.json:1:36: q_bits_weight takes 8 or 16, found 8.0; write 8 to compress the weight, 16 "
        "to leave it [NPUC1605]",
        "t.json:1:68: q_bits_weight takes 8 or 16, found the text '8'; write 8 to compress the "
        "weight, 16 to leave it [NPUC1605]",
        "t.json:1:110: q_bits_weight takes 8 or 16, found true; write 8 to compress the weight, 16 "
        "to leave it [NPUC1605]"}},
      {"BoundWrongType",
       "{\"dense/kernel\": {\"min\": \"-1\", \"max\": null}, \"conv\": {\"min\": [0], \"max\": "
       "{\"a\": 1}}}",
       {"t.json:1:26: min takes a number, found the text '-1'; write a number [NPUC1605]",
        "t.json:1:39: max takes a number, found null; write a number [NPUC1605]",
        "t.json:1:62: min takes a number, found a list; write a number [NPUC1605]",
        "t.json:1:74: max takes a number, found an object; write a number [NPUC1605]"}},
      {"BoundBeyondHalf",
       "{\"dense/kernel\": {\"min\": -65505, \"max\": 1e5}}",
       {"t.json:1:26: min is -65505, outside fp16's -65504..65504; write a number that fp16 can "
        "hold [NPUC1606]",
        "t.json:1:41: max is 1e5, outside fp16's -65504..65504; write a number that fp16 can hold "
        "[NPUC1606]"}},
      {"MinWithoutMax",
       "{\"dense/kernel\": {\"min\": -1}, \"conv\": {\"max\": 1}}",
       {"t.json:1:18: layer 'dense/kernel' has min without max; give both or neither [NPUC1606]",
        "t.json:1:39: layer 'conv' has max without min; give both or neither [NPUC1606]"}},
      {"MinNotBelowMax",
       "{\"dense/kernel\": {\"min\": 1, \"max\": -1.5}, \"conv\": {\"min\": 0, \"max\": 0}}",
       {"t.json:1:18: layer 'dense/kernel' has the range [1, -1.5], whose min is not below max; "
        "write min below max [NPUC1606]",
        "t.json:1:51: layer 'conv' has the range [0, 0], whose min is not below max; write min "
        "below max [NPUC1606]"}},
      {"RangeTooNarrow",
       "{\"dense/kernel\": {\"min\": 0, \"max\": 1e-7}}",
       {"t.json:1:18: layer 'dense/kernel' has the range [0, 1e-07], whose step is 0 in fp16; "
        "write a wider range [NPUC1606]"}},
      {"TooDeep",
       "{\"dense/kernel\": {\"just_for_display\": [[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]}}",
       {"t.json:1:53: values nested deeper than 16; start from the opt_template.json of an earlier "
        "compile [NPUC1600]"}},
      {"SeveralAtOnce",
       "{\n  \"conv\": {\"q_bits_weight\": 7, \"mim\": 0},\n  \"kernel\": 1,\n  \"conv\": "
       "{\"max\": 2}\n}",
       {"t.json:2:29: q_bits_weight is 7, not 8 or 16; write 8 to compress the weight, 16 to leave "
        "it [NPUC1606]",
        "t.json:2:32: unknown key 'mim'; did you mean 'min'? [NPUC1603]",
        "t.json:3:3: the model has no weight 'kernel'; remove the layer [NPUC1602]",
        "t.json:3:13: layer 'kernel' takes an object of settings, found 1; write it like \"NAME\": "
        "{\"q_bits_weight\": 8} [NPUC1605]",
        "t.json:4:3: layer 'conv' is given twice; keep one of the two [NPUC1604]",
        "t.json:4:11: layer 'conv' has max without min; give both or neither [NPUC1606]"}},
  };
  return cases;
}

class OptTemplateErrorsTest : public testing::TestWithParam<Case> {};

TEST_P(OptTemplateErrorsTest, GivesExactlyTheseDiagnostics) {
  EXPECT_THAT(DiagnosticsOf(GetParam().text), ElementsAreArray(GetParam().diagnostics));
}

INSTANTIATE_TEST_SUITE_P(All, OptTemplateErrorsTest, testing::ValuesIn(Cases()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(OptTemplateErrorsCoverage, EveryKindHasACase) {
  std::set<std::string> seen;
  for (const Case& c : Cases()) {
    for (const std::string& d : c.diagnostics) seen.insert(d.substr(d.rfind('[')));
  }
  for (const DiagnosticKindInfo& info : AllDiagnosticKinds()) {
    const int number = static_cast<int>(info.kind);
    if (number < 1600 || number > 1649 || !absl::StartsWith(info.name, "Template")) continue;
    EXPECT_EQ(seen.count(absl::StrCat("[", IdOf(info.kind), "]")), 1u) << IdOf(info.kind);
  }
}

TEST(OptTemplateLimitsTest, TooManyBytes) {
  EXPECT_THAT(DiagnosticsOf(std::string(kMaxTemplateBytes + 1, ' ')),
              ElementsAre(HasSubstr(absl::StrCat("has ", kMaxTemplateBytes + 1, " bytes, over ",
                                                 kMaxTemplateBytes))));
}

TEST(OptTemplateLimitsTest, ManyFaultyLayersAreAnsweredInBoundedTime) {
  std::string text = "{";
  for (int i = 0; text.size() < kMaxTemplateBytes / 4; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ",", "\n\"dense_", i, "\": {\"min\": 1}");
  }
  text += "}";
  EXPECT_EQ(DiagnosticsOf(text).size(), Diagnostics::kMaxDiagnostics);
}

TEST(OptTemplateLimitsTest, DeepNestingStopsEarly) {
  EXPECT_THAT(DiagnosticsOf("{\"conv\": {\"just_for_display\": " + std::string(1000000, '[')),
              ElementsAre(HasSubstr("values nested deeper than 16")));
}

TEST(OptTemplateTest, EarlierDiagnosticsOfTheCallerDoNotFailATemplate) {
  Diagnostics diagnostics;
  diagnostics.Add({.kind = DiagnosticKind::kInternalError, .message = "before"});
  EXPECT_TRUE(ReadOptTemplate("{}", "t.json", Known(), 8, diagnostics).ok());
}

}  // namespace
}  // namespace npuc
