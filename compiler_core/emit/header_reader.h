#ifndef NPUC_COMPILER_CORE_EMIT_HEADER_READER_H_
#define NPUC_COMPILER_CORE_EMIT_HEADER_READER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/emit/artifact.h"

namespace npuc {

// Reads a C header: one of the GRUS family, this project's or a vendor-written one; or one of this
// project's for an integer core (scales and zero points from its macros) or for the fixed-point
// core APUS (from its NAME_Q macros). Also where it was edited: arrays with a prefix
// (kws_cmd_content), attributes, includes, further constants, another order, comments, structs
// called input_xip, output_xip and in_out_xip, parts within `#if 0` (where no live one has their
// name, with a warning). Declarations that say nothing about the model are skipped. State outputs
// are those that are not in struct in_out; each is paired with an input: by name (NAME_out or
// model_NAME_out for input NAME), then in order among inputs of equal shape. Checked: declared
// array sizes against the values, in_out against input and output, the places of structs that lie
// in data_content; size constants against arrays and structs, with a warning. All problems become
// diagnostics with `file_name` and line. Cost and memory are linear in the text.
absl::StatusOr<CompiledModel> ReadCHeader(absl::string_view text, absl::string_view file_name,
                                          Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_EMIT_HEADER_READER_H_
