#ifndef NPUC_COMPILER_CORE_EMIT_WRITTEN_TEST_UTIL_H_
#define NPUC_COMPILER_CORE_EMIT_WRITTEN_TEST_UTIL_H_

// For tests alone: artifacts as strings.

#include <string>

#include "absl/status/statusor.h"
#include "compiler_core/base/status.h"
#include "compiler_core/emit/header_writer.h"
#include "compiler_core/emit/model_file.h"

namespace npuc {

inline ByteSink AppendTo(std::string& bytes) {
  return [&bytes](absl::string_view piece) {
    bytes.append(piece.data(), piece.size());
    return absl::OkStatus();
  };
}

inline absl::StatusOr<std::string> HeaderText(const CompiledModel& model,
                                              Diagnostics& diagnostics) {
  RETURN_IF_ERROR(CheckCHeader(model, diagnostics));
  std::string text;
  RETURN_IF_ERROR(WriteCHeader(model, AppendTo(text)));
  return text;
}

inline std::string ModelFileBytes(const CompiledModel& model) {
  std::string bytes;
  NPUC_CHECK(WriteModelFile(model, AppendTo(bytes)).ok());
  return bytes;
}

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_EMIT_WRITTEN_TEST_UTIL_H_
