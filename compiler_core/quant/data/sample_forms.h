#ifndef NPUC_COMPILER_CORE_QUANT_DATA_SAMPLE_FORMS_H_
#define NPUC_COMPILER_CORE_QUANT_DATA_SAMPLE_FORMS_H_

#include <array>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "compiler_core/quant/data/picture_form.h"
#include "compiler_core/quant/data/sound_form.h"

namespace npuc {

// The ways from pictures and sounds to values.
struct SampleForms {
  PictureForm pictures = {};
  SoundForm sounds = {};
};

// The files of a folder or archive that say so.
inline constexpr std::array<absl::string_view, 2> kFormFiles = {kPictureFormFile, kSoundFormFile};

// Reads the one of them that `name` says. INVALID_ARGUMENT as the form's own reader has it.
absl::Status ReadForm(absl::string_view name, absl::string_view text, SampleForms& forms);

// True for the beginning of a picture or a sound, 16 bytes.
bool LooksLikeRecording(absl::string_view start);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_DATA_SAMPLE_FORMS_H_
