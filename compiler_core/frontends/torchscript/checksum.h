#ifndef NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_CHECKSUM_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_CHECKSUM_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace npuc::pt {

// The CRC-32 of zip archives, that of zlib's crc32; of large data by the processor's carry-less
// products where it has them, some ten times as fast.
uint32_t ZipChecksum(absl::string_view bytes);

}  // namespace npuc::pt

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_CHECKSUM_H_
