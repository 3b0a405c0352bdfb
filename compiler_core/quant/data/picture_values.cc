#include "compiler_core/quant/data/picture_values.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

namespace npuc {
namespace {

using Layout = PictureForm::Layout;

// Where an input holds the pixels.
struct Frame {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  bool channels_first = false;
};

bool IsChannels(int64_t size) { return size == 1 || size == 3; }

absl::StatusOr<Frame> FrameOf(const Shape& shape, const Pixels& pixels, Layout layout) {
  const bool has_batch = shape.size() == 4 && shape[0] == 1;
  const Shape sides(shape.begin() + (has_batch ? 1 : 0), shape.end());
  if (sides.size() == 2 && !IsChannels(sides[0])) return Frame{sides[0], sides[1], 1, false};
  if (sides.size() == 3) {
    const Frame last{sides[0], sides[1], sides[2], false};
    const Frame first{sides[1], sides[2], sides[0], true};
    const bool may_be_last = layout != Layout::kFirst && IsChannels(last.channels);
    const bool may_be_first = layout != Layout::kLast && IsChannels(first.channels);
    if (may_be_last && may_be_first) {
      return absl::InvalidArgumentError(
          absl::StrCat("the shape ", ShapeToString(shape),
                       " can have its channels first or last; say which by layout: NCHW or "
                       "layout: NHWC in pictures.yaml"));
    }
    if (may_be_last || may_be_first) return may_be_last ? last : first;
  }
  // No picture by its shape: the pixels row by row, of the picture's own size.
  const int64_t count = ElementCount(shape);
  for (const int64_t channels : {pixels.channels, int64_t{1}, int64_t{3}}) {
    if (count == pixels.height * pixels.width * channels) {
      return Frame{pixels.height, pixels.width, channels, layout == Layout::kFirst};
    }
  }
  return absl::InvalidArgumentError(absl::StrCat("an input of shape ", ShapeToString(shape),
                                                 " takes no picture of ", pixels.height, " x ",
                                                 pixels.width, " pixels"));
}

// The picture in the channels of the input, 0 to 255.
class Recolored {
 public:
  Recolored(const Pixels& pixels, int64_t channels, bool bgr)
      : pixels_(pixels), channels_(channels), bgr_(bgr) {}

  float At(int64_t row, int64_t column, int64_t channel) const {
    const auto* const pixel = reinterpret_cast<const uint8_t*>(pixels_.bytes.data()) +
                              (row * pixels_.width + column) * pixels_.channels;
    if (pixels_.channels == 1) return pixel[0];
    if (channels_ == 1) {
      return static_cast<float>(std::round(0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2]));
    }
    return pixel[bgr_ ? channels_ - 1 - channel : channel];
  }

 private:
  const Pixels& pixels_;
  const int64_t channels_;
  const bool bgr_;
};

// The two neighbours of a place along one side, and the weight of the second.
struct Between {
  int64_t low = 0;
  int64_t high = 0;
  float weight = 0;
};

std::vector<Between> PlacesAlong(int64_t from, int64_t to) {
  std::vector<Between> places(static_cast<size_t>(to));
  for (int64_t i = 0; i < to; ++i) {
    const double at = (static_cast<double>(i) + 0.5) * static_cast<double>(from) / to - 0.5;
    const double clamped = std::clamp(at, 0.0, static_cast<double>(from - 1));
    const auto low = static_cast<int64_t>(clamped);
    places[static_cast<size_t>(i)] = {low, std::min(low + 1, from - 1),
                                      static_cast<float>(clamped - static_cast<double>(low))};
  }
  return places;
}

// Bilinear, between the middles of pixels.
float Blend(const Recolored& picture, const Between& y, const Between& x, int64_t c) {
  const float left = picture.At(y.low, x.low, c);
  const float above = left + x.weight * (picture.At(y.low, x.high, c) - left);
  const float low = picture.At(y.high, x.low, c);
  const float below = low + x.weight * (picture.At(y.high, x.high, c) - low);
  return above + y.weight * (below - above);
}

absl::Status CheckPerChannel(absl::string_view name, size_t count, int64_t channels) {
  if (count <= 1 || count == static_cast<size_t>(channels)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("pictures.yaml has ", count, " numbers of ", name,
                                                 ", and the input has ", channels, " channels"));
}

double OfChannel(const std::vector<double>& numbers, int64_t channel, double otherwise) {
  if (numbers.empty()) return otherwise;
  return numbers.size() == 1 ? numbers[0] : numbers[static_cast<size_t>(channel)];
}

}  // namespace

absl::Status PictureToValues(const Pixels& pixels, const PictureForm& form, const Shape& shape,
                             absl::Span<float> out) {
  ASSIGN_OR_RETURN(const Frame frame, FrameOf(shape, pixels, form.layout));
  RETURN_IF_ERROR(CheckPerChannel("mean", form.mean.size(), frame.channels));
  RETURN_IF_ERROR(CheckPerChannel("scale", form.scale.size(), frame.channels));
  const bool same_size = frame.height == pixels.height && frame.width == pixels.width;
  if (!same_size && !form.resize) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the picture has ", pixels.height, " x ", pixels.width, " pixels, and the input ",
        frame.height, " x ", frame.width,
        "; write resize: true into pictures.yaml beside it, or give pictures of that size"));
  }
  const Recolored picture(pixels, frame.channels, form.bgr);
  const std::vector<Between> rows = PlacesAlong(pixels.height, frame.height);
  const std::vector<Between> columns = PlacesAlong(pixels.width, frame.width);
  const int64_t count = frame.height * frame.width;
  for (int64_t i = 0; i < count; ++i) {
    const Between& y = rows[static_cast<size_t>(i / frame.width)];
    const Between& x = columns[static_cast<size_t>(i % frame.width)];
    for (int64_t c = 0; c < frame.channels; ++c) {
      const double value =
          (Blend(picture, y, x, c) - OfChannel(form.mean, c, 0)) * OfChannel(form.scale, c, 1);
      const int64_t place = frame.channels_first ? c * count + i : i * frame.channels + c;
      out[static_cast<size_t>(place)] = static_cast<float>(value);
    }
  }
  return absl::OkStatus();
}

}  // namespace npuc
