#ifndef NPUC_COMPILER_CORE_REPORT_PROFILE_BUFFER_H_
#define NPUC_COMPILER_CORE_REPORT_PROFILE_BUFFER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace npuc {

// The counters of one run of a model, as a file: what Compass's runtime writes beside the outputs
// where a build is profiled. Its form is this project's, since Compass publishes none. All numbers
// are little-endian.
//   8 bytes    "NPUCPROF"
//   uint32     version, 1
//   uint32     bytes of a record, 64
//   uint64     records
//   32 bytes   commands_md5 of graph.json: MD5 of the command stream, in hexadecimal digits
//   records    one for each command in the order of the run: uint32 core, with bit 31 where the
//              command waits for all cores at a barrier; uint32 offset of the
//              command in its stream in bytes; uint64 cycles, busy cycles of the convolution unit
//              (AIFF), of the general unit (TPC) and of the copies between memory and units (DMA),
//              bytes read, bytes written, multiply-adds

struct ProfileRecord {
  uint32_t core = 0;  // below 2^31
  bool barrier = false;
  uint32_t offset_bytes = 0;
  int64_t cycles = 0;
  int64_t aiff_busy_cycles = 0;
  int64_t tpc_busy_cycles = 0;
  int64_t dma_busy_cycles = 0;
  int64_t read_bytes = 0;
  int64_t written_bytes = 0;
  int64_t macs = 0;
};

struct ProfileBuffer {
  std::string commands_md5;
  std::vector<ProfileRecord> records;
};

inline constexpr int64_t kMaxProfileBytes = int64_t{64} << 20;  // a million commands

std::string WriteProfileBuffer(const ProfileBuffer& buffer);
// INVALID_ARGUMENT: `bytes` are none; the message goes on from the
// file's name. Counters are below 2^42, so that their sum is exact.
absl::StatusOr<ProfileBuffer> ReadProfileBuffer(absl::string_view bytes);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_REPORT_PROFILE_BUFFER_H_
