// Fuzzes the reader of sounds, and a sound as a sample of an input.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/quant/data/sound_file.h"
#include "compiler_core/quant/data/sound_form.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<npuc::Sound> sound = npuc::ReadWav(bytes);
  if (!sound.ok()) {
    if (!absl::IsInvalidArgument(sound.status())) __builtin_trap();
    return 0;
  }
  if (sound->channels < 1 || sound->count() < 1) __builtin_trap();
  npuc::SoundForm form;
  form.rate = sound->rate;
  form.channel = npuc::SoundForm::Channel::kMean;
  form.fits = true;
  form.features = npuc::SoundForm::Features::kMfcc;
  form.window = 20;
  form.hop = 10;
  form.fft = 32;
  std::vector<float> values(3 * static_cast<size_t>(form.coefficients));
  if (!npuc::SoundToValues(*sound, form, absl::MakeSpan(values)).ok()) __builtin_trap();
  return 0;
}
