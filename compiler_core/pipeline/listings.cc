#include "compiler_core/pipeline/listings.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/diagnostic_text.h"

namespace npuc {
namespace {

std::string PortsText(const std::vector<PortTensor>& ports) {
  return absl::StrJoin(ports, ", ", [](std::string* out, const PortTensor& port) {
    absl::StrAppend(out, Printable(port.name), " ", TypeToString({port.dtype, port.shape}));
  });
}

void AddTransposes(const std::vector<TransposeRecord>& transposes,
                   std::vector<std::string>& lines) {
  constexpr size_t kMaxLines = 20;
  lines.push_back(absl::StrCat("transposes: ", transposes.size(), " left",
                               transposes.size() > kMaxLines ? "; the first ones:" : ""));
  for (size_t i = 0; i < std::min(transposes.size(), kMaxLines); ++i) {
    const TransposeRecord& transpose = transposes[i];
    lines.push_back(absl::StrCat("transpose '", Printable(transpose.node), "', ",
                                 ShapeToString(transpose.shape), " by ",
                                 ShapeToString(transpose.perm), ": ", transpose.reason));
  }
}

}  // namespace

std::string ListOps(const ReportData& data) {
  std::string out =
      absl::StrFormat("%-40s %-18s %-20s %s\n", "node", "operator", "output", "commands");
  for (const OperatorLine& line : data.operators) {
    const std::string type = line.shape.has_value() ? ShapeToString(*line.shape) : "";
    absl::StrAppendFormat(&out, "%-40s %-18s %-20s %d\n", Printable(line.name), Printable(line.op),
                          type, line.commands);
  }
  return out;
}

std::string ListMemory(const CompiledUnit& unit, const ReportData& data) {
  std::string out =
      absl::StrFormat("%-40s %10s %10s %10s\n", "node", "data", "weights", "commands");
  for (const NodeFigures& node : data.nodes) {
    absl::StrAppendFormat(&out, "%-40s %10d %10d %10d\n", Printable(node.name), node.data_bytes,
                          node.weight_bytes, node.use.commands);
  }
  const CompiledModel& model = unit.model;
  absl::StrAppendFormat(&out,
                        "cmd_content %d, weight_content %d, ops_content %d, data_content %d bytes "
                        "(liveness bound %d, %s); npu_size %d, total_size %d\n",
                        model.cmd_content.size(), model.weight_content.size(),
                        model.ops_content.size(), model.data_bytes, unit.memory.lower_bound_bytes,
                        NameOf(unit.memory.method), model.npu_size(), model.total_size());
  return out;
}

std::string ListWeights(const ReportData& data) {
  std::string out =
      absl::StrFormat("%-40s %-14s %5s %11s %11s %11s %9s %11s %9s\n", "weight", "shape", "bits",
                      "min", "max", "step", "sparsity", "max error", "bytes");
  for (const WeightFigures& weight : data.weights) {
    absl::StrAppendFormat(&out, "%-40s %-14s %5d %11.5g %11.5g %11.5g %8.2f%% %11.5g %9d\n",
                          Printable(weight.name), ShapeToString(weight.shape), weight.bits,
                          weight.min, weight.max, weight.step, 100 * weight.sparsity,
                          weight.max_abs_error, weight.bytes);
  }
  return out;
}

std::vector<std::string> LastLogLines(const CompiledUnit& unit, const ReportData& data,
                                      const Diagnostics& diagnostics) {
  const CompiledModel& model = unit.model;
  std::vector<std::string> lines;
  if (data.transposes.has_value()) AddTransposes(*data.transposes, lines);
  std::vector<DiagnosticText> texts;
  for (const Diagnostic& diagnostic : diagnostics.list()) texts.push_back(TextOf(diagnostic));
  for (DiagnosticLine& line : DiagnosticLines(texts)) lines.push_back(std::move(line.text));
  std::string method;
  if (model.command_set == CommandSet::kInteger) {
    lines.push_back(absl::StrCat("inputs: ", PortsText(model.inputs)));
    lines.push_back(absl::StrCat("outputs: ", PortsText(model.outputs)));
  } else {
    method = absl::StrCat(", ", NameOf(unit.memory.method));
  }
  lines.push_back(absl::StrCat("done: ", data.per_frame.commands, " commands, npu_size ",
                               model.npu_size(), ", total_size ", model.total_size(),
                               ", data_content ", model.data_bytes, " (liveness bound ",
                               unit.memory.lower_bound_bytes, method, ")"));
  return lines;
}

}  // namespace npuc
