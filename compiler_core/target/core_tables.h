#ifndef NPUC_COMPILER_CORE_TARGET_CORE_TABLES_H_
#define NPUC_COMPILER_CORE_TARGET_CORE_TABLES_H_

#include <cstddef>

#include "compiler_core/target/core_spec.h"

namespace npuc::core_tables {

// Defined in core_tables.cc, which generate_cores.py writes into the build folder.
extern const CoreSpec* const kAllCores[];
extern const size_t kCoreCount;

}  // namespace npuc::core_tables

#endif  // NPUC_COMPILER_CORE_TARGET_CORE_TABLES_H_
