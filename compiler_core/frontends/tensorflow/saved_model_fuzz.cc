// Fuzzes the reader of SavedModels: the archive, the table of variables, the inlining of functions.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/tensorflow/graphdef.h"
#include "compiler_core/frontends/tensorflow/tensor_bundle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  npuc::Diagnostics diagnostics;
  if (npuc::tf::GraphFile::Parse(bytes, "fuzz", diagnostics) == nullptr &&
      !diagnostics.has_errors()) {
    __builtin_trap();
  }
  const absl::StatusOr<npuc::tf::TensorBundle> bundle =
      npuc::tf::TensorBundle::Open(bytes, {bytes});
  if (bundle.ok()) (void)bundle->Find("w");
  return 0;
}
