// Any text as Compass IR: diagnostics, or a document that is printed as the same bytes and that the
// checker gets through.
#include <cstddef>
#include <cstdint>

#include "compiler_core/base/status.h"
#include "compiler_core/ir/compass/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  npuc::Diagnostics diagnostics;
  const auto document = npuc::compass::ParseDocument(text, "fuzz.txt", diagnostics);
  NPUC_CHECK(document.ok() != diagnostics.has_errors());
  if (!document.ok()) return 0;
  NPUC_CHECK(npuc::compass::PrintDocument(*document) == text);
  const absl::Status status =
      npuc::compass::CheckDocument(*document, std::nullopt, "fuzz.txt", diagnostics);
  NPUC_CHECK(status.ok() != diagnostics.has_errors());
  (void)npuc::compass::CheckDocument(*document, 64, "fuzz.txt", diagnostics);
  return 0;
}
