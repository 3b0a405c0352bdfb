#include "compiler_core/tools/picture.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
// After <cstdio>, whose FILE it needs.
#include <jpeglib.h>

namespace npuc {
namespace {

constexpr int kFontRows = 7;
constexpr int kFontColumns = 5;
constexpr unsigned char kFirstGlyph = 32;
constexpr uint8_t kFont[][kFontRows] = {
#include "compiler_core/tools/font_5x7.inc"
};
constexpr size_t kGlyphs = sizeof(kFont) / sizeof(kFont[0]);
static_assert(kGlyphs == 127 - kFirstGlyph);

// High enough that text stays sharp.
constexpr int kQuality = 92;

const uint8_t* GlyphOf(char character) {
  const auto byte = static_cast<unsigned char>(character);
  const bool known = byte >= kFirstGlyph && byte - kFirstGlyph < static_cast<int>(kGlyphs);
  return kFont[(known ? byte : static_cast<unsigned char>('?')) - kFirstGlyph];
}

// libjpeg's way out of an error is a jump: its own handler ends the process.
struct ErrorJump {
  jpeg_error_mgr base;  // first, so that libjpeg's pointer to it is one to this
  jmp_buf place;
};

void JumpOut(j_common_ptr info) { std::longjmp(reinterpret_cast<ErrorJump*>(info->err)->place, 1); }
void Ignore(j_common_ptr info) {}

// Compresses into memory that libjpeg allocates: `*out`, to be freed by the caller. Holds nothing
// that a jump over it would leave behind. Returns false where libjpeg failed.
bool Compress(const uint8_t* pixels, int width, int height, unsigned char** out,
              unsigned long* size) {
  jpeg_compress_struct info = {};
  ErrorJump error = {};
  info.err = jpeg_std_error(&error.base);
  error.base.error_exit = JumpOut;
  error.base.output_message = Ignore;
  if (setjmp(error.place) != 0) {
    jpeg_destroy_compress(&info);
    return false;
  }
  jpeg_create_compress(&info);
  jpeg_mem_dest(&info, out, size);
  info.image_width = static_cast<JDIMENSION>(width);
  info.image_height = static_cast<JDIMENSION>(height);
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, kQuality, TRUE);
  info.dct_method = JDCT_ISLOW;  // the same result with and without the CPU's vector units
  for (int i = 0; i < info.num_components; ++i) {
    info.comp_info[i].h_samp_factor = info.comp_info[i].v_samp_factor = 1;
  }
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    const size_t first = static_cast<size_t>(info.next_scanline) * 3 * static_cast<size_t>(width);
    JSAMPROW row = const_cast<JSAMPROW>(pixels + first);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  return true;
}

}  // namespace

Picture::Picture(int width, int height) : width_(width), height_(height) {
  NPUC_CHECK(width >= 1 && width <= kMaxSide && height >= 1 && height <= kMaxSide);
  pixels_.assign(static_cast<size_t>(3) * width * height, 255);
}

void Picture::Fill(int x, int y, int width, int height, Color color) {
  const int right = std::min(x + width, width_);
  const int bottom = std::min(y + height, height_);
  for (int row = std::max(y, 0); row < bottom; ++row) {
    for (int column = std::max(x, 0); column < right; ++column) {
      uint8_t* pixel = &pixels_[3 * (static_cast<size_t>(row) * width_ + column)];
      pixel[0] = color.red;
      pixel[1] = color.green;
      pixel[2] = color.blue;
    }
  }
}

void Picture::Text(int x, int y, absl::string_view text, int scale, Color color) {
  for (const char character : text) {
    if (x >= width_) return;
    const uint8_t* glyph = GlyphOf(character);
    for (int row = 0; row < kFontRows; ++row) {
      for (int column = 0; column < kFontColumns; ++column) {
        if ((glyph[row] >> (kFontColumns - 1 - column) & 1) == 0) continue;
        Fill(x + column * scale, y + row * scale, scale, scale, color);
      }
    }
    x += kGlyphWidth * scale;
  }
}

int Picture::TextWidth(absl::string_view text, int scale) {
  return text.empty() ? 0 : (static_cast<int>(text.size()) * kGlyphWidth - 1) * scale;
}

absl::StatusOr<std::string> EncodeJpeg(const Picture& picture) {
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const bool done =
      Compress(picture.pixels().data(), picture.width(), picture.height(), &bytes, &size);
  std::string file;
  if (done) file.assign(reinterpret_cast<const char*>(bytes), size);
  std::free(bytes);
  if (!done) {
    return absl::InternalError(absl::StrCat("libjpeg could not encode a picture of ",
                                            picture.width(), " x ", picture.height(), " pixels"));
  }
  return file;
}

}  // namespace npuc
