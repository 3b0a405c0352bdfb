#ifndef NPUC_COMPILER_CORE_BASE_ZIP_WRITER_H_
#define NPUC_COMPILER_CORE_BASE_ZIP_WRITER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace npuc {

struct ZipFile {
  std::string name;  // UTF-8, with '/' between folders
  std::string bytes;
};

// A zip file that stores its entries as they are, without zip64: a function of its input alone, as
// every entry has the format's earliest time. RESOURCE_EXHAUSTED: more than the form can hold.
absl::StatusOr<std::string> WriteZip(const std::vector<ZipFile>& files);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_ZIP_WRITER_H_
