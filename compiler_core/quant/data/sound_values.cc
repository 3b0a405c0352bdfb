#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/quant/data/sound_form.h"

namespace npuc {
namespace {

using Features = SoundForm::Features;

constexpr double kTwoPi = 2 * std::numbers::pi;

// The discrete Fourier transform in place; the size is a power of two.
void Transform(std::vector<std::complex<double>>& values) {
  const size_t n = values.size();
  for (size_t i = 1, j = 0; i < n; ++i) {
    size_t bit = n >> 1;
    for (; (j & bit) != 0; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(values[i], values[j]);
  }
  for (size_t half = 1; half < n; half *= 2) {
    for (size_t k = 0; k < half; ++k) {
      const std::complex<double> turn =
          std::polar(1.0, -kTwoPi * static_cast<double>(k) / static_cast<double>(2 * half));
      for (size_t at = k; at < n; at += 2 * half) {
        const std::complex<double> odd = values[at + half] * turn;
        values[at + half] = values[at] - odd;
        values[at] += odd;
      }
    }
  }
}

double MelOf(double hz) { return 1127.0 * std::log1p(hz / 700.0); }

class Analyser {
 public:
  explicit Analyser(const SoundForm& form) : form_(form) {
    const auto size = static_cast<size_t>(form.window);
    window_.assign(size, 1.0);
    if (form.window_form != SoundForm::Window::kNone) {
      const double a = form.window_form == SoundForm::Window::kHann ? 0.5 : 0.54;
      for (size_t i = 0; i < size; ++i) {
        window_[i] = a - (1 - a) * std::cos(kTwoPi * static_cast<double>(i) /
                                            static_cast<double>(form.window));
      }
    }
    if (form.features == Features::kMel || form.features == Features::kMfcc) MakeTriangles();
  }

  // The count of numbers that a frame becomes.
  int64_t Width() const {
    if (form_.features == Features::kMel) return form_.mels;
    if (form_.features == Features::kMfcc) return form_.coefficients;
    return form_.fft / 2 + 1;
  }

  void Frame(const float* samples, float* out) const {
    std::vector<std::complex<double>> values(static_cast<size_t>(form_.fft));
    for (size_t i = 0; i < window_.size(); ++i) values[i] = samples[i] * window_[i];
    Transform(values);
    std::vector<double> numbers(static_cast<size_t>(form_.fft / 2 + 1));
    const bool is_size = form_.features == Features::kSpectrum;
    for (size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = is_size ? std::abs(values[i]) : std::norm(values[i]);
    }
    if (!triangles_.empty()) numbers = Mels(numbers);
    for (double& number : numbers) number = Logarithm(number);
    if (form_.features == Features::kMfcc) numbers = Cosines(numbers);
    for (size_t i = 0; i < static_cast<size_t>(Width()); ++i) {
      out[i] = static_cast<float>(numbers[i]);
    }
  }

 private:
  // By mel and frequency, without the constant part, as TensorFlow has it.
  void MakeTriangles() {
    const double high = form_.high > 0 ? form_.high : static_cast<double>(form_.rate) / 2;
    const double first = MelOf(form_.low);
    const double step = (MelOf(high) - first) / static_cast<double>(form_.mels + 1);
    const auto bins = static_cast<size_t>(form_.fft / 2 + 1);
    for (int64_t m = 0; m < form_.mels; ++m) {
      std::vector<double>& triangle = triangles_.emplace_back(bins, 0.0);
      const double foot = first + static_cast<double>(m) * step;
      for (size_t i = 1; i < bins; ++i) {
        const double mel = MelOf(static_cast<double>(i) * static_cast<double>(form_.rate) /
                                 static_cast<double>(form_.fft));
        const double rise = (mel - foot) / step;
        triangle[i] = std::max(0.0, std::min(rise, 2 - rise));
      }
    }
  }

  std::vector<double> Mels(const std::vector<double>& power) const {
    std::vector<double> sums;
    for (const std::vector<double>& triangle : triangles_) {
      double sum = 0;
      for (size_t i = 0; i < power.size(); ++i) sum += triangle[i] * power[i];
      sums.push_back(sum);
    }
    return sums;
  }

  double Logarithm(double x) const {
    const bool is_mfcc = form_.features == Features::kMfcc;
    if (form_.log == SoundForm::Log::kNone && !is_mfcc) return x;
    x = std::max(x, form_.floor);
    if (form_.log == SoundForm::Log::kDecadic) return std::log10(x);
    if (form_.log == SoundForm::Log::kDecibel) {
      return (form_.features == Features::kSpectrum ? 20 : 10) * std::log10(x);
    }
    return std::log(x);
  }

  std::vector<double> Cosines(const std::vector<double>& logs) const {
    const auto n = static_cast<double>(logs.size());
    std::vector<double> out;
    for (int64_t k = 0; k < form_.coefficients; ++k) {
      double sum = 0;
      for (size_t i = 0; i < logs.size(); ++i) {
        sum += logs[i] * std::cos(std::numbers::pi * static_cast<double>(k) *
                                  (static_cast<double>(i) + 0.5) / n);
      }
      out.push_back(sum * std::sqrt((k == 0 ? 1 : 2) / n));
    }
    return out;
  }

  const SoundForm& form_;
  std::vector<double> window_;
  std::vector<std::vector<double>> triangles_;
};

// One channel, as long as is needed.
absl::StatusOr<std::vector<float>> OneChannel(const Sound& sound, const SoundForm& form,
                                              int64_t needed) {
  if (sound.rate != form.rate) {
    return absl::InvalidArgumentError(
        absl::StrCat("it has ", sound.rate, " samples a second, and the input takes ", form.rate,
                     "; resample it, or state its rate in ", kSoundFormFile));
  }
  if (sound.channels > 1 && form.channel == SoundForm::Channel::kOnly) {
    return absl::InvalidArgumentError(absl::StrCat("it has ", sound.channels,
                                                   " channels; write channel: first or channel: "
                                                   "mean into ",
                                                   kSoundFormFile));
  }
  if (sound.count() != needed && !form.fits) {
    return absl::InvalidArgumentError(
        absl::StrCat("it has ", sound.count(), " samples, and the input takes ", needed,
                     "; cut it, or write fit: true into ", kSoundFormFile));
  }
  std::vector<float> samples(static_cast<size_t>(needed), 0.0f);
  const int64_t count = std::min(needed, sound.count());
  const bool is_mean = form.channel == SoundForm::Channel::kMean;
  for (int64_t i = 0; i < count; ++i) {
    double sum = 0;
    const int64_t taken = is_mean ? sound.channels : 1;
    for (int64_t c = 0; c < taken; ++c) {
      sum += sound.samples[static_cast<size_t>(i * sound.channels + c)];
    }
    samples[static_cast<size_t>(i)] = static_cast<float>(sum / static_cast<double>(taken));
  }
  return samples;
}

}  // namespace

absl::Status SoundToValues(const Sound& sound, const SoundForm& form, absl::Span<float> out) {
  const auto size = static_cast<int64_t>(out.size());
  if (form.features == Features::kSamples) {
    ASSIGN_OR_RETURN(const std::vector<float> samples, OneChannel(sound, form, size));
    std::copy(samples.begin(), samples.end(), out.begin());
  } else {
    const Analyser analyser(form);
    const int64_t width = analyser.Width();
    const int64_t frames = size / width;
    if (frames < 1 || size % width != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("a frame becomes ", width, " numbers, and the input takes ", size,
                       ", which is no whole number of frames; change ", kSoundFormFile));
    }
    if (frames > (kMaxSoundSamples - form.window) / form.hop + 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the input takes ", frames, " frames, more than ", kMaxSoundSamples, " samples have"));
    }
    ASSIGN_OR_RETURN(const std::vector<float> samples,
                     OneChannel(sound, form, form.window + (frames - 1) * form.hop));
    for (int64_t i = 0; i < frames; ++i) {
      analyser.Frame(samples.data() + i * form.hop, out.data() + i * width);
    }
  }
  for (float& value : out) value = static_cast<float>((value - form.mean) * form.scale);
  return absl::OkStatus();
}

}  // namespace npuc
