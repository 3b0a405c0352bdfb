#include "compiler_core/frontends/common/resize.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::frontend {
namespace {

using ::testing::ElementsAre;

std::vector<int64_t> Sources(const ResizeMode& mode, int64_t in, int64_t out) {
  const ResizeAxis axis{
      .in = in, .out = out, .scale = static_cast<double>(out) / static_cast<double>(in)};
  const auto sources = NearestSources(mode, axis);
  EXPECT_TRUE(sources.ok()) << sources.status();
  return sources.ok() ? *sources : std::vector<int64_t>();
}

ResizeMode InFloat32(const char* coordinates) {
  return {.mode = "nearest", .coordinates = coordinates, .nearest = "floor", .in_float32 = true};
}

// TFLite, GetNearestNeighbor: scale = input_size / static_cast<float>(output_size), and then
// floor((input_value + offset) * scale). float(14 / 18) is above 7 / 9, so that nine steps are 7.
TEST(NearestSources, StepsAreFloats) {
  const auto sources = Sources(InFloat32("asymmetric"), 14, 18);
  EXPECT_THAT(sources, ElementsAre(0, 0, 1, 2, 3, 3, 4, 5, 6, 7, 7, 8, 9, 10, 10, 11, 12, 13));
  // ONNX's formula, x / scale, in float64.
  const ResizeMode onnx{.mode = "nearest", .coordinates = "asymmetric", .nearest = "floor"};
  EXPECT_EQ(Sources(onnx, 14, 18)[9], 6);
}

// With corners the scale is (input_size - 1) / static_cast<float>(output_size - 1), and halves are
// rounded away from 0; half_pixel_centers is an offset of 0.5f.
TEST(NearestSources, CornersAndCentersInFloats) {
  EXPECT_THAT(Sources(InFloat32("align_corners"), 4, 7), ElementsAre(0, 1, 1, 2, 2, 3, 3));
  EXPECT_THAT(Sources(InFloat32("align_corners"), 4, 1), ElementsAre(0));
  EXPECT_THAT(Sources(InFloat32("tf_half_pixel_for_nn"), 4, 6), ElementsAre(0, 1, 1, 2, 3, 3));
}

// PyTorch and PaddlePaddle step by float(1 / scale) where a scale is given: whole numbers within.
TEST(NearestSources, AWildScaleStaysWithin) {
  for (const double scale : {1e-300, 1e300}) {
    const auto sources =
        NearestSources(InFloat32("asymmetric"), {.in = 3, .out = 2, .scale = scale});
    ASSERT_TRUE(sources.ok());
    for (const int64_t source : *sources) EXPECT_TRUE(source >= 0 && source < 3);
  }
  EXPECT_FALSE(NearestSources(InFloat32("asymmetric"), {.in = 0, .out = 2}).ok());
}

}  // namespace
}  // namespace npuc::frontend
