#include "compiler_core/tools/histogram_picture.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "compiler_core/tools/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
// After <cstdio>, whose FILE it needs.
#include <jpeglib.h>

namespace npuc {
namespace {

using ::testing::ElementsAre;

struct Decoded {
  int width = 0, height = 0;
  std::vector<uint8_t> pixels;
  const uint8_t* At(int x, int y) const { return &pixels[3 * (size_t{1} * y * width + x)]; }
};

// libjpeg's own error handler ends the test program, which is a failure, too.
Decoded Decode(const std::string& bytes) {
  jpeg_decompress_struct info = {};
  jpeg_error_mgr error = {};
  info.err = jpeg_std_error(&error);
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&info, TRUE);
  info.out_color_space = JCS_RGB;
  jpeg_start_decompress(&info);
  Decoded picture{static_cast<int>(info.output_width), static_cast<int>(info.output_height), {}};
  picture.pixels.resize(size_t{3} * info.output_width * info.output_height);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = &picture.pixels[size_t{3} * info.output_width * info.output_scanline];
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
  return picture;
}

bool IsBlue(const uint8_t* pixel) { return pixel[2] > 120 && pixel[0] < 100; }

WeightHistogram Weight(std::string name, std::vector<int64_t> counts) {
  WeightHistogram weight;
  weight.name = std::move(name);
  weight.shape = {3, 4};
  weight.values.low = -1;
  weight.values.high = 1;
  weight.values.counts = std::move(counts);
  return weight;
}

TEST(HistogramPicture, BarsOfTheDecodedFileAreAsHighAsTheCounts) {
  const WeightHistogram weight = Weight("dense/kernel", {0, 10, 25, 100, 50, 1, 0, 75});
  const absl::StatusOr<std::string> file = EncodeJpeg(DrawHistogram(weight));
  ASSERT_TRUE(file.ok()) << file.status();
  const Decoded picture = Decode(*file);
  ASSERT_EQ(picture.width, DrawHistogram(weight).width());
  ASSERT_EQ(picture.height, DrawHistogram(weight).height());
  const HistogramPlot plot = PlotOf(weight.values);
  EXPECT_EQ(plot.full, 100);
  const int bins = static_cast<int>(weight.values.counts.size());
  for (int i = 0; i < bins; ++i) {
    const int x = plot.left + plot.width * (2 * i + 1) / (2 * bins);
    int height = 0;
    for (int y = plot.top; y < plot.top + plot.height; ++y) height += IsBlue(picture.At(x, y));
    const double wanted = static_cast<double>(weight.values.counts[i]) / plot.full * plot.height;
    EXPECT_NEAR(height, wanted, 4) << "bin " << i;  // the axis below and JPEG's blur
  }
}

TEST(HistogramPicture, TheCompressedRangeIsDrawnInRed) {
  WeightHistogram weight = Weight("w", {5, 5, 5, 5});
  const HistogramPlot plot = PlotOf(weight.values);
  const auto red = [&](const Picture& picture) {
    int found = 0;
    for (int x = plot.left; x < plot.left + plot.width; ++x) {
      const uint8_t* pixel =
          &picture.pixels()[3 * (size_t{1} * (plot.top + 9) * picture.width() + x)];
      found += pixel[0] > 150 && pixel[1] < 100;
    }
    return found;
  };
  EXPECT_EQ(red(DrawHistogram(weight)), 0);
  weight.compressed = true;
  weight.range_min = -0.5;
  weight.range_max = 0.5;
  EXPECT_EQ(red(DrawHistogram(weight)), 4);  // two lines, two pixels wide
  weight.range_max = 7;                      // beyond the values
  EXPECT_EQ(red(DrawHistogram(weight)), 2);
}

TEST(HistogramPicture, EveryCharacterHasAShapeOfItsOwn) {
  std::vector<std::vector<uint8_t>> seen;
  for (int c = 32; c < 127; ++c) {
    Picture picture(Picture::kGlyphWidth, Picture::kGlyphHeight);
    picture.Text(0, 0, std::string(1, static_cast<char>(c)), 1, {});
    EXPECT_EQ(std::count(seen.begin(), seen.end(), picture.pixels()), 0) << static_cast<char>(c);
    seen.push_back(picture.pixels());
  }
  Picture other(Picture::kGlyphWidth, Picture::kGlyphHeight);
  other.Text(0, 0, "\xff", 1, {});
  EXPECT_EQ(other.pixels(), seen['?' - 32]);
}

// Names and numbers of any kind are drawn without leaving the picture.
TEST(HistogramPicture, OddHistogramsAreDrawn) {
  WeightHistogram weight = Weight(std::string(5000, 'x'), {INT64_MAX / 2});
  weight.values.low = -3e38;
  weight.values.high = 3e38;
  weight.values.min = -3e38;
  weight.compressed = true;
  weight.range_min = -1e308;
  weight.range_max = NAN;
  EXPECT_TRUE(EncodeJpeg(DrawHistogram(weight)).ok());
  EXPECT_TRUE(EncodeJpeg(DrawHistogram(Weight("", {0, 0}))).ok());
}

TEST(HistogramFileNames, AreSafeAndDiffer) {
  EXPECT_THAT(HistogramFileNames({Weight("a/b:0", {}), Weight("a_b:0", {}), Weight("A_b_0", {}),
                                  Weight("a_b_0_2", {}), Weight("..", {}), Weight("-rf", {}),
                                  Weight("", {}), Weight("\xc3\xa9\n", {})}),
              ElementsAre("a_b_0.jpg", "a_b_0_2.jpg", "A_b_0_3.jpg", "a_b_0_2_2.jpg", "_...jpg",
                          "_-rf.jpg", "_.jpg", "___.jpg"));
  const std::string longest = HistogramFileNames({Weight(std::string(4096, 'n'), {})})[0];
  EXPECT_EQ(longest, std::string(100, 'n') + ".jpg");
}

TEST(WriteHistograms, WritesTheSameBytesTwice) {
  const std::string folder = ::testing::TempDir() + "/npu_jpgs";
  std::filesystem::remove_all(folder);
  const std::vector<WeightHistogram> weights = {Weight("x", {1, 2}), Weight("y", {2, 1})};
  const auto first = WriteHistograms(weights, folder);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_THAT(*first, ElementsAre(folder + "/x.jpg", folder + "/y.jpg"));
  const std::string x = ReadFile((*first)[0], 1 << 20).value();
  EXPECT_NE(x, ReadFile((*first)[1], 1 << 20).value());
  ASSERT_TRUE(WriteHistograms(weights, folder).ok());
  EXPECT_EQ(ReadFile((*first)[0], 1 << 20).value(), x);
  EXPECT_FALSE(WriteHistograms(weights, (*first)[0]).ok()) << "a file is no folder";
}

}  // namespace
}  // namespace npuc
