#include "compiler_core/tools/box_picture.h"

#include <cmath>
#include <filesystem>
#include <utility>

#include "compiler_core/quant/data/picture_file.h"
#include "compiler_core/tools/files.h"
#include "compiler_core/tools/picture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

std::string WhiteJpeg(int width, int height) { return *EncodeJpeg(Picture(width, height)); }

// Red, green and blue of a pixel, as far as JPEG keeps them.
std::vector<int> PixelAt(const Pixels& pixels, int64_t x, int64_t y) {
  std::vector<int> color;
  for (int64_t c = 0; c < 3; ++c) {
    const int64_t at = (y * pixels.width + x) * 3 + c;
    color.push_back(static_cast<uint8_t>(pixels.bytes[static_cast<size_t>(at)]));
  }
  return color;
}

TEST(BoxPicture, DrawsTheEdgesOfABox) {
  const DetectedBox box = {0.25f, 0.5f, 0.75f, 0.9f, 0.875f, 2};  // blue
  const auto drawn = DrawBoxes(WhiteJpeg(640, 480), {box});
  ASSERT_TRUE(drawn.ok()) << drawn.status();
  const auto pixels = ReadPicture(*drawn);
  ASSERT_TRUE(pixels.ok()) << pixels.status();
  EXPECT_EQ(pixels->width, 640);
  EXPECT_EQ(pixels->height, 480);
  for (const auto& [x, y] : {std::pair(161, 300), {479, 300}, {300, 241}, {300, 431}}) {
    const std::vector<int> color = PixelAt(*pixels, x, y);
    EXPECT_LT(color[0], 100) << x << " " << y;
    EXPECT_GT(color[2], 150) << x << " " << y;
  }
  EXPECT_GT(PixelAt(*pixels, 300, 300)[0], 240);  // inside
  EXPECT_GT(PixelAt(*pixels, 100, 300)[0], 240);  // outside
}

TEST(BoxPicture, TakesBoxesOfAnyNumber) {
  const float numbers[] = {-1e30f, NAN, 1e30f, 0.5f};
  std::vector<DetectedBox> boxes;
  for (const float a : numbers) {
    for (const float b : numbers) boxes.push_back({a, b, b, a, b, 1000});
  }
  EXPECT_TRUE(DrawBoxes(WhiteJpeg(3, 1), boxes).ok());
  EXPECT_TRUE(DrawBoxes(WhiteJpeg(40, 30), boxes).ok());
  EXPECT_FALSE(DrawBoxes("no picture", boxes).ok());
}

TEST(BoxPicture, FindsThePicturesOfAnInput) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "npuc_box_picture_test";
  std::filesystem::remove_all(folder);
  const auto write = [&](const std::string& name, const std::string& bytes) {
    ASSERT_TRUE(WriteFileAtomically((folder / name).string(), bytes).ok());
  };
  write("b.jpg", WhiteJpeg(8, 8));
  write("a/c.jpg", WhiteJpeg(8, 8));
  write("pictures.yaml", "scale: 2\n");
  const auto all = PicturesOf(folder.string());
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->size(), 2U);
  EXPECT_EQ((*all)[0].name, "a_c");
  EXPECT_EQ((*all)[1].name, "b");
  const auto one = PicturesOf((folder / "b.jpg").string());
  ASSERT_TRUE(one.ok()) << one.status();
  ASSERT_EQ(one->size(), 1U);
  EXPECT_EQ((*one)[0].name, "b");
  write("x.npy", "no picture");
  EXPECT_TRUE(PicturesOf(folder.string())->empty());
}

}  // namespace
}  // namespace npuc
