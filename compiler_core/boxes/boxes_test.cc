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
  for (const absl::string_view arithmetic : {"float", "fixed"}) {
    const Made made = Make(absl::StrCat(kYolo, "arithmetic: ", arithmetic, "\n"),
                           {{.name = "out", .shape = {1, 7, 2, 4}, .dtype = DType::kFloat32}});
    ASSERT_TRUE(made.plan.has_value()) << made.problems;
    for (const float value : {1e30f, -1e30f, 8192.f, -8192.f, 1e-40f, NAN, INFINITY, -INFINITY}) {
      const std::vector<float> values(56, value);
      const float* const outputs[] = {values.data()};
      EXPECT_LE(made.plan->Decode(outputs).size(), 3) << value;
    }
  }
}

// An output of each type that fixed arithmetic reads, with one value that all of them hold.
TEST(BoxesTest, ReadsOutputsAsTheyAreStored) {
  constexpr char kFixedRegions[] =
      "{type: RPN, image_size: [32, 80], obj_threshold: 0.5, arithmetic: fixed, "
      "heads: [{scores: s, deltas: d, stride: 16, offset: 8, anchors: [[16, 8]]}]}";
  std::vector<float> deltas(40, 0.0f);
  std::vector<float> scores(20, 0.25f);
  scores[10 + 5 + 2] = 0.75f;
  deltas[5 + 2] = -0.5f;
  const float* const outputs[] = {deltas.data(), scores.data()};
  for (const DType dtype : {DType::kInt8, DType::kUint8, DType::kInt16, DType::kUint16,
                            DType::kFloat16, DType::kFloat32}) {
    const double scale = IsFloat(dtype) ? 0 : 1.0 / 64;
    const int64_t zero_point = IsFloat(dtype) ? 0 : 40;
    const Made made = Make(kFixedRegions, {{.name = "d",
                                            .shape = {1, 4, 2, 5},
                                            .dtype = dtype,
                                            .scale = scale,
                                            .zero_point = zero_point},
                                           {.name = "s",
                                            .shape = {1, 2, 2, 5},
                                            .dtype = dtype,
                                            .scale = scale,
                                            .zero_point = zero_point}});
    ASSERT_TRUE(made.plan.has_value()) << made.problems;
    const std::vector<DetectedBox> boxes = made.plan->Decode(outputs);
    ASSERT_EQ(boxes.size(), 1) << NameOf(dtype);
    EXPECT_EQ(boxes[0].score, 0.75f) << NameOf(dtype);
    EXPECT_NEAR(boxes[0].x0, 24 / 80.0, 4e-5) << NameOf(dtype);
    EXPECT_NEAR(boxes[0].x1, 40 / 80.0, 4e-5) << NameOf(dtype);
    EXPECT_THAT(made.plan->SourceText("net"), HasSubstr("const void *const outputs[]"));
  }
  EXPECT_THAT(
      Make(kFixedRegions, {{.name = "d", .shape = {1, 4, 2, 5}, .dtype = DType::kInt32, .scale = 1},
                           {.name = "s", .shape = {1, 2, 2, 5}}})
          .problems,
      AllOf(HasSubstr("output 'd' is stored as i32"), HasSubstr("remove arithmetic")));
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
  EXPECT_THAT(
      Make("type: YOLO9\nclasses: 0\niou_treshold: 2\narithmetic: 1\nheads: [1]\n", {}).problems,
      AllOf(HasSubstr("allowed: SSD, SSD_RESNET, YOLO2"), HasSubstr("1 to 4096"),
            HasSubstr("allowed: float, fixed"), HasSubstr("iou_treshold"),
            HasSubstr("iou_threshold")));
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

// The settings of a file that is written from settings and read again.
BoxSettings ReadBack(const BoxSettings& settings) {
  Diagnostics diagnostics;
  const auto read = ParseBoxSettings(BoxSettingsText(settings), "boxes.yaml", diagnostics);
  for (const Diagnostic& d : diagnostics.list()) ADD_FAILURE() << d.ToString();
  return read.value_or(BoxSettings());
}

TEST(BoxesTest, WritesWhatItReads) {
  BoxSettings yolo{.kind = BoxKind::kYolo3,
                   .classes = 3,
                   .image_size = {32, 64},
                   .obj_threshold = 0.1,
                   .xy_scale = 1.05,
                   .heads = {{.output = "a \"b\"\n", .anchors = {10.5, 13}}}};
  const BoxSettings yolo_again = ReadBack(yolo);
  EXPECT_EQ(BoxSettingsText(yolo_again), BoxSettingsText(yolo));
  EXPECT_EQ(yolo_again.heads[0].output, "a \"b\"\n");
  yolo.is_fixed = true;
  EXPECT_TRUE(ReadBack(yolo).is_fixed);
  BoxSettings rpn{.kind = BoxKind::kRpn,
                  .classes = 1,
                  .image_size = {80, 96},
                  .heads = {{.output = "s", .anchors = {16, 16}, .deltas = "d", .stride = 8}}};
  EXPECT_EQ(BoxSettingsText(ReadBack(rpn)), BoxSettingsText(rpn));
  BoxSettings ssd{.classes = 4, .location = "l", .confidence = "c", .rows_first = true};
  ssd.prior_boxes = {0.1f, 0.2f, 0.3f, 0.4f, -0.5f, 1e-6f, 7, 8};
  ssd.background = false;
  ssd.first_label = 0;
  ssd.best_class_only = ssd.across_classes = true;
  const BoxSettings again = ReadBack(ssd);
  EXPECT_EQ(again.prior_boxes, ssd.prior_boxes);
  EXPECT_EQ(BoxSettingsText(again), BoxSettingsText(ssd));
  ssd.prior_boxes = {};
  ssd.image_size = {10, 20};
  ssd.priors = {{.feature = {2, 3}, .min_sizes = {4}, .max_sizes = {9}, .step = {5, 6}}};
  EXPECT_EQ(PriorsOf(ReadBack(ssd)), PriorsOf(ssd));
}

TEST(BoxesTest, StandsOverTheModelsOwn) {
  Diagnostics diagnostics;
  const BoxSettings model{.kind = BoxKind::kYolo3,
                          .classes = 2,
                          .image_size = {32, 64},
                          .heads = {{.output = "out", .anchors = {16, 8}}}};
  const auto over =
      ParseBoxSettings("{type: YOLO3_TINY, obj_threshold: 0.7}", "BOXES", diagnostics, model);
  ASSERT_TRUE(over.has_value()) << diagnostics.list()[0].ToString();
  EXPECT_EQ(over->obj_threshold, 0.7);
  EXPECT_EQ(over->heads.size(), 1);
  EXPECT_FALSE(ParseBoxSettings("{type: SSD}", "BOXES", diagnostics, model).has_value());
  EXPECT_THAT(diagnostics.list()[0].ToString(), HasSubstr("the model's own layers are YOLO3"));
}

TEST(BoxesTest, KnowsTheAnchorsOfPublishedNets) {
  const std::vector<PortTensor> outputs = {{.name = "fine", .shape = {1, 255, 26, 26}},
                                           {.name = "coarse", .shape = {1, 255, 13, 13}}};
  const Made made = Make("{type: YOLO3_TINY, image_size: [416, 416]}", outputs);
  ASSERT_TRUE(made.plan.has_value()) << made.problems;
  const BoxSettings& settings = made.plan->settings();
  EXPECT_EQ(settings.classes, 80);
  ASSERT_EQ(settings.heads.size(), 2);
  EXPECT_EQ(settings.heads[0].output, "coarse");
  EXPECT_EQ(settings.heads[0].anchors[4], 344);
  EXPECT_THAT(Make("{type: YOLO3_FULL, image_size: [416, 416]}", outputs).problems,
              HasSubstr("has 3 outputs that are images, and the model 2"));
  EXPECT_THAT(Make("{type: SSD_RESNET, classes: 2, image_size: [9, 9]}", {}).problems,
              HasSubstr("the priors of the SSD are not known"));
  EXPECT_THAT(Make("{type: CAFFE_FASTERRCNN, classes: 2}", {}).problems,
              HasSubstr("with type: RPN"));
}

TEST(BoxesTest, DecodesARegion) {
  const Made made = Make(
      "{type: RPN, image_size: [32, 80], obj_threshold: 0.5, heads: [{scores: s, deltas: d, "
      "stride: 16, offset: 8, anchors: [[16, 8]]}]}",
      {{.name = "d", .shape = {1, 4, 2, 5}}, {.name = "s", .shape = {1, 2, 2, 5}}});
  ASSERT_TRUE(made.plan.has_value()) << made.problems;
  std::vector<float> deltas(40, 0.0f);
  std::vector<float> scores(20, 0.25f);
  scores[10 + 5 + 2] = 0.75f;  // an object in row 1, column 2
  deltas[5 + 2] = 0.5f;        // half an anchor to the right
  const float* const outputs[] = {deltas.data(), scores.data()};
  const std::vector<DetectedBox> boxes = made.plan->Decode(outputs);
  ASSERT_EQ(boxes.size(), 1);
  EXPECT_FLOAT_EQ(boxes[0].score, 0.75f);
  EXPECT_FLOAT_EQ(boxes[0].x0, 40 / 80.0f);  // the middle at 48, the width 16
  EXPECT_FLOAT_EQ(boxes[0].x1, 56 / 80.0f);
  EXPECT_FLOAT_EQ(boxes[0].y0, 20 / 32.0f);
  EXPECT_FLOAT_EQ(boxes[0].y1, 28 / 32.0f);
}

TEST(BoxesTest, MovesRegionsByTheOffsetsOfEachClass) {
  const Made made = Make("{type: RCNN, classes: 2, obj_threshold: 0.5, location: d, confidence: s}",
                         {{.name = "s", .shape = {2, 2}}, {.name = "d", .shape = {2, 8}}});
  ASSERT_TRUE(made.plan.has_value()) << made.problems;
  ASSERT_EQ(made.plan->region_count(), 2);
  const float scores[] = {0.1f, 0.9f, 0.2f, 0.8f};
  float deltas[16] = {};
  deltas[4] = 0.5f;  // region 0, class 1: half its width to the right
  const float regions[] = {0.25f, 0.25f, 0.5f, 0.75f, 0.5f, 0.5f, 0.5f, 0.5f};  // the last is none
  const float* const outputs[] = {scores, deltas, regions};
  const std::vector<DetectedBox> boxes = made.plan->Decode(outputs);
  ASSERT_EQ(boxes.size(), 1);
  EXPECT_FLOAT_EQ(boxes[0].x0, 0.375f);
  EXPECT_FLOAT_EQ(boxes[0].x1, 0.625f);
  EXPECT_FLOAT_EQ(boxes[0].y0, 0.25f);
  EXPECT_EQ(boxes[0].class_id, 1);
  EXPECT_THAT(made.plan->HeaderText("net"), HasSubstr("2: 2 regions"));
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
