#ifndef NPUC_COMPILER_CORE_QUANT_DATA_SOUND_FILE_H_
#define NPUC_COMPILER_CORE_QUANT_DATA_SOUND_FILE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace npuc {

// The samples of a sound file, channels together, from -1 to 1 where they were integers.
struct Sound {
  int64_t rate = 0;  // samples a second
  int64_t channels = 0;
  std::vector<float> samples;  // count * channels

  int64_t count() const { return static_cast<int64_t>(samples.size()) / channels; }
};

inline constexpr int64_t kMaxSoundSamples = int64_t{1} << 26;  // of all channels
inline constexpr int64_t kMaxSoundChannels = 64;

// True for the beginning of a WAV file, 12 bytes.
bool LooksLikeSound(absl::string_view start);

// A WAV file of PCM in 8, 16, 24 or 32 bits, or of floats in 32 or 64. Integers are divided by half
// their range: 16 bits by 32768. INVALID_ARGUMENT saying what is wrong; nothing is allocated above
// the limits, nor above what the file can hold. Source: Multimedia Programming Interface and Data
// Specifications 1.0 (RIFF, WAVE), and WAVEFORMATEXTENSIBLE.
absl::StatusOr<Sound> ReadWav(absl::string_view file);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_DATA_SOUND_FILE_H_
