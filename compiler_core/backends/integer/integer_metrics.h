#ifndef NPUC_COMPILER_CORE_BACKENDS_INTEGER_INTEGER_METRICS_H_
#define NPUC_COMPILER_CORE_BACKENDS_INTEGER_INTEGER_METRICS_H_

#include <functional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/backends/integer/integer_model.h"
#include "compiler_core/backends/report_data.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/emit/artifact.h"
#include "compiler_core/pipeline/compile.h"
#include "compiler_core/quant/metrics/metrics.h"

namespace npuc {

// Labels of a .npy file of integers, or of a CSV file. INVALID_ARGUMENT saying what is wrong.
absl::StatusOr<Labels> ReadLabels(absl::string_view file);

// The metrics that QUANT asks for (cosine, mse and sqnr where it names none), over its `data`, each
// item run by the float model and, stored as integers, by the simulator on the artifact itself;
// those that need labels are of the first output that is no state. Without data: cosine, mse and
// sqnr as the quantizer found them on calibration samples, where it did. Problems with the files go
// to `diagnostics`.
absl::StatusOr<ModelMetrics> MeasureMetrics(const CompileRequest& request,
                                            const IntegerModel& quantized,
                                            const CompiledModel& model,
                                            const std::function<bool()>& cancelled,
                                            Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BACKENDS_INTEGER_INTEGER_METRICS_H_
