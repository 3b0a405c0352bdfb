#ifndef NPUC_COMPILER_CORE_EMIT_RAW_FILE_H_
#define NPUC_COMPILER_CORE_EMIT_RAW_FILE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/byte_sink.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/emit/artifact.h"

namespace npuc {

// The raw file of LEO (OUTPUT_TYPE: raw). Its frame is public (../spec/gxnpuc.md):
//   "NPUB"; u32 big-endian: bytes of the JSON; the JSON; a zero byte
//   npu_content, cpu_prepared, ops_content; ff ff ff ff
// The vendor's names within the JSON are not all public; ours, in this order:
//   core, npu_unit, version, pb_md5, model_info
//   inputs, outputs: [{name, type ("float16", "float32"), shape, address}], address: bytes from the
//     start of struct input or output; an output that is fed back has state_input, an index
//   cmd_content_length, weight_content_length, npu_content_length: npu_content is these two
//   cpu_prepared_length: 0, nothing is left to the CPU
//   ops_content_length
//   data_content_length: memory at run time, not in the file
// The form of OUTPUT_TYPE: json is not public; ours is the same object, "format": "NPUB" in front
// of it, and behind it cmd_content, weight_content and ops_content in base64. Equal models give
// equal bytes. Both return the sink's error.
absl::Status WriteRawFile(const CompiledModel& model, const ByteSink& sink);
absl::Status WriteRawJson(const CompiledModel& model, const ByteSink& sink);

// True where a file begins as one of these does.
bool IsRawFile(absl::string_view bytes);

// Reads either. Errors (with a diagnostic): INVALID_ARGUMENT where the file is damaged, cut,
// padded, or has other members. Memory stays below a small multiple of the file's size.
absl::StatusOr<CompiledModel> ReadRawFile(absl::string_view bytes, absl::string_view file_name,
                                          Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_EMIT_RAW_FILE_H_
