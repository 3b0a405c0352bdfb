// Fuzzes the readers of pictures, and a picture as a sample of an input.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/quant/data/picture_file.h"
#include "compiler_core/quant/data/picture_values.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (!npuc::LooksLikePicture(bytes)) return 0;
  const absl::StatusOr<npuc::Pixels> pixels = npuc::ReadPicture(bytes);
  if (!pixels.ok()) {
    if (!absl::IsInvalidArgument(pixels.status())) __builtin_trap();
    return 0;
  }
  if (static_cast<int64_t>(pixels->bytes.size()) !=
      pixels->height * pixels->width * pixels->channels) {
    __builtin_trap();
  }
  std::vector<float> values(3 * 5 * 7);
  npuc::PictureForm form;
  form.resize = true;
  if (!npuc::PictureToValues(*pixels, form, {1, 3, 5, 7}, absl::MakeSpan(values)).ok()) {
    __builtin_trap();
  }
  return 0;
}
