#ifndef NPUC_COMPILER_CORE_BASE_ZIP_ENTRY_H_
#define NPUC_COMPILER_CORE_BASE_ZIP_ENTRY_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/zip_directory.h"

namespace npuc {

inline constexpr uint16_t kZipStored = 0;
inline constexpr uint16_t kZipDeflated = 8;

// The content of an entry of the zip file `file`, whose directory gave `record`: a view of the file
// where the entry is stored, of `inflated` where it is deflated. The caller has checked the method,
// and that record.size, which is allocated at once, is within its limits. INVALID_ARGUMENT: the
// data are damaged; the message goes on from the entry's name ("is damaged: ...").
absl::StatusOr<absl::string_view> ReadZipEntry(absl::string_view file, const ZipRecord& record,
                                               std::string& inflated);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_ZIP_ENTRY_H_
