#ifndef NPUC_COMPILER_CORE_TARGET_CORE_TABLES_H_
#define NPUC_COMPILER_CORE_TARGET_CORE_TABLES_H_

#include "compiler_core/target/family.h"

namespace npuc::core_tables {

// Defined in core_tables.cc, which generate_cores.py writes into the build folder.
extern const CoreSpec* const kAllCores[];
extern const size_t kCoreCount;
// In the same order.
extern const NpuFamily kFamilies[];

}  // namespace npuc::core_tables

#endif  // NPUC_COMPILER_CORE_TARGET_CORE_TABLES_H_
