#ifndef NPUC_COMPILER_CORE_QUANT_DATA_FORM_YAML_H_
#define NPUC_COMPILER_CORE_QUANT_DATA_FORM_YAML_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/yaml_tree.h"

namespace npuc {

// Reads a form file, a mapping in YAML: calls `read` for each key, and ends at its first error.
// `example` is a line of such a file. INVALID_ARGUMENT: the text is no mapping.
absl::Status ReadFormYaml(
    absl::string_view text, absl::string_view file, absl::string_view example,
    absl::FunctionRef<absl::Status(const ConfigNode& key, const ConfigNode& value)> read);

// INVALID_ARGUMENT: "line 3: mean takes a number, found 'x'".
absl::Status WrongFormValue(const ConfigNode& key, const ConfigNode& value,
                            absl::string_view allowed);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_DATA_FORM_YAML_H_
