#include "compiler_core/backends/grus/float_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/backends/selection.h"
#include "compiler_core/base/status.h"
#include "compiler_core/quant/kept/float_form.h"
#include "compiler_core/quant/kept/whole_numbers.h"

namespace npuc {
namespace {

constexpr char kIntegerCore[] = "X2_1204";

// How many values of a model are stored as integers, and whether all of them are constants.
struct Integers {
  int values = 0;
  int constants = 0;
};

Integers IntegersOf(const Graph& graph) {
  Integers integers;
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::kQuantize) ++integers.values;
    if (node.op == Op::kDequantize && graph.ConstantOf(node.inputs[0]) != nullptr) {
      ++integers.constants;
    }
  }
  return integers;
}

std::string MessageOf(const Integers& integers, const CoreSpec& core) {
  if (integers.values == 0) {
    return absl::StrCat(integers.constants, " constants are stored as integers; ", core.name,
                        " computes with the numbers that they stand for");
  }
  return absl::StrCat("the model is quantized (", integers.values, " values, ", integers.constants,
                      " constants); ", core.name,
                      " computes in fp16: the scales are folded, and each value is held to the "
                      "range of its integers");
}

}  // namespace

absl::StatusOr<Graph> FloatModel(Graph imported, const CoreSpec& core,
                                 const CompileOptions& options, Diagnostics& diagnostics) {
  const int steps = CountWholeNumberSteps(imported);
  if (steps > 0) {
    diagnostics.Add(
        {.kind = DiagnosticKind::kNotFp16Data,
         .message = absl::StrCat(
             "the model requantizes whole numbers in ", steps, steps == 1 ? " place" : " places",
             ", by casts to integers and divisions that drop fractions; ", core.name,
             " computes in fp16, which holds whole numbers of 11 bits"),
         .file = options.model_name,
         .fix = absl::StrCat("set CORENAME: ", kIntegerCore,
                             " and QUANT: calibration_data, which quantizes it anew, or "
                             "give the float model")});
    return diagnostics.ToStatus();
  }
  ASSIGN_OR_RETURN(imported, ComputedInFloats(std::move(imported), core, options, diagnostics));
  const Integers integers = IntegersOf(imported);
  if (integers.values == 0 && integers.constants == 0) return imported;
  absl::StatusOr<FloatForm> form = MakeFloatForm(imported);
  if (!form.ok()) {
    diagnostics.Add({.kind = DiagnosticKind::kNotLowerable,
                     .message = std::string(form.status().message()),
                     .file = options.model_name,
                     .fix = absl::StrCat("give the float model, or set CORENAME to an integer core "
                                         "such as ",
                                         kIntegerCore)});
    return diagnostics.ToStatus();
  }
  diagnostics.Add({.kind = DiagnosticKind::kQuantizedInFloat,
                   .message = MessageOf(integers, core),
                   .file = options.model_name,
                   .fix = absl::StrCat("nothing need be done; CORENAME: ", kIntegerCore,
                                       " computes with the integers themselves")});
  return std::move(form->graph);
}

}  // namespace npuc
