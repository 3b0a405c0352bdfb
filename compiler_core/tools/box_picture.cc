#include "compiler_core/tools/box_picture.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"
#include "compiler_core/base/archive.h"
#include "compiler_core/base/status.h"
#include "compiler_core/quant/data/picture_file.h"
#include "compiler_core/quant/data/sample_forms.h"
#include "compiler_core/tools/array_files.h"
#include "compiler_core/tools/files.h"
#include "compiler_core/tools/picture.h"

namespace npuc {
namespace {

constexpr int64_t kMaxFileBytes = int64_t{1} << 30;
constexpr Color kColors[] = {{230, 25, 75},  {60, 180, 75}, {0, 130, 200},  {245, 130, 48},
                             {145, 30, 180}, {0, 128, 128}, {170, 110, 40}, {128, 0, 0}};
constexpr Color kWhite = {255, 255, 255};

std::string NameOfFile(absl::string_view path) {
  const size_t dot = path.rfind('.');
  const size_t slash = path.rfind('/');
  const bool has_ending = dot != path.npos && (slash == path.npos || dot > slash);
  return FileStem(std::string(has_ending ? path.substr(0, dot) : path));
}

// The picture, of every `step`-th pixel.
Picture Copy(const Pixels& pixels, int64_t step) {
  Picture picture(static_cast<int>((pixels.width + step - 1) / step),
                  static_cast<int>((pixels.height + step - 1) / step));
  for (int y = 0; y < picture.height(); ++y) {
    for (int x = 0; x < picture.width(); ++x) {
      const int64_t at = (y * step * pixels.width + x * step) * pixels.channels;
      const auto byte = [&](int64_t channel) {
        return static_cast<uint8_t>(
            pixels.bytes[static_cast<size_t>(at + std::min(channel, pixels.channels - 1))]);
      };
      picture.Fill(x, y, 1, 1, {byte(0), byte(1), byte(2)});
    }
  }
  return picture;
}

// The pixel of a part of a side. Boxes may lie beyond the picture, and a score may be no number.
int PixelOf(float part, int side) {
  if (!(part > 0)) return 0;
  return std::min(static_cast<int>(std::lround(std::min(part, 1.0f) * static_cast<float>(side))),
                  side - 1);
}

void DrawBox(const DetectedBox& box, Picture& picture) {
  const Color color = kColors[static_cast<size_t>(box.class_id) % std::size(kColors)];
  const int thick = std::max(1, std::min(picture.width(), picture.height()) / 200);
  const int left = PixelOf(box.x0, picture.width());
  const int top = PixelOf(box.y0, picture.height());
  const int width = std::max(PixelOf(box.x1, picture.width()) - left + 1, 1);
  const int height = std::max(PixelOf(box.y1, picture.height()) - top + 1, 1);
  picture.Fill(left, top, width, thick, color);
  picture.Fill(left, top + height - thick, width, thick, color);
  picture.Fill(left, top, thick, height, color);
  picture.Fill(left + width - thick, top, thick, height, color);
  const std::string text = absl::StrFormat("%d %.2f", box.class_id, box.score);
  const int scale = std::max(1, picture.height() / 400);
  const int text_height = scale * Picture::kGlyphHeight;
  const int text_top = std::max(top - text_height, 0);
  picture.Fill(left, text_top, Picture::TextWidth(text, scale) + scale, text_height, color);
  picture.Text(left + scale, text_top + scale / 2, text, scale, kWhite);
}

}  // namespace

absl::StatusOr<std::vector<PictureFile>> PicturesOf(const std::string& path) {
  ASSIGN_OR_RETURN(const FileBytes file, ReadInputBytes(path, kMaxFileBytes));
  std::vector<PictureFile> pictures;
  if (LooksLikePicture(file.view())) {
    const size_t slash = path.rfind('/');
    const std::string name = slash == path.npos ? path : path.substr(slash + 1);
    pictures.push_back({NameOfFile(name), std::string(file.view())});
  }
  if (!LooksLikeZip(file.view())) return pictures;
  ASSIGN_OR_RETURN(std::vector<ZipFile> entries, ReadArchive(file.view(), kMaxFileBytes));
  std::sort(entries.begin(), entries.end(),
            [](const ZipFile& a, const ZipFile& b) { return a.name < b.name; });
  for (ZipFile& entry : entries) {
    const bool is_form = std::any_of(kFormFiles.begin(), kFormFiles.end(),
                                     [&](absl::string_view form) { return entry.name == form; });
    if (is_form) continue;
    if (!LooksLikePicture(entry.bytes)) return std::vector<PictureFile>();
    pictures.push_back({NameOfFile(entry.name), std::move(entry.bytes)});
  }
  return pictures;
}

absl::StatusOr<std::string> DrawBoxes(absl::string_view picture,
                                      absl::Span<const DetectedBox> boxes) {
  ASSIGN_OR_RETURN(const Pixels pixels, ReadPicture(picture));
  const int64_t step =
      (std::max(pixels.width, pixels.height) + Picture::kMaxSide - 1) / Picture::kMaxSide;
  Picture drawn = Copy(pixels, step);
  // The best ones last, so that they lie above the others.
  for (auto box = boxes.rbegin(); box != boxes.rend(); ++box) DrawBox(*box, drawn);
  return EncodeJpeg(drawn);
}

}  // namespace npuc
