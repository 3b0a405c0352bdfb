#ifndef NPUC_COMPILER_CORE_EMIT_FIXTURES_TEST_UTIL_H_
#define NPUC_COMPILER_CORE_EMIT_FIXTURES_TEST_UTIL_H_

// For tests alone: files that the project does not hold (published vendor headers and their kin).

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace npuc {

// NPUC_SHARED, else ../shared beside the source tree; tests skip where it does not exist.
inline std::filesystem::path SharedFolder() {
  if (const char* shared = std::getenv("NPUC_SHARED")) return shared;
  const char* source = std::getenv("NPUC_SOURCE_DIR");
  return std::filesystem::path(source == nullptr ? "." : source) / ".." / "shared";
}

inline std::string ReadTestFile(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

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
