#ifndef NPUC_COMPILER_CORE_BASE_FILES_TEST_UTIL_H_
#define NPUC_COMPILER_CORE_BASE_FILES_TEST_UTIL_H_

// For tests alone: files beside the program.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "gtest/gtest.h"

namespace npuc {

// The source tree: NPUC_SOURCE_DIR, which ctest sets, else where the test runs.
inline std::filesystem::path SourceFolder() {
  const char* source = std::getenv("NPUC_SOURCE_DIR");
  return source == nullptr ? "." : source;
}

// What the project does not hold (published models, suites, headers): NPUC_SHARED, else ../shared
// beside the source tree. Tests skip where it does not exist.
inline std::filesystem::path SharedFolder() {
  if (const char* shared = std::getenv("NPUC_SHARED")) return shared;
  return SourceFolder() / ".." / "shared";
}

// The whole file; empty where there is none.
inline std::string ReadTestFile(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

// The seeds of a fuzzer's corpus, by file name, lie in tests/fuzz/corpus/FUZZER as a test makes
// them; with NPUC_UPDATE_CORPUS=1 in the environment they are written there. Files of other names
// in that folder are the fuzzer's finds.
inline void ExpectSeeds(const std::string& fuzzer,
                        const std::map<std::string, std::string>& seeds) {
  const std::filesystem::path dir = SourceFolder() / "tests" / "fuzz" / "corpus" / fuzzer;
  for (const auto& [name, bytes] : seeds) {
    if (std::getenv("NPUC_UPDATE_CORPUS") != nullptr) {
      std::filesystem::create_directories(dir);
      std::ofstream(dir / name, std::ios::binary) << bytes;
    }
    EXPECT_EQ(ReadTestFile(dir / name), bytes)
        << name << " differs; run this test with NPUC_UPDATE_CORPUS=1";
  }
}

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_FILES_TEST_UTIL_H_
