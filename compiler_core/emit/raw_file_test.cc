#include "compiler_core/emit/raw_file.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler_core/emit/model_file.h"
#include "compiler_core/emit/written_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using ::testing::HasSubstr;

CompiledModel Model() {
  CompiledModel model;
  model.version = "npuc 1.0";
  model.model_md5 = std::string(32, 'a');
  model.npu_unit = "NPU64";
  model.model_info = "(20240101000000)";
  model.core = "LEO";
  model.inputs = {{"x", {1, 3}, DType::kFloat16, 0, -1}, {"State_c0", {2}, DType::kFloat16, 6, -1}};
  model.outputs = {{"State_c0_out", {2}, DType::kFloat16, 0, 1},
                   {"a\"b", {}, DType::kFloat32, 4, -1}};
  model.cmd_content = {1, 2, 3, 4};
  model.weight_content = {5, 6};
  model.data_bytes = 12;
  return model;
}

std::string RawBytes(const CompiledModel& model) {
  std::string bytes;
  EXPECT_TRUE(WriteRawFile(model, AppendTo(bytes)).ok());
  return bytes;
}

std::string JsonText(const CompiledModel& model) {
  std::string bytes;
  EXPECT_TRUE(WriteRawJson(model, AppendTo(bytes)).ok());
  return bytes;
}

constexpr char kMembers[] =
    "\"core\": \"LEO\", \"npu_unit\": \"NPU64\", \"version\": \"npuc 1.0\", \"pb_md5\": "
    "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\", \"model_info\": \"(20240101000000)\", "
    "\"inputs\": [{\"name\": \"x\", \"type\": \"float16\", \"shape\": [1, 3], \"address\": 0}, "
    "{\"name\": \"State_c0\", \"type\": \"float16\", \"shape\": [2], \"address\": 6}], "
    "\"outputs\": [{\"name\": \"State_c0_out\", \"type\": \"float16\", \"shape\": [2], "
    "\"address\": 0, \"state_input\": 1}, {\"name\": \"a\\\"b\", \"type\": \"float32\", "
    "\"shape\": [], \"address\": 4}], "
    "\"cmd_content_length\": 4, \"weight_content_length\": 2, \"npu_content_length\": 6, "
    "\"cpu_prepared_length\": 0, \"ops_content_length\": 0, \"data_content_length\": 12";

TEST(RawFile, IsLaidOutAsPublished) {
  const std::string json = absl::StrCat("{", kMembers, "}");
  std::string expected = "NPUB";
  expected += {0, 0, static_cast<char>(json.size() >> 8), static_cast<char>(json.size())};
  expected += json;
  expected += {0, 1, 2, 3, 4, 5, 6};
  EXPECT_EQ(RawBytes(Model()), expected + "\xff\xff\xff\xff");
}

TEST(RawFile, AsJson) {
  EXPECT_EQ(JsonText(Model()),
            absl::StrCat("{\"format\": \"NPUB\", ", kMembers,
                         ", \"cmd_content\": \"AQIDBA==\", \"weight_content\": \"BQY=\", "
                         "\"ops_content\": \"\"}\n"));
}

TEST(RawFile, ReadsBack) {
  for (const std::string& bytes : {RawBytes(Model()), JsonText(Model())}) {
    EXPECT_TRUE(IsRawFile(bytes));
    Diagnostics diagnostics;
    const auto model = ReadArtifact(bytes, "net.npu", diagnostics);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(ModelFileBytes(*model), ModelFileBytes(Model()));
  }
}

// The C header names the core behind its unit, since GRUS's has the same form.
TEST(RawFile, TheHeaderOfLeoReadsBack) {
  Diagnostics diagnostics;
  CompiledModel named = Model();
  named.outputs[1].name = "result";
  const absl::StatusOr<std::string> header = HeaderText(named, diagnostics);
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_THAT(*header, HasSubstr("\nconst char *npu_unit = \"NPU64\";\n"
                                 "const char *npu_core = \"LEO\";\nconst char *model_info"));
  const auto model = ReadArtifact(*header, "net.h", diagnostics);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(ModelFileBytes(*model), ModelFileBytes(named));
}

std::string Refusal(const std::string& bytes) {
  Diagnostics diagnostics;
  const auto model = ReadRawFile(bytes, "net.npu", diagnostics);
  EXPECT_FALSE(model.ok());
  EXPECT_TRUE(diagnostics.has_errors());
  return diagnostics.list().empty() ? "" : diagnostics.list()[0].message;
}

TEST(RawFile, EachCutAndEachPaddingIsRefused) {
  const std::string bytes = RawBytes(Model());
  for (size_t size = 0; size < bytes.size(); ++size) Refusal(bytes.substr(0, size));
  Refusal(bytes + "\xff");
  const std::string json = JsonText(Model());
  for (size_t size = 0; size + 1 < json.size(); ++size) Refusal(json.substr(0, size));
}

// The raw file with one text in its JSON replaced.
std::string With(const std::string& from, const std::string& to) {
  const std::string json = absl::StrReplaceAll(absl::StrCat("{", kMembers, "}"), {{from, to}});
  std::string bytes = "NPUB";
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes.push_back(static_cast<char>(json.size() >> shift));
  }
  bytes += json;
  bytes += {0, 1, 2, 3, 4, 5, 6};
  return bytes + "\xff\xff\xff\xff";
}

TEST(RawFile, WhatItSaysMustFit) {
  const std::pair<std::pair<const char*, const char*>, const char*> kCases[] = {
      {{"\"LEO\"", "\"APUS\""}, "its core is 'APUS', which has no such files"},
      {{"\"LEO\"", "3"}, "core is 3"},
      {{"npu_content_length\": 6", "npu_content_length\": 7"}, "npu_content_length is 7"},
      {{"weight_content_length\": 2", "weight_content_length\": 9007199254740993"},
       "weight_content_length is 9007199254740993, outside 0..1073741824"},
      {{"ops_content_length\": 0", "ops_content_length\": 1"},
       "behind its JSON it has 10 bytes; its lengths say 11"},
      {{"ops_content_length\": 0", "ops_content_length\": -1"}, "ops_content_length is -1"},
      {{"prepared_length\": 0", "prepared_length\": 4"},
       "4 bytes of cpu_prepared, whose meaning is not published"},
      {{"\"address\": 6", "\"address\": 8"}, "port State_c0 is at 8; the ports before it end at 6"},
      {{"[1, 3]", "[1, 3, 1, 1, 1, 1, 1, 1, 1, 1]"}, "port x has rank 10"},
      {{"[1, 3]", "[1, true]"}, "a dimension of port x is true"},
      {{"[1, 3]", "[-1, 3]"}, "-1"},
      {{"\"state_input\": 1", "\"state_input\": 7"}, "feeds input 7 of 2"},
      {{"\"float32\"", "\"int8\""}, "is of type 'int8'"},
      {{"\"shape\": [], ", ""}, "it has no shape"},
      {{"\"shape\": [],", "\"shape\": [], \"shape\": [],"}, "it has shape twice"},
      {{"\"core\"", "\"more\": 1, \"core\""}, "unknown member 'more'"},
      {{"\"version\"", "\"version"}, "its JSON, line 1"},
  };
  for (const auto& [change, message] : kCases) {
    EXPECT_THAT(Refusal(With(change.first, change.second)), HasSubstr(message));
  }
}

TEST(RawFile, NestingIsBounded) {
  const std::string deep(100'000, '[');
  std::string bytes = "NPUB";
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes.push_back(static_cast<char>(deep.size() >> shift));
  }
  EXPECT_THAT(Refusal(bytes + deep + '\0' + "\xff\xff\xff\xff"), HasSubstr("its JSON"));
  EXPECT_THAT(Refusal("NPUB\xff\xff\xff\xff{}"), HasSubstr("4294967295 bytes"));
  EXPECT_THAT(Refusal("NPUB\x00"), HasSubstr("ends within the length"));
}

}  // namespace
}  // namespace npuc
