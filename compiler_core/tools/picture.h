#ifndef NPUC_COMPILER_CORE_TOOLS_PICTURE_H_
#define NPUC_COMPILER_CORE_TOOLS_PICTURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace npuc {

struct Color {
  uint8_t red = 0, green = 0, blue = 0;
};

// A picture of a fixed size to draw on, white at first. What lies outside is cut off. Coordinates
// are pixels, from the left and from the top. Not thread-safe.
class Picture {
 public:
  // 1 <= width, height <= kMaxSide.
  Picture(int width, int height);

  static constexpr int kMaxSide = 4096;
  // Of a character, at scale 1; the space between characters is part of it.
  static constexpr int kGlyphWidth = 6;
  static constexpr int kGlyphHeight = 8;

  int width() const { return width_; }
  int height() const { return height_; }
  // Rows from the top, three bytes a pixel.
  const std::vector<uint8_t>& pixels() const { return pixels_; }

  void Fill(int x, int y, int width, int height, Color color);
  // ASCII; any other byte is drawn as '?'.
  void Text(int x, int y, absl::string_view text, int scale, Color color);
  static int TextWidth(absl::string_view text, int scale);

 private:
  int width_;
  int height_;
  std::vector<uint8_t> pixels_;
};

// A JPEG file of the picture. The same picture gives the same bytes, on any machine.
absl::StatusOr<std::string> EncodeJpeg(const Picture& picture);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TOOLS_PICTURE_H_
