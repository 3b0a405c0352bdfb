#include <libdeflate.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "compiler_core/quant/data/picture_file.h"

namespace npuc {
namespace {

constexpr absl::string_view kSignature = "\x89PNG\r\n\x1a\n";
constexpr int64_t kMostRatio = 1100;  // deflate reaches 1032
constexpr size_t kPaletteBytes = 3 * 256;

absl::Status BrokenPng(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("not a usable PNG file: ", what));
}

uint32_t BigEndian(absl::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

struct Chunk {
  absl::string_view type;
  absl::string_view data;
};

// Takes a chunk from the front of `rest`: length, type, data, checksum of type and data.
absl::StatusOr<Chunk> TakeChunk(absl::string_view& rest) {
  constexpr size_t kAround = 12;
  if (rest.size() < kAround) return BrokenPng("it ends before its last chunk");
  const size_t length = BigEndian(rest);
  if (length > rest.size() - kAround) return BrokenPng("a chunk is longer than the file");
  const absl::string_view summed = rest.substr(4, length + 4);
  const Chunk chunk{summed.substr(0, 4), summed.substr(4)};
  if (libdeflate_crc32(0, summed.data(), summed.size()) != BigEndian(rest.substr(8 + length))) {
    return BrokenPng(absl::StrCat("the checksum of chunk '", Printable(chunk.type), "' is wrong"));
  }
  rest.remove_prefix(length + kAround);
  return chunk;
}

class PngReader {
 public:
  absl::StatusOr<Pixels> Read(absl::string_view rest) {
    rest.remove_prefix(kSignature.size());
    ASSIGN_OR_RETURN(const Chunk header, TakeChunk(rest));
    RETURN_IF_ERROR(ReadHeader(header));
    std::string deflated;
    for (;;) {
      ASSIGN_OR_RETURN(const Chunk chunk, TakeChunk(rest));
      if (chunk.type == "IEND") break;
      if (chunk.type == "PLTE") palette_ = chunk.data;
      if (chunk.type == "IDAT") absl::StrAppend(&deflated, chunk.data);
    }
    if (is_palette_ &&
        (palette_.empty() || palette_.size() % 3 != 0 || palette_.size() > kPaletteBytes)) {
      return BrokenPng("it has no palette of up to 256 colours");
    }
    ASSIGN_OR_RETURN(std::string rows, Inflate(deflated));
    RETURN_IF_ERROR(Unfilter(rows));
    return ToPixels(rows);
  }

 private:
  absl::Status ReadHeader(const Chunk& chunk) {
    if (chunk.type != "IHDR" || chunk.data.size() != 13) return BrokenPng("it has no header");
    pixels_.width = BigEndian(chunk.data);
    pixels_.height = BigEndian(chunk.data.substr(4));
    depth_ = static_cast<uint8_t>(chunk.data[8]);
    const int color = static_cast<uint8_t>(chunk.data[9]);
    if (pixels_.width < 1 || pixels_.height < 1 || pixels_.width > kMaxPictureSide ||
        pixels_.height > kMaxPictureSide || pixels_.width * pixels_.height > kMaxPicturePixels) {
      return BrokenPng(absl::StrCat("it is ", pixels_.width, " x ", pixels_.height,
                                    " pixels; a side has 1 to ", kMaxPictureSide,
                                    ", and all at most ", kMaxPicturePixels));
    }
    constexpr int kGrey = 0, kRgb = 2, kPalette = 3, kGreyAlpha = 4, kRgbAlpha = 6;
    samples_ = color == kRgb ? 3 : color == kGreyAlpha ? 2 : color == kRgbAlpha ? 4 : 1;
    is_palette_ = color == kPalette;
    pixels_.channels = color == kGrey || color == kGreyAlpha ? 1 : 3;
    const bool is_small = depth_ == 1 || depth_ == 2 || depth_ == 4;
    const bool depth_fits = depth_ == 8 || (is_small && (color == kGrey || is_palette_)) ||
                            (depth_ == 16 && !is_palette_);
    if (color > kRgbAlpha || color == 1 || color == 5 || !depth_fits || chunk.data[10] != 0 ||
        chunk.data[11] != 0) {
      return BrokenPng("its header has a colour type, depth or method that PNG has not");
    }
    if (chunk.data[12] != 0) {
      return BrokenPng("it is interlaced; save it without interlacing");
    }
    row_bytes_ = (pixels_.width * samples_ * depth_ + 7) / 8;
    return absl::OkStatus();
  }

  // The rows, each behind the number of its filter.
  absl::StatusOr<std::string> Inflate(absl::string_view deflated) const {
    const int64_t wanted = (row_bytes_ + 1) * pixels_.height;
    if (wanted > static_cast<int64_t>(deflated.size()) * kMostRatio) {
      return BrokenPng("its data are too few for its size");
    }
    std::string rows(static_cast<size_t>(wanted), '\0');
    const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)>
        decompressor(libdeflate_alloc_decompressor(), &libdeflate_free_decompressor);
    if (decompressor == nullptr ||
        libdeflate_zlib_decompress(decompressor.get(), deflated.data(), deflated.size(),
                                   rows.data(), rows.size(), nullptr) != LIBDEFLATE_SUCCESS) {
      return BrokenPng("its data cannot be inflated to its size");
    }
    return rows;
  }

  absl::Status Unfilter(std::string& rows) const {
    const int64_t step =
        std::max(1, samples_ * depth_ / 8);  // to the same sample of the pixel left
    const std::string zeros(static_cast<size_t>(row_bytes_), '\0');
    const char* above = zeros.data();
    for (int64_t y = 0; y < pixels_.height; ++y) {
      char* const line = rows.data() + y * (row_bytes_ + 1);
      char* const row = line + 1;
      if (static_cast<uint8_t>(line[0]) > 4)
        return BrokenPng("a row has a filter that PNG has not");
      for (int64_t x = 0; x < row_bytes_; ++x) {
        const int left = x < step ? 0 : static_cast<uint8_t>(row[x - step]);
        const int corner = x < step ? 0 : static_cast<uint8_t>(above[x - step]);
        const int guess = Predicted(line[0], left, static_cast<uint8_t>(above[x]), corner);
        row[x] = static_cast<char>(static_cast<uint8_t>(row[x]) + guess);
      }
      above = row;
    }
    return absl::OkStatus();
  }

  static int Predicted(int filter, int left, int above, int corner) {
    switch (filter) {
      case 1:
        return left;
      case 2:
        return above;
      case 3:
        return (left + above) / 2;
      case 4: {  // Paeth's
        const int to_left = std::abs(above - corner);
        const int to_above = std::abs(left - corner);
        const int to_corner = std::abs(left + above - 2 * corner);
        if (to_left <= to_above && to_left <= to_corner) return left;
        return to_above <= to_corner ? above : corner;
      }
      default:
        return 0;
    }
  }

  // Sample i of a row: its upper 8 bits, or all where there are fewer.
  int SampleOf(const char* row, int64_t i) const {
    if (depth_ >= 8) return static_cast<uint8_t>(row[i * depth_ / 8]);
    const int64_t bit = i * depth_;
    const int shift = static_cast<int>(8 - depth_ - bit % 8);
    return static_cast<uint8_t>(row[bit / 8]) >> shift & ((1 << depth_) - 1);
  }

  absl::StatusOr<Pixels> ToPixels(const std::string& rows) {
    pixels_.bytes.resize(static_cast<size_t>(pixels_.width * pixels_.height * pixels_.channels));
    char* to = pixels_.bytes.data();
    const int most = depth_ >= 8 ? 255 : (1 << depth_) - 1;
    for (int64_t y = 0; y < pixels_.height; ++y) {
      const char* const row = rows.data() + y * (row_bytes_ + 1) + 1;
      for (int64_t x = 0; x < pixels_.width; ++x) {
        for (int64_t c = 0; c < pixels_.channels; ++c) {
          const int sample = SampleOf(row, x * samples_ + (is_palette_ ? 0 : c));
          const size_t color = static_cast<size_t>(3 * sample + c);
          if (is_palette_ && color >= palette_.size())
            return BrokenPng("a colour is not in its palette");
          *to++ = is_palette_ ? palette_[color] : static_cast<char>(sample * 255 / most);
        }
      }
    }
    return std::move(pixels_);
  }

  Pixels pixels_;
  int depth_ = 0;    // bits of a sample
  int samples_ = 0;  // of a pixel, as stored
  bool is_palette_ = false;
  absl::string_view palette_;
  int64_t row_bytes_ = 0;
};

}  // namespace

bool LooksLikePng(absl::string_view start) { return absl::StartsWith(start, kSignature); }

absl::StatusOr<Pixels> ReadPng(absl::string_view file) { return PngReader().Read(file); }

}  // namespace npuc
