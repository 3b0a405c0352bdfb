#ifndef NPUC_COMPILER_CORE_QUANT_DATA_SOUND_FORM_H_
#define NPUC_COMPILER_CORE_QUANT_DATA_SOUND_FORM_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/quant/data/sound_file.h"

namespace npuc {

// The way from a sound file to the values of an input: its samples, or features of frames of them.
struct SoundForm {
  enum class Channel : uint8_t { kOnly, kFirst, kMean };
  enum class Features : uint8_t { kSamples, kSpectrum, kPower, kMel, kMfcc };
  enum class Window : uint8_t { kHann, kHamming, kNone };
  enum class Log : uint8_t { kNone, kNatural, kDecadic, kDecibel };

  int64_t rate = 16000;
  Channel channel = Channel::kOnly;
  bool fits = false;  // a sound of another length is cut, or silence follows
  Features features = Features::kSamples;
  int64_t window = 400;  // samples of a frame
  int64_t hop = 160;     // from one frame to the next
  int64_t fft = 512;     // points of the transform, a power of two
  Window window_form = Window::kHann;
  int64_t mels = 40;
  double low = 20;  // of the first triangle's foot, in Hz
  double high = 0;  // of the last one's; 0: half the rate
  Log log = Log::kNone;
  double floor = 1e-6;        // what the logarithm takes is at least this
  int64_t coefficients = 13;  // of mfcc, the first one included
  double mean = 0;            // (value - mean) * scale, last of all
  double scale = 1;
};

// The file of a folder or archive of samples that says what its sounds become.
inline constexpr absl::string_view kSoundFormFile = "sounds.yaml";

// "rate: 16000", "channel: first" (or mean), "fit: true", "features: samples" (spectrum, power,
// mel, mfcc), "window: 400", "hop: 160", "fft: 512", "window_form: hann" (hamming, none), "mels:
// 40", "low: 20", "high: 7600", "log: none" (ln, log10, db), "floor: 1e-6", "coefficients: 13",
// "mean: 0", "scale: 1" or "std: 1", each of which may be left out. INVALID_ARGUMENT saying where
// and what is wrong, and what is allowed.
absl::StatusOr<SoundForm> SoundFormFromYaml(absl::string_view text);

// Writes a sound as a sample of an input of out.size() values: its samples, or the features of each
// frame after those of the frame before.
// - spectrum: the size of the discrete Fourier transform of window_form * frame, fft / 2 + 1
// numbers.
// - power: its square.
// - mel: sums of the power under `mels` triangles whose feet are at equal distances on the scale
//   1127 ln(1 + f / 700), their tops 1 (as tf.signal.linear_to_mel_weight_matrix).
// - mfcc: the orthonormal DCT-II of the logarithm of mel (ln where log is none), its first
//   `coefficients`.
//
// and of the first three `log`: the logarithm of what is at least `floor`; db is 10 log10 of power
// and mel, 20 log10 of the spectrum. Windows are periodic. INVALID_ARGUMENT where the sound does
// not fit, saying what would.
absl::Status SoundToValues(const Sound& sound, const SoundForm& form, absl::Span<float> out);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_DATA_SOUND_FORM_H_
