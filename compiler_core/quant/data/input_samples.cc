#include "compiler_core/quant/data/input_samples.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "compiler_core/quant/data/npy.h"
#include "compiler_core/quant/data/picture_file.h"
#include "compiler_core/quant/data/picture_values.h"
#include "compiler_core/quant/data/sound_file.h"

namespace npuc {
namespace {

constexpr int64_t kMaxRecordingBytes = int64_t{1} << 28;

// Counts the samples of `tensor` in an array of `shape`; 0 where it fits in no way.
int64_t SampleCount(const Shape& tensor, const std::vector<int64_t>& shape) {
  if (shape == tensor) return 1;
  if (shape.empty()) return 0;
  const Shape tail(shape.begin() + 1, shape.end());
  if (tail == tensor) return shape[0];
  if (tensor.empty() || tensor[0] == 0) return 0;
  const Shape tensor_tail(tensor.begin() + 1, tensor.end());
  return tail == tensor_tail && shape[0] % tensor[0] == 0 ? shape[0] / tensor[0] : 0;
}

absl::StatusOr<NpyHeader> HeaderOf(const ByteSource& bytes) {
  std::string start(static_cast<size_t>(std::min(bytes.size(), kMaxNpyHeaderBytes)), '\0');
  RETURN_IF_ERROR(bytes.Read(0, absl::MakeSpan(&start[0], start.size())));
  return ReadNpyHeader(start, bytes.size());
}

absl::Status ReadRecording(absl::string_view bytes, const SampleForms& forms, const Shape& shape,
                           absl::Span<float> out) {
  if (LooksLikeSound(bytes)) {
    ASSIGN_OR_RETURN(const Sound sound, ReadWav(bytes));
    return SoundToValues(sound, forms.sounds, out);
  }
  ASSIGN_OR_RETURN(const Pixels pixels, ReadPicture(bytes));
  return PictureToValues(pixels, forms.pictures, shape, out);
}

}  // namespace

absl::Status InFile(const SampleFile& file, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(Printable(file.name), ": ", status.message()));
}

absl::Status InputSamples::Add(const SampleFile& file) {
  std::string start(static_cast<size_t>(std::min<int64_t>(16, file.bytes->size())), '\0');
  RETURN_IF_ERROR(file.bytes->Read(0, absl::MakeSpan(start.data(), start.size())));
  Part part{.file = file, .first = size_};
  int64_t count = 1;
  if (!LooksLikeRecording(start)) {
    const absl::StatusOr<NpyHeader> header = HeaderOf(*file.bytes);
    if (!header.ok()) return InFile(file, header.status());
    count = SampleCount(shape_, header->shape);
    if (count == 0) {
      return InFile(file, absl::InvalidArgumentError(
                              absl::StrCat("an array of shape ", ShapeToString(header->shape),
                                           " holds no samples of input '", Printable(input_), "' ",
                                           ShapeToString(shape_), " (at most ", kMaxSamples, ")")));
    }
    part.dtype = header->dtype;
    part.offset = header->data_offset;
  }
  if (count > kMaxSamples - size_) {
    return InFile(file, absl::InvalidArgumentError(
                            absl::StrCat("an input has at most ", kMaxSamples, " samples")));
  }
  size_ += count;
  parts_.push_back(std::move(part));
  return absl::OkStatus();
}

absl::Status InputSamples::Read(int64_t index, std::vector<float>& out) const {
  const int64_t elements = ElementCount(shape_);
  out.assign(static_cast<size_t>(elements), 0);
  if (parts_.empty()) return absl::OkStatus();
  NPUC_CHECK(index >= 0 && index < size_);
  const Part& part = *std::prev(
      std::upper_bound(parts_.begin(), parts_.end(), index,
                       [](int64_t wanted, const Part& each) { return wanted < each.first; }));
  if (part.dtype == DType::kInvalid) {
    const absl::StatusOr<std::string> bytes = ReadAll(*part.file.bytes, kMaxRecordingBytes);
    if (!bytes.ok()) return InFile(part.file, bytes.status());
    return InFile(part.file, ReadRecording(*bytes, part.file.forms, shape_, absl::MakeSpan(out)));
  }
  const int64_t sample_bytes = elements * SizeOf(part.dtype);
  std::string bytes(static_cast<size_t>(sample_bytes), '\0');
  RETURN_IF_ERROR(part.file.bytes->Read(part.offset + (index - part.first) * sample_bytes,
                                        absl::MakeSpan(bytes.data(), bytes.size())));
  NpyElements(part.dtype, bytes.data(), out);
  for (const float value : out) {
    if (std::isfinite(value)) continue;
    return InFile(part.file,
                  absl::InvalidArgumentError(absl::StrCat("sample ", index - part.first,
                                                          " holds a value that is not finite")));
  }
  return absl::OkStatus();
}

}  // namespace npuc
