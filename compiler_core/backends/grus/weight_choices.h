#ifndef NPUC_COMPILER_CORE_BACKENDS_GRUS_WEIGHT_CHOICES_H_
#define NPUC_COMPILER_CORE_BACKENDS_GRUS_WEIGHT_CHOICES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/lowering/lower.h"
#include "compiler_core/pipeline/compile.h"

namespace npuc {

// How each weight is stored: fully connected weights by COMPRESS and EXCLUDE_COMPRESS_OPS,
// convolution weights by CONV2D_COMPRESS and EXCLUDE_CONV2D_COMPRESS_OPS; then WEIGHT_MIN_MAX, then
// the template named by OPT_CONFIG, which overrides them for the weights that it names. A weight
// may be named by its Const node or by the "/read" Identity that TensorFlow puts behind a variable.
// Unknown names are errors with the nearest known name. On a core with code books also how the
// books and plain weights are made: COMPRESS_QUANT_BITS, COMPRESS_TYPE, FLOAT16.
absl::StatusOr<LowerOptions> ChooseWeights(const CompileRequest& request, const CoreSpec& core,
                                           absl::Span<const WeightName> weight_names,
                                           Diagnostics& diagnostics);

// opt_template.json for these weights.
std::string WriteTemplate(absl::Span<const WeightRecord> weights);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BACKENDS_GRUS_WEIGHT_CHOICES_H_
