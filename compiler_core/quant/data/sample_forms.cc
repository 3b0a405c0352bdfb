#include "compiler_core/quant/data/sample_forms.h"

#include "compiler_core/base/status.h"
#include "compiler_core/quant/data/picture_file.h"
#include "compiler_core/quant/data/sound_file.h"

namespace npuc {

absl::Status ReadForm(absl::string_view name, absl::string_view text, SampleForms& forms) {
  if (name == kSoundFormFile) {
    ASSIGN_OR_RETURN(forms.sounds, SoundFormFromYaml(text));
  } else {
    ASSIGN_OR_RETURN(forms.pictures, PictureFormFromYaml(text));
  }
  return absl::OkStatus();
}

bool LooksLikeRecording(absl::string_view start) {
  return LooksLikePicture(start) || LooksLikeSound(start);
}

}  // namespace npuc
