#ifndef NPUC_COMPILER_CORE_TARGET_CORE_TABLES_H_
#define NPUC_COMPILER_CORE_TARGET_CORE_TABLES_H_

#include <cstddef>

#include "compiler_core/target/core_spec.h"
#include "compiler_core/target/mac_array.h"

namespace npuc::core_tables {

// Defined in core_tables.cc, which generate_cores.py writes into the build folder.
extern const CoreSpec* const kAllCores[];
extern const size_t kCoreCount;
// In the order of the cores; null where one states none.
extern const MacArray* const kMacArrays[];

}  // namespace npuc::core_tables

#endif  // NPUC_COMPILER_CORE_TARGET_CORE_TABLES_H_
