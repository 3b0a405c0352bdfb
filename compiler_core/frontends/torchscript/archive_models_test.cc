// Every real archive of the shared folder is read, its tensors included; the time is printed.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>

#include "compiler_core/base/files_test_util.h"
#include "compiler_core/frontends/torchscript/archive_test_util.h"
#include "gtest/gtest.h"

namespace npuc::pt {
namespace {

TEST(ArchiveModelsTest, SharedArchivesAreRead) {
  if (!std::filesystem::exists(SharedFolder())) GTEST_SKIP() << "no shared models";
  const std::filesystem::path dir = SharedFolder() / "models" / "torchscript";
  if (!std::filesystem::exists(dir)) GTEST_SKIP() << "no shared TorchScript models";
  int count = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(dir)) {
    if (!file.is_regular_file()) continue;
    SCOPED_TRACE(file.path().string());
    const std::string bytes = ReadTestFile(file.path());
    const auto start = std::chrono::steady_clock::now();
    const ReadResult result = RunRead(bytes);
    const double ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    ASSERT_TRUE(result.archive.ok()) << result.Text();
    const TorchArchive& a = *result.archive;
    int64_t elements = 0;
    int tensors = 0;
    for (int32_t id = 0; id < a.values.size(); ++id) {
      if (a.values.kind(PyId(id)) != PyKind::kTensor) continue;
      const absl::StatusOr<Tensor> tensor = MaterializeTensor(a, PyId(id), int64_t{1} << 28);
      ASSERT_TRUE(tensor.ok()) << tensor.status();
      elements += tensor->element_count();
      ++tensors;
    }
    EXPECT_FALSE(a.sources.empty());
    std::fprintf(
        stderr, "%-28s %s: %zu sources, %d tensors of %lld elements, %zu constants, %.2f ms\n",
        file.path().filename().c_str(), a.values.object(a.root).class_name.c_str(),
        a.sources.size(), tensors, static_cast<long long>(elements), a.constants.size(), ms);
    ++count;
  }
  EXPECT_GE(count, 10);
}

}  // namespace
}  // namespace npuc::pt
