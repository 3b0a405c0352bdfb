#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/boxes/box_plan.h"
#include "compiler_core/boxes/box_settings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr char kYolo[] =
    "type: YOLO3\nclasses: 2\nimage_size: [32, 64]\nobj_threshold: 0.5\nmax_box_num: 3\n"
    "heads:\n  - {output: out, anchors: [[16, 8]]}\n";
constexpr char kSsd[] =
    "type: SSD\nclasses: 2\nimage_size: [10, 10]\nlocation: loc\nconfidence: conf\n"
    "priors:\n  - {feature: [1, 1], min_sizes: [4], max_sizes: [9], aspect_ratios: [2]}\n";

struct Made {
  std::optional<BoxPlan> plan;
  std::string problems;
};

Made Make(absl::string_view text, const std::vector<PortTensor>& outputs) {
  Diagnostics diagnostics;
  Made made;
  std::optional<BoxSettings> settings = ParseBoxSettings(text, "boxes.yaml", diagnostics);
  if (settings.has_value()) {
    made.plan = BoxPlan::Make(*std::move(settings), outputs, "boxes.yaml", diagnostics);
  }
  EXPECT_EQ(made.plan.has_value(), !diagnostics.has_errors());
  for (const Diagnostic& d : diagnostics.list()) {
    absl::StrAppend(&made.problems, d.ToString(), "\n");
  }
  return made;
}

// Channels first: 7 channels of one anchor, 2 rows, 4 columns.
const std::vector<PortTensor>& YoloOutputs() {
  static const auto& outputs = *new std::vector<PortTensor>{{.name = "out", .shape = {1, 7, 2, 4}}};
  return outputs;
}

TEST(BoxesTest, DecodesACell) {
  const Made made = Make(kYolo, YoloOutputs());
  ASSERT_TRUE(made.plan.has_value()) << made.problems;
  std::vector<float> values(56, -20.0f);
  const auto channel = [&](int c) -> float& { return values[static_cast<size_t>(c * 8 + 4 + 2)]; };
  for (int c = 0; c < 4; ++c) channel(c) = 0;  // row 1, column 2: the cell's middle, the anchor
  channel(4) = 20;
  channel(6) = 2;
  const float* const outputs[] = {values.data()};
  const std::vector<DetectedBox> boxes = made.plan->Decode(outputs);
  ASSERT_EQ(boxes.size(), 1);
  EXPECT_EQ(boxes[0].class_id, 1);
  EXPECT_NEAR(boxes[0].score, 1 / (1 + std::exp(-2.0)), 1e-6);
  EXPECT_NEAR(boxes[0].x0, 2.5 / 4 - 0.125, 1e-6);
  EXPECT_NEAR(boxes[0].x1, 2.5 / 4 + 0.125, 1e-6);
  EXPECT_NEAR(boxes[0].y0, 1.5 / 2 - 0.125, 1e-6);
  EXPECT_NEAR(boxes[0].y1, 1.5 / 2 + 0.125, 1e-6);
}

TEST(BoxesTest, KeepsTheBestOfAClassAndNoMoreThanItMay) {
  const Made made = Make(kYolo, YoloOutputs());
  ASSERT_TRUE(made.plan.has_value()) << made.problems;
  std::vector<float> values(56, 0.0f);
  for (size_t i = 32; i < 56; ++i)
    values[i] = 20;  // every cell, both classes: apart from each other
  const float* const outputs[] = {values.data()};
  EXPECT_EQ(made.plan->Decode(outputs).size(), 3);
  for (size_t i = 16; i < 32; ++i) values[i] = 6;  // so large that the first covers all others
  const std::vector<DetectedBox> boxes = made.plan->Decode(outputs);
  ASSERT_EQ(boxes.size(), 2);
  EXPECT_NE(boxes[0].class_id, boxes[1].class_id);
}

TEST(BoxesTest, SurvivesEveryNumber) {
  const Made made = Make(kYolo, YoloOutputs());
  ASSERT_TRUE(made.plan.has_value()) << made.problems;
  for (const float value : {1e30f, -1e30f, NAN, INFINITY, -INFINITY}) {
    const std::vector<float> values(56, value);
    const float* const outputs[] = {values.data()};
    EXPECT_LE(made.plan->Decode(outputs).size(), 3) << value;
  }
}

TEST(BoxesTest, MakesTheSizesOfPriors) {
  Diagnostics diagnostics;
  const auto settings = ParseBoxSettings(kSsd, "boxes.yaml", diagnostics);
  ASSERT_TRUE(settings.has_value());
  ASSERT_EQ(PriorCount(*settings), 4);  // the square, the one between, 2 and 1/2
  const std::vector<float> priors = PriorsOf(*settings);
  const double widths[] = {4, 6, 4 * std::sqrt(2), 4 / std::sqrt(2)};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_FLOAT_EQ(priors[4 * i], 0.5f);
    EXPECT_FLOAT_EQ(priors[4 * i + 2], static_cast<float>(widths[i] / 10));
  }
}

TEST(BoxesTest, ReportsEveryWrongKeyAtOnce) {
  EXPECT_THAT(Make("type: YOLO9\nclasses: 0\niou_treshold: 2\nheads: [1]\n", {}).problems,
              AllOf(HasSubstr("allowed: SSD, YOLO2"), HasSubstr("1 to 4096"),
                    HasSubstr("iou_treshold"), HasSubstr("iou_threshold")));
  EXPECT_THAT(Make("[1]\n", {}).problems, HasSubstr("NPUC1001"));
  EXPECT_THAT(Make("", {}).problems, Not(IsEmpty()));
  EXPECT_THAT(Make(absl::StrCat(kYolo, "max_candidates: 2\n"), YoloOutputs()).problems,
              HasSubstr("below max_box_num"));
  EXPECT_THAT(Make(absl::StrCat(kSsd, "heads: []\n"), {}).problems, HasSubstr("'heads'"));
  EXPECT_THAT(Make("type: SSD\nclasses: 2\nimage_size: [9, 9]\nlocation: a\nconfidence: b\n"
                   "priors: [{feature: [4096, 4096], min_sizes: [1]}]\n",
                   {})
                  .problems,
              HasSubstr("16777216 priors"));
}

TEST(BoxesTest, ReportsOutputsThatDoNotFit) {
  EXPECT_THAT(Make(kYolo, {{.name = "ou", .shape = {1, 7, 2, 4}}}).problems,
              AllOf(HasSubstr("no output 'out'"), HasSubstr("'ou'")));
  EXPECT_THAT(Make(kYolo, {{.name = "out", .shape = {1, 8, 2, 4}}}).problems,
              HasSubstr("make 7 channels"));
  EXPECT_THAT(
      Make(kSsd, {{.name = "loc", .shape = {1, 16}}, {.name = "conf", .shape = {1, 9}}}).problems,
      HasSubstr("priors and classes make 8"));
}

TEST(BoxesTest, NamesAreIdentifiers) {
  EXPECT_EQ(BoxCodeName("net-1.b"), "net_1_b");
  EXPECT_EQ(BoxCodeName("9"), "m_9");
  const Made made = Make(kYolo, {{.name = "out", .shape = {1, 2, 4, 7}}});
  ASSERT_TRUE(made.plan.has_value()) << made.problems;
  EXPECT_THAT(made.plan->SourceText("net"), HasSubstr("int net_boxes(const float"));
  EXPECT_THAT(made.plan->HeaderText("net"), HasSubstr("#define NET_BOXES_ROOM 1000"));
}

}  // namespace
}  // namespace npuc
