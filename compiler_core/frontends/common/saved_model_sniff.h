#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_SAVED_MODEL_SNIFF_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_SAVED_MODEL_SNIFF_H_

#include "absl/strings/string_view.h"

namespace npuc {

// True for a zip archive with a saved_model.pb: the folder of a TensorFlow SavedModel, as programs
// hand it to the compiler (base/folder_archive.h). TorchScript's archives are zip files, too.
bool IsSavedModel(absl::string_view bytes);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_SAVED_MODEL_SNIFF_H_
