#ifndef NPUC_COMPILER_CORE_SIM_INTEGER_ENGINE_H_
#define NPUC_COMPILER_CORE_SIM_INTEGER_ENGINE_H_

#include <memory>

#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/emit/artifact.h"
#include "compiler_core/sim/engine.h"

namespace npuc::integer {

// Decodes and checks an integer command stream, so that running it never touches anything outside
// the slots. Null where a diagnostic of severity error was added.
std::unique_ptr<FrameEngine> PrepareEngine(const CompiledModel& model, absl::string_view file_name,
                                           const Simulator::Limits& limits,
                                           Diagnostics& diagnostics);

}  // namespace npuc::integer

#endif  // NPUC_COMPILER_CORE_SIM_INTEGER_ENGINE_H_
