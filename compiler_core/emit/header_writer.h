#ifndef NPUC_COMPILER_CORE_EMIT_HEADER_WRITER_H_
#define NPUC_COMPILER_CORE_EMIT_HEADER_WRITER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/byte_sink.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/emit/artifact.h"

namespace npuc {

// The C header of a compiled model, byte for byte as the vendor's compiler (1.5.5 and later) lays
// it out: deployment scripts parse it by its lines. Source: the published headers.
// in_out holds the inputs, then the outputs that are no states (PortTensor::state_input < 0).
// A header of LEO has `npu_core` behind `npu_unit`, which names the core.
// Of the integer cores (this project's own, in the same spirit): `npu_core` in place of `npu_unit`;
// no npu_data_t, members are of C's integer types; before the structs, for each input and output
// NAME, INPUT_NAME_SCALE and INPUT_NAME_ZERO_POINT (OUTPUT_ ...), where real value = (stored -
// zero point) * scale; no tmp_content or ops_content.
// Returns the sink's error.
absl::Status WriteCHeader(const CompiledModel& model, const ByteSink& sink);

// Refuses a model whose header would not compile or could not be read: two names of a struct become
// the same C identifier, or the header is too large. The status of the diagnostics that are added.
absl::Status CheckCHeader(const CompiledModel& model, Diagnostics& diagnostics);

// `name` as a C identifier: every byte outside [A-Za-z0-9_] becomes '_', a leading digit gets one
// before it, a C or C++ keyword one behind it; "" becomes "_".
std::string CIdentifier(absl::string_view name);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_EMIT_HEADER_WRITER_H_
