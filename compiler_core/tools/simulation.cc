#include "compiler_core/tools/simulation.h"

#include <cstdio>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/status.h"
#include "compiler_core/sim/simulator.h"
#include "compiler_core/tools/array_files.h"
#include "compiler_core/tools/files.h"
#include "compiler_core/tools/profile.h"

namespace npuc {
namespace {

constexpr char kArrayEnding[] = ".npy";

}  // namespace

std::string OutputPath(const std::string& first, size_t index) {
  if (index == 0) return first;
  absl::string_view stem = first;
  const bool is_array = absl::ConsumeSuffix(&stem, kArrayEnding);
  return absl::StrCat(stem, index, is_array ? kArrayEnding : "");
}

std::vector<std::string> NamedInputs(const std::vector<std::string>& files,
                                     const FrameRunner& model, Diagnostics& diagnostics) {
  const std::vector<const PortTensor*> ports = InputsToGive(model);
  if (files.size() != ports.size()) {
    diagnostics.Add(
        {.kind = DiagnosticKind::kRunInputInvalid,
         .message = absl::StrCat(files.size(), " input files are given; the model has ",
                                 ports.size(), " inputs"),
         .fix = absl::StrCat("give a file for each of ",
                             absl::StrJoin(ports, ", ", [](std::string* out, const PortTensor* p) {
                               absl::StrAppend(out, Printable(p->name));
                             }))});
    return {};
  }
  std::vector<std::string> named;
  for (size_t i = 0; i < files.size(); ++i) {
    named.push_back(absl::StrCat(ports[i]->name, "=", files[i]));
  }
  return named;
}

absl::Status RunWithFiles(const CompiledModel& model, const SimulationFiles& files,
                          Diagnostics& diagnostics) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Simulator> simulator,
                   Simulator::Load(model, "the built model", diagnostics));
  SimulatorRunner runner(*simulator);
  const std::vector<std::string> named = NamedInputs(files.inputs, runner, diagnostics);
  RETURN_IF_ERROR(diagnostics.ToStatus());
  const std::vector<NamedArray> inputs = LoadInputs(named, runner, diagnostics);
  RETURN_IF_ERROR(diagnostics.ToStatus());
  const bool as_arrays = absl::EndsWith(files.output, kArrayEnding);
  ASSIGN_OR_RETURN(const RunItemsResult result,
                   RunItems(runner, inputs, 0, diagnostics,
                            as_arrays ? RunValues::kReal : RunValues::kStoredResults));
  for (size_t i = 0; i < result.outputs.size(); ++i) {
    const NamedArray& output = result.outputs[i];
    const std::string path = OutputPath(files.output, i);
    std::string bytes = output.array.bytes;
    if (as_arrays) {
      ASSIGN_OR_RETURN(bytes, WriteNpy(output.array));
    }
    RETURN_IF_ERROR(WriteFileAtomically(path, bytes));
    if (!files.prints) continue;
    std::printf("%s %s -> %s\n", Printable(output.name).c_str(),
                TypeToString({output.array.dtype, output.array.shape}).c_str(),
                Printable(path).c_str());
  }
  if (files.profile.empty()) return absl::OkStatus();
  if (files.prints) std::printf("%s counters of the run\n", Printable(files.profile).c_str());
  return WriteFileAtomically(files.profile, ProfileBytes(model, *simulator));
}

}  // namespace npuc
