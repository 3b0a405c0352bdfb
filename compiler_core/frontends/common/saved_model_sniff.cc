#include "compiler_core/frontends/common/saved_model_sniff.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "compiler_core/base/archive.h"
#include "compiler_core/base/zip_directory.h"

namespace npuc {

bool IsSavedModel(absl::string_view bytes) {
  if (!LooksLikeZip(bytes)) return false;
  const auto records = ReadZipDirectory(bytes, kMaxArchiveEntries);
  return records.ok() && std::any_of(records->begin(), records->end(), [](const ZipRecord& record) {
           return record.name == "saved_model.pb" || absl::EndsWith(record.name, "/saved_model.pb");
         });
}

}  // namespace npuc
