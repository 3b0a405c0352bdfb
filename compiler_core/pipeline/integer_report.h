#ifndef NPUC_COMPILER_CORE_PIPELINE_INTEGER_REPORT_H_
#define NPUC_COMPILER_CORE_PIPELINE_INTEGER_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/emit/artifact.h"
#include "compiler_core/ir/integer/command.h"
#include "compiler_core/memplan/plan.h"
#include "compiler_core/pipeline/integer_model.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {

// One figure of how good a model's outputs are (quant/metrics): of the float model, and of the
// quantized one against it.
struct MetricFigure {
  std::string metric;
  std::string output;
  double of_float = 0;
  double quantized = 0;  // not finite: none, as an sqnr without any difference
};

struct ModelMetrics {
  std::string source;  // whose items: "data", "calibration_data"
  std::string by;      // what ran the quantized model: "simulator", "fake quantization"
  int64_t items = 0;
  std::vector<MetricFigure> figures;
};

// What a compile for an integer core tells. Views; valid during the call.
struct IntegerFacts {
  const CoreSpec& core;
  const IntegerModel& quantized;
  const integer::Program& program;
  const CompiledModel& model;
  const MemoryPlanResult& memory;
  const Diagnostics& diagnostics;
  const CompileOptions& options;
  const ModelMetrics& metrics;  // without figures: nothing was measured
};

// report.json of an integer core: the sections that report_json.h writes for the others, under the
// same names; of layers also Compass's type, the parameters of their results and how near they are
// to float; `metrics`. Deterministic.
std::string IntegerReportJson(const IntegerFacts& facts);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PIPELINE_INTEGER_REPORT_H_
