// Fuzzes the reader of TorchScript archives. Bytes that begin as a zip file, or end as one, are an
// archive; others are a data.pkl, so that the unpickler is reached without a checksum in the way.
#include <cstddef>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/torchscript/archive.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  npuc::Diagnostics diagnostics;
  if (!absl::StrContains(bytes, "PK\x05\x06")) {
    npuc::pt::PyValues values;
    const npuc::pt::PyId root =
        npuc::pt::Unpickle(bytes, "fuzz.pt", "data.pkl", "data", {}, values, diagnostics);
    if (root.valid() == diagnostics.has_errors()) __builtin_trap();
    return 0;
  }
  npuc::pt::ArchiveLimits limits;
  limits.total_bytes = int64_t{1} << 24;
  const absl::StatusOr<npuc::pt::TorchArchive> archive =
      npuc::pt::ReadTorchArchive(bytes, "fuzz.pt", limits, diagnostics);
  if (archive.ok() == diagnostics.has_errors()) __builtin_trap();
  if (!archive.ok()) return 0;
  for (int32_t id = 0; id < archive->values.size(); ++id) {
    const npuc::pt::PyId value(id);
    if (archive->values.kind(value) != npuc::pt::PyKind::kTensor) continue;
    const absl::StatusOr<npuc::Tensor> tensor =
        npuc::pt::MaterializeTensor(*archive, value, int64_t{1} << 20);
    if (absl::IsInternal(tensor.status())) __builtin_trap();
  }
  return 0;
}
