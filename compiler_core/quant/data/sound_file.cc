#include "compiler_core/quant/data/sound_file.h"

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

namespace npuc {
namespace {

constexpr size_t kHeadBytes = 12;
constexpr size_t kChunkHeadBytes = 8;
constexpr uint32_t kPcm = 1;
constexpr uint32_t kFloat = 3;
constexpr uint32_t kExtensible = 0xFFFE;

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("a WAV file ", what));
}

// `bytes` bytes at `at`, the least first.
uint64_t Little(absl::string_view file, size_t at, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<uint8_t>(file[at + i]);
  return value;
}

struct Format {
  uint32_t tag = 0;
  int64_t channels = 0;
  int64_t rate = 0;
  int64_t bits = 0;
};

absl::StatusOr<Format> ReadFormat(absl::string_view chunk) {
  if (chunk.size() < 16) return Wrong("whose format is cut short");
  Format format;
  format.tag = static_cast<uint32_t>(Little(chunk, 0, 2));
  format.channels = static_cast<int64_t>(Little(chunk, 2, 2));
  format.rate = static_cast<int64_t>(Little(chunk, 4, 4));
  format.bits = static_cast<int64_t>(Little(chunk, 14, 2));
  // The extensible form has the tag in the first bytes of an identifier.
  if (format.tag == kExtensible && chunk.size() >= 26) {
    format.tag = static_cast<uint32_t>(Little(chunk, 24, 2));
  }
  const bool is_pcm = format.tag == kPcm && (format.bits == 8 || format.bits == 16 ||
                                             format.bits == 24 || format.bits == 32);
  const bool is_float = format.tag == kFloat && (format.bits == 32 || format.bits == 64);
  if (!is_pcm && !is_float) {
    return Wrong(absl::StrCat("of format ", format.tag, " with ", format.bits,
                              " bits; allowed are PCM in 8, 16, 24 and 32 bits and floats in 32 "
                              "and 64"));
  }
  if (format.channels < 1 || format.channels > kMaxSoundChannels || format.rate < 1) {
    return Wrong(absl::StrCat("of ", format.channels, " channels at ", format.rate,
                              " samples a second; allowed are 1 to ", kMaxSoundChannels,
                              " channels"));
  }
  return format;
}

float SampleAt(absl::string_view data, size_t at, const Format& format) {
  const auto bytes = static_cast<size_t>(format.bits / 8);
  const uint64_t raw = Little(data, at, bytes);
  if (format.tag == kFloat && bytes == 8) {
    double value = 0;
    std::memcpy(&value, &raw, sizeof(value));
    return static_cast<float>(value);
  }
  if (format.tag == kFloat) {
    const auto half = static_cast<uint32_t>(raw);
    float value = 0;
    std::memcpy(&value, &half, sizeof(value));
    return value;
  }
  if (bytes == 1) return (static_cast<float>(raw) - 128.0f) / 128.0f;  // without a sign
  // The sign stands in the highest bit of 64.
  const auto wide = static_cast<int64_t>(raw << (64 - format.bits));
  return static_cast<float>(std::ldexp(static_cast<double>(wide), -63));
}

}  // namespace

bool LooksLikeSound(absl::string_view start) {
  return start.size() >= kHeadBytes && start.substr(0, 4) == "RIFF" && start.substr(8, 4) == "WAVE";
}

absl::StatusOr<Sound> ReadWav(absl::string_view file) {
  if (!LooksLikeSound(file)) return absl::InvalidArgumentError("the file is no WAV file");
  Format format;
  size_t at = kHeadBytes;
  while (at + kChunkHeadBytes <= file.size()) {
    const absl::string_view name = file.substr(at, 4);
    const uint64_t size = Little(file, at + 4, 4);
    at += kChunkHeadBytes;
    absl::string_view chunk = file.substr(at, static_cast<size_t>(size));
    if (name == "fmt ") {
      ASSIGN_OR_RETURN(format, ReadFormat(chunk));
    } else if (name == "data") {
      if (format.bits == 0) return Wrong("whose samples stand before their format");
      // A recorder that was switched off leaves 0 or all ones for the size.
      const bool is_open = size == 0 || size == UINT32_MAX;
      if (is_open) chunk = file.substr(at);
      if (!is_open && chunk.size() < size) return Wrong("whose samples are cut short");
      const auto bytes = static_cast<size_t>(format.bits / 8);
      const auto channels = static_cast<size_t>(format.channels);
      const size_t count = chunk.size() / (bytes * channels) * channels;
      if (count == 0) return Wrong("without samples");
      if (count > static_cast<size_t>(kMaxSoundSamples)) {
        return Wrong(absl::StrCat("of ", count, " samples; allowed are ", kMaxSoundSamples));
      }
      Sound sound{.rate = format.rate, .channels = format.channels, .samples = {}};
      sound.samples.resize(count);
      for (size_t i = 0; i < count; ++i) {
        sound.samples[i] = SampleAt(chunk, i * bytes, format);
        if (!std::isfinite(sound.samples[i])) return Wrong("with a sample that is not finite");
      }
      return sound;
    }
    at += static_cast<size_t>(size + (size & 1));  // chunks begin at even places
  }
  return Wrong("without samples");
}

}  // namespace npuc
