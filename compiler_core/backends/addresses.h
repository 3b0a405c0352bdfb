#ifndef NPUC_COMPILER_CORE_BACKENDS_ADDRESSES_H_
#define NPUC_COMPILER_CORE_BACKENDS_ADDRESSES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/backends/report_data.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/cmd/command.h"
#include "compiler_core/memplan/plan.h"
#include "compiler_core/pipeline/compile.h"

namespace npuc {

// The addresses of the buffers of data_content as a file that a user edits (the guide's
// addr_cfg_default.ini): section [reuse], and for buffer K the lines addrK (bytes from the start of
// data_content), sizeK and nameK, which say which buffer is meant. Buffers are numbered as in
// report.json's memory_map, the largest first.

// Side input of a compile that holds such a file.
inline constexpr char kAddressesRole[] = "ADDRESSES";
inline constexpr size_t kMaxAddressFileBytes = size_t{4} << 20;
inline constexpr size_t kMaxAddressBuffers = 1500;  // as many as report.json lists

// The file of a memory map.
std::string AddressText(absl::Span<const BufferFigures> map);

// Moves the buffers to the addresses of the request's file, where it has one, and sets data_bytes
// to where the last of them ends. Every buffer in use must be in the file as the model has it, at a
// multiple of `alignment_bytes`; two that are in use at one command must not share a byte: an error
// names both. All problems go to `diagnostics`.
absl::Status TakeAddresses(const CompileRequest& request, absl::Span<const LiveRange> ranges,
                           int64_t alignment_bytes, absl::Span<Buffer> buffers, int64_t& data_bytes,
                           Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BACKENDS_ADDRESSES_H_
