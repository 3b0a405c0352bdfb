#include "compiler_core/target/family.h"

#include <algorithm>

#include "compiler_core/base/status.h"
#include "compiler_core/target/core_tables.h"

namespace npuc {

NpuFamily FamilyOf(const CoreSpec& core) {
  const absl::Span<const CoreSpec* const> cores = AllCores();
  const auto at = std::find(cores.begin(), cores.end(), &core);
  NPUC_CHECK(at != cores.end());
  return core_tables::kFamilies[at - cores.begin()];
}

const CoreSpec& FirstCoreOf(NpuFamily family) {
  const absl::Span<const CoreSpec* const> cores = AllCores();
  const auto first = std::find_if(cores.begin(), cores.end(),
                                  [&](const CoreSpec* core) { return FamilyOf(*core) == family; });
  NPUC_CHECK(first != cores.end());
  return **first;
}

}  // namespace npuc
