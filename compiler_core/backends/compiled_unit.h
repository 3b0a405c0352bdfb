#ifndef NPUC_COMPILER_CORE_BACKENDS_COMPILED_UNIT_H_
#define NPUC_COMPILER_CORE_BACKENDS_COMPILED_UNIT_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler_core/backends/report_data.h"
#include "compiler_core/backends/stages.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/emit/artifact.h"
#include "compiler_core/memplan/plan.h"
#include "compiler_core/pipeline/compile.h"

namespace npuc {

// A model that a back end has compiled: the contents of its files, and what the reports are made
// from. Owns all of it.
struct CompiledUnit {
  CompiledUnit() = default;
  CompiledUnit(const CompiledUnit&) = delete;
  CompiledUnit& operator=(const CompiledUnit&) = delete;
  virtual ~CompiledUnit() = default;

  // What the reports show. Measures the compiled model where the config asks for it. Called once,
  // after Emit; may move what it shows out of the unit, but leaves `model` as it is: artifacts are
  // written from it meanwhile.
  virtual absl::StatusOr<ReportData> Describe(const CompileRequest& request, Stages& stages,
                                              Diagnostics& diagnostics) = 0;

  CompiledModel model;  // its version, model_md5 and model_info are still to be set
  MemoryPlanResult memory;
  std::string opt_template;  // opt_template.json; empty: there is none
  std::string statistics;    // statistics.json; the same
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BACKENDS_COMPILED_UNIT_H_
