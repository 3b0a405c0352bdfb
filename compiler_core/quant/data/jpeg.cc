#include <csetjmp>
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/quant/data/picture_file.h"
// It needs the FILE of <cstdio>.
#include <jpeglib.h>

namespace npuc {
namespace {

// A progressive file may hold any number of scans, each of which takes the time of a picture.
constexpr int kMostScans = 100;
// A block of 8 x 8 pixels takes a bit or more.
constexpr int64_t kMostPixelsPerByte = 512;

struct Failure {
  jpeg_error_mgr manager;
  std::jmp_buf back;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void Fail(j_common_ptr info) {
  auto* const failure = reinterpret_cast<Failure*>(info->err);
  (*info->err->format_message)(info, failure->message);
  std::longjmp(failure->back, 1);
}

// Damaged data are a warning of libjpeg's, which goes on with grey.
void FailOnWarning(j_common_ptr info, int level) {
  if (level < 0) Fail(info);
}

void CheckScans(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMostScans) return;
  auto* const failure = reinterpret_cast<Failure*>(info->err);
  std::snprintf(failure->message, sizeof(failure->message), "it has more than %d scans",
                kMostScans);
  std::longjmp(failure->back, 1);
}

// Reads the header, which says how many bytes the pixels take, and, where `pixels.bytes` has them,
// the pixels. No object with a destructor may live here: libjpeg's errors jump out of it.
bool Decode(const unsigned char* file, size_t size, Pixels& pixels, Failure& failure) {
  jpeg_decompress_struct info = {};
  jpeg_progress_mgr progress = {};
  info.err = jpeg_std_error(&failure.manager);
  failure.manager.error_exit = &Fail;
  failure.manager.emit_message = &FailOnWarning;
  if (setjmp(failure.back) != 0) {
    jpeg_destroy_decompress(&info);
    return false;
  }
  jpeg_create_decompress(&info);
  progress.progress_monitor = &CheckScans;
  info.progress = &progress;
  jpeg_mem_src(&info, file, size);
  jpeg_read_header(&info, TRUE);
  info.out_color_space = info.num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
  info.dct_method = JDCT_ISLOW;  // the same result with and without the CPU's vector units
  jpeg_calc_output_dimensions(&info);
  pixels.width = info.output_width;
  pixels.height = info.output_height;
  pixels.channels = info.output_components;
  const size_t row_bytes = static_cast<size_t>(pixels.width * pixels.channels);
  if (pixels.bytes.size() == row_bytes * static_cast<size_t>(pixels.height)) {
    jpeg_start_decompress(&info);
    while (info.output_scanline < info.output_height) {
      JSAMPROW row =
          reinterpret_cast<JSAMPROW>(pixels.bytes.data()) + info.output_scanline * row_bytes;
      jpeg_read_scanlines(&info, &row, 1);
    }
    jpeg_finish_decompress(&info);
  }
  jpeg_destroy_decompress(&info);
  return true;
}

absl::Status BrokenJpeg(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("not a usable JPEG file: ", Printable(what)));
}

}  // namespace

bool LooksLikeJpeg(absl::string_view start) { return absl::StartsWith(start, "\xff\xd8\xff"); }

absl::StatusOr<Pixels> ReadJpeg(absl::string_view file) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(file.data());
  Pixels pixels;
  Failure failure = {};
  if (!Decode(bytes, file.size(), pixels, failure)) return BrokenJpeg(failure.message);
  if (pixels.width > kMaxPictureSide || pixels.height > kMaxPictureSide ||
      pixels.width * pixels.height > kMaxPicturePixels) {
    return BrokenJpeg(absl::StrCat("it is ", pixels.width, " x ", pixels.height,
                                   " pixels; a side has at most ", kMaxPictureSide,
                                   ", and all at most ", kMaxPicturePixels));
  }
  if (pixels.width * pixels.height > kMostPixelsPerByte * static_cast<int64_t>(file.size())) {
    return BrokenJpeg("its data are too few for its size");
  }
  pixels.bytes.resize(static_cast<size_t>(pixels.width * pixels.height * pixels.channels));
  if (!Decode(bytes, file.size(), pixels, failure)) return BrokenJpeg(failure.message);
  return pixels;
}

bool LooksLikePicture(absl::string_view start) {
  return LooksLikePng(start) || LooksLikeJpeg(start);
}

absl::StatusOr<Pixels> ReadPicture(absl::string_view file) {
  return LooksLikePng(file) ? ReadPng(file) : ReadJpeg(file);
}

}  // namespace npuc
