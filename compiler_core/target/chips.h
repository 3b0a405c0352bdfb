#ifndef NPUC_COMPILER_CORE_TARGET_CHIPS_H_
#define NPUC_COMPILER_CORE_TARGET_CHIPS_H_

#include "absl/strings/string_view.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {

// The core that a chip such as GX8002 has, in any case; null where unknown.
const CoreSpec* FindCoreOfChip(absl::string_view chip);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TARGET_CHIPS_H_
