#include "compiler_core/target/chips.h"

#include "absl/strings/match.h"

namespace npuc {

const CoreSpec* FindCoreOfChip(absl::string_view chip) {
  for (const CoreSpec* core : AllCores()) {
    for (const absl::string_view known : core->chips) {
      if (absl::EqualsIgnoreCase(known, chip)) return core;
    }
  }
  return nullptr;
}

}  // namespace npuc
