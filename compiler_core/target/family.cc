#include "compiler_core/target/family.h"

#include <algorithm>

#include "compiler_core/base/status.h"

namespace npuc {

const CoreSpec& FirstCoreOf(NpuFamily family) {
  const absl::Span<const CoreSpec* const> cores = AllCores();
  const auto first = std::find_if(cores.begin(), cores.end(),
                                  [&](const CoreSpec* core) { return core->family == family; });
  NPUC_CHECK(first != cores.end());
  return **first;
}

}  // namespace npuc
