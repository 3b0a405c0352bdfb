#include "compiler_core/backends/selection.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/status.h"
#include "compiler_core/passes/float_selection.h"

namespace npuc {
namespace {

// A position of 8 bits, and what the constants beside it are off.
constexpr int64_t kLargestIndexOfBytes = 127;

std::string MessageOf(const FloatSelection& selection, const CoreSpec& core,
                      int64_t largest_index) {
  std::string text = absl::StrCat(
      selection.values, selection.values == 1 ? " value is" : " values are",
      " booleans or integers at run time; ", core.name,
      " computes with them as numbers, false and true as 0 and 1, ",
      core.integer == nullptr ? "whole ones exact up to " : "indices exact up to ", largest_index,
      core.integer == nullptr ? "" : ", other whole ones as exact as their range is stored");
  if (!selection.inputs.empty()) {
    absl::StrAppend(&text, "; of inputs: ",
                    absl::StrJoin(selection.inputs, ", ", [](std::string* out, const auto& name) {
                      absl::StrAppend(out, "'", Printable(name), "'");
                    }));
  }
  return text;
}

}  // namespace

absl::StatusOr<Graph> ComputedInFloats(Graph imported, const CoreSpec& core,
                                       const CompileOptions& options, Diagnostics& diagnostics) {
  FloatSelectionOptions select;
  const bool is_float = core.integer == nullptr;
  const bool is_bytes = !is_float && !IsFixedPoint(core);
  if (is_bytes) select.largest_index = kLargestIndexOfBytes;
  select.stores_bounded = is_bytes;
  select.narrows_differences = !is_float;
  ASSIGN_OR_RETURN(FloatSelection selection, SelectInFloats(std::move(imported), select));
  for (FloatSelection::Refusal& refusal : selection.refusals) {
    diagnostics.Add({.kind = DiagnosticKind::kNotLowerable,
                     .message = std::move(refusal.message),
                     .file = options.model_name,
                     .node = refusal.source.name,
                     .op = refusal.source.op,
                     .fix = std::move(refusal.fix)});
  }
  if (!selection.refusals.empty()) return diagnostics.ToStatus();
  if (selection.values > 0) {
    diagnostics.Add({.kind = DiagnosticKind::kSelectionInFloat,
                     .message = MessageOf(selection, core, select.largest_index),
                     .file = options.model_name,
                     .fix = "nothing need be done; give and read such inputs and outputs as "
                            "floats"});
  }
  return std::move(selection.graph);
}

}  // namespace npuc
