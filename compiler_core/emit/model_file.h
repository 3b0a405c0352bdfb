#ifndef NPUC_COMPILER_CORE_EMIT_MODEL_FILE_H_
#define NPUC_COMPILER_CORE_EMIT_MODEL_FILE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/byte_sink.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/emit/artifact.h"

namespace npuc {

// MODEL.npuc: a compiled model as one binary file. All numbers are little-endian.
//   "NPUCMDL1"; u32 format version (1: GRUS commands, 3: integer commands); u32 section count
//   for each section: u32 tag, u32 zero, u64 offset, u64 bytes   (offsets are multiples of 16)
//   sections: 1 metadata, 2 cmd_content, 3 weight_content, 4 ops_content, each exactly once
//   32 bytes: SHA-256 of everything before them
// Metadata: version, model_md5, npu_unit, model_info, core (each u32 length + bytes); u64 data
// bytes; in version 3 i64 input and output offset in data, or -1; then inputs and outputs, each u32
// count and for each port: name, u8 dtype (1 fp16, 2 fp32, 3 i8, 4 u8, 5 i16, 6 u16), u8 rank, i16
// state input or -1, u64 dimensions, and in version 3 f64 scale and i64 zero point (all ports are
// integers there, and none in version 1). Ports lie one after the other.
// Equal models give equal bytes. Returns the sink's error.
absl::Status WriteModelFile(const CompiledModel& model, const ByteSink& sink);

// Errors (with a diagnostic): INVALID_ARGUMENT where the file is damaged, cut, padded, or of
// another format version. Memory stays below a small multiple of the file's size.
absl::StatusOr<CompiledModel> ReadModelFile(absl::string_view bytes, absl::string_view file_name,
                                            Diagnostics& diagnostics);

// A model file, a raw file (raw_file.h) or a C header, told apart by the first bytes.
absl::StatusOr<CompiledModel> ReadArtifact(absl::string_view bytes, absl::string_view file_name,
                                           Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_EMIT_MODEL_FILE_H_
