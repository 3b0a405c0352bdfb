#ifndef NPUC_COMPILER_CORE_EMIT_FIXTURES_TEST_UTIL_H_
#define NPUC_COMPILER_CORE_EMIT_FIXTURES_TEST_UTIL_H_

// For tests alone: files that the project does not hold (published vendor headers and their kin).

#include <algorithm>
#include <filesystem>
#include <vector>

#include "compiler_core/base/files_test_util.h"

namespace npuc {

// Every published header there is, sorted; empty where the folder is missing.
inline std::vector<std::filesystem::path> VendorHeaders() {
  std::vector<std::filesystem::path> headers;
  std::error_code error;
  const std::filesystem::path folder = SharedFolder() / "fixtures" / "vendor-headers";
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".h") headers.push_back(entry.path());
  }
  std::sort(headers.begin(), headers.end());
  const std::filesystem::path mnist =
      SharedFolder() / "fixtures" / "gxdnn-mnist" / "vendor_model.h";
  if (std::filesystem::exists(mnist)) headers.push_back(mnist);
  return headers;
}

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_EMIT_FIXTURES_TEST_UTIL_H_
