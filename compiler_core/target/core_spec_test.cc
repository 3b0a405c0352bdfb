#include "compiler_core/target/core_spec.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "compiler_core/target/family.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using ::testing::ElementsAre;

const CoreSpec& Grus() { return *FindCore("GRUS"); }

std::vector<std::string> Sentences(absl::string_view core, Framework framework,
                                   absl::string_view op) {
  std::vector<std::string> out;
  const OpSupport* support = FindOp(*FindCore(core), framework, op);
  if (support == nullptr) return {"not supported"};
  for (const SupportRule& rule : support->rules) out.push_back(Describe(rule));
  return out;
}

TEST(CoreSpecTest, CoresAreFoundByNameAndAlias) {
  for (const auto& [alias, name] :
       {std::pair("V150", "GRUS"), std::pair("V100", "LEO"), std::pair("V120", "APUS")}) {
    ASSERT_NE(FindCore(alias), nullptr);
    EXPECT_EQ(FindCore(alias), FindCore(name));
    EXPECT_EQ(FindCore(alias)->name, name);
  }
  EXPECT_EQ(FindCore("grus"), nullptr);
  EXPECT_EQ(FindCore(""), nullptr);
}

TEST(CoreSpecTest, EachFamilyHasACoreAndItsLimits) {
  for (const NpuFamily family :
       {NpuFamily::kFp16, NpuFamily::kFp16Books, NpuFamily::kInteger, NpuFamily::kFixedPoint}) {
    EXPECT_EQ(FirstCoreOf(family).family, family);
  }
  EXPECT_EQ(&FirstCoreOf(NpuFamily::kFp16), AllCores()[0]);
  for (const CoreSpec* core : AllCores()) {
    EXPECT_EQ(core->limits != nullptr, core->integer == nullptr) << core->name;
    EXPECT_EQ(core->integer != nullptr,
              core->family == NpuFamily::kInteger || core->family == NpuFamily::kFixedPoint)
        << core->name;
  }
}

TEST(CoreSpecTest, GrusNumbers) {
  const CoreSpec& grus = Grus();
  EXPECT_THAT(grus.npu_units, ElementsAre("NPU32"));
  EXPECT_THAT(grus.chips, ElementsAre("GX8002"));
  EXPECT_EQ(grus.compute_type, "fp16");
  ASSERT_NE(grus.limits, nullptr);
  EXPECT_EQ(grus.limits->macs, 32);
  EXPECT_EQ(grus.limits->sram_bytes, 192 * 1024);
  EXPECT_EQ(grus.limits->npu_sram_bytes, 128 * 1024);
  EXPECT_EQ(grus.limits->matrix_block, 32);
  EXPECT_EQ(grus.limits->matrix_product_limit, 65536);
  EXPECT_EQ(grus.limits->outer_extent_bits, 12);
  EXPECT_EQ(grus.limits->middle_extent_bits, 12);
  EXPECT_EQ(grus.limits->inner_extent_bits, 8);
  EXPECT_EQ(grus.limits->immediate_bits, 16);
  EXPECT_EQ(grus.limits->address_bits, 28);
  EXPECT_EQ(FindCore("APUS")->limits, nullptr);
}

TEST(CoreSpecTest, UnitsOfLeoHaveTheirOwnMultipliers) {
  const CoreSpec& leo = *FindCore("LEO");
  ASSERT_EQ(leo.npu_units.size(), 3u);
  for (const auto& [unit, macs] : {std::pair("NPU16", 16), {"NPU32", 32}, {"NPU64", 64}}) {
    EXPECT_EQ(CyclesOf(leo, unit)->macs_per_cycle, macs);
    EXPECT_EQ(CyclesOf(leo, unit)->command_cycles, leo.cycles->command_cycles);
  }
  EXPECT_EQ(CyclesOf(leo, "NPU8"), leo.cycles);
  EXPECT_EQ(CyclesOf(Grus(), "NPU32"), Grus().cycles);
}

// So that figures of one core, of three, and of the reference are figures of one machine.
TEST(CoreSpecTest, AllIntegerCoresFetchAhead) {
  for (const CoreSpec* core : AllCores()) {
    EXPECT_EQ(core->cycles->register_sets, core->integer != nullptr ? 2 : 1) << core->name;
  }
}

// Rows of a list that the vendor published; this compiler adds rewrites to them as it learns more.
int PublishedRows(absl::string_view core, Framework framework) {
  int published = 0;
  for (const OpSupport& op : OpsOf(*FindCore(core), framework)) {
    EXPECT_EQ(op.is_rewrite, absl::StartsWith(op.source, "this compiler")) << op.op;
    EXPECT_TRUE(!op.is_rewrite || !op.note.empty()) << op.op << ": the note says what it becomes";
    published += op.is_rewrite ? 0 : 1;
  }
  return published;
}

TEST(CoreSpecTest, ListsHaveEveryPublishedOperator) {
  EXPECT_EQ(PublishedRows("GRUS", Framework::kTensorFlow), 50);
  EXPECT_EQ(PublishedRows("GRUS", Framework::kTorchScript), 42);  // the list's, and the guide's GRU
  EXPECT_EQ(PublishedRows("GRUS", Framework::kOnnx), 0);
  EXPECT_EQ(PublishedRows("LEO", Framework::kTensorFlow), 76);
  EXPECT_EQ(PublishedRows("LEO", Framework::kTorchScript), 0);
}

TEST(CoreSpecTest, ApusTakesTheListsOfGrus) {
  for (Framework framework : {Framework::kTensorFlow, Framework::kTorchScript}) {
    EXPECT_EQ(OpsOf(*FindCore("APUS"), framework).data(), OpsOf(Grus(), framework).data());
  }
}

TEST(CoreSpecTest, EveryEntryIsWellFormed) {
  std::set<std::string> ids;
  for (const CoreSpec* core : AllCores()) {
    if (core->name == "APUS") continue;  // the lists of GRUS again
    for (const OpList& list : core->op_lists) {
      absl::string_view previous;
      for (const OpSupport& op : list.ops) {
        EXPECT_LT(previous, op.op);
        previous = op.op;
        EXPECT_EQ(FindOp(*core, list.framework, op.op), &op);
        EXPECT_EQ(op.torch_names.empty(), list.framework != Framework::kTorchScript) << op.op;
        EXPECT_FALSE(op.source.empty());
        for (const SupportRule& rule : op.rules) {
          EXPECT_TRUE(ids.insert(std::string(rule.id)).second) << rule.id;
          EXPECT_FALSE(rule.facts.empty()) << rule.id;
          EXPECT_LE(rule.kind == RuleKind::kRange ? rule.lo : 0, rule.hi) << rule.id;
          EXPECT_THAT(std::string(rule.source),
                      testing::MatchesRegex("compiler_core/target/cores/[a-z]+.yaml:[0-9]+"));
        }
      }
    }
  }
}

TEST(CoreSpecTest, UnlistedOperatorsAreNotFound) {
  EXPECT_EQ(FindOp(Grus(), Framework::kTensorFlow, "Conv3D"), nullptr);
  EXPECT_EQ(FindOp(Grus(), Framework::kTensorFlow, ""), nullptr);
  EXPECT_EQ(FindOp(Grus(), Framework::kTensorFlow, "Zzz"), nullptr);
  EXPECT_EQ(FindOp(Grus(), Framework::kOnnx, "Abs"), nullptr);
}

TEST(DescribeTest, Conv2dOfTensorFlow) {
  EXPECT_THAT(Sentences("GRUS", Framework::kTensorFlow, "Conv2D"),
              ElementsAre("input 1 must be a constant", "the data format must be NHWC",
                          "where in_channels is 1, padding must be VALID",
                          "where in_channels is 1, kernel_h * kernel_w must be at most 49",
                          "where in_channels is 1, kernel_h must be 1..11",
                          "where in_channels is 1, kernel_w must be 1..11",
                          "where in_channels is 1, stride_h must be 1..4",
                          "where in_channels is 1, stride_w must be 1..4",
                          "where in_channels is not 1, kernel_h must be 1..15",
                          "where in_channels is not 1, kernel_w must be 1..15",
                          "where in_channels is not 1, stride_h must be 1..15",
                          "where in_channels is not 1, stride_w must be 1..15"));
}

TEST(DescribeTest, OneOfEachOtherKind) {
  const Framework tf = Framework::kTensorFlow;
  const Framework pt = Framework::kTorchScript;
  EXPECT_THAT(
      Sentences("GRUS", tf, "MatMul"),
      ElementsAre("weight_h * weight_w must be at most 65535, each rounded up to a multiple "
                  "of 32 (H*W of input 1 (the weight), rounded up to 32, must be < 65536)"));
  EXPECT_THAT(Sentences("GRUS", tf, "MaxPool"),
              ElementsAre("the data format must be NHWC", "pool_h must be 1..15",
                          "pool_w must be 1..15", "pool_h and pool_w must not both be 1",
                          "pool_h must equal stride_h", "pool_w must equal stride_w"));
  EXPECT_THAT(Sentences("GRUS", tf, "Pow"),
              ElementsAre("input 1 must be a constant",
                          "input 0 must be greater than 0 (input 0 must be > 0)"));
  EXPECT_THAT(Sentences("GRUS", tf, "SquaredDifference"),
              ElementsAre("inputs 0 and 1 must have the same shape (both inputs must have the same "
                          "shape)"));
  EXPECT_THAT(
      Sentences("GRUS", tf, "Sum"),
      ElementsAre("all dimensions must be known at compile time (dimension information must "
                  "be known at compile time)"));
  EXPECT_THAT(Sentences("GRUS", pt, "AvgPool2d"),
              testing::Contains("input_h must be a multiple of pool_h"));
  EXPECT_THAT(Sentences("GRUS", pt, "UpSample"),
              ElementsAre("scale_factor must be given (only with scale_factor)",
                          "scale_h must equal scale_w", "rank must be 4"));
  EXPECT_THAT(Sentences("GRUS", pt, "Pad"),
              ElementsAre("rank must be at most 4", "value must be 0 (pad value must be 0)"));
  EXPECT_THAT(Sentences("LEO", tf, "Cast"),
              ElementsAre("the operator must fold to a constant at compile time"));
  EXPECT_THAT(Sentences("LEO", tf, "MaxPool"),
              ElementsAre("stride_h must be 1..63", "stride_w must be 1..63"));
  EXPECT_THAT(Sentences("LEO", tf, "Conv2D"), testing::Contains("for speed, kernel_h must be odd"));
}

}  // namespace
}  // namespace npuc
