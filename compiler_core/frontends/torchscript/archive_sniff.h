#ifndef NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_ARCHIVE_SNIFF_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_ARCHIVE_SNIFF_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/base/diagnostic.h"

namespace npuc::pt {

// The diagnostic about a file that is no zip archive: what it looks like, and what to do.
void AddNotATorchArchive(absl::string_view bytes, absl::string_view file, Diagnostics& diagnostics);

// The same about a zip archive, of these entries, that is no TorchScript archive.
void AddOtherZip(absl::Span<const absl::string_view> names, absl::string_view file,
                 Diagnostics& diagnostics);

}  // namespace npuc::pt

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_ARCHIVE_SNIFF_H_
