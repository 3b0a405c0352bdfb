#ifndef NPUC_COMPILER_CORE_FRONTENDS_ONNX_IMPORT_ML_H_
#define NPUC_COMPILER_CORE_FRONTENDS_ONNX_IMPORT_ML_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler_core/frontends/onnx/node_import.h"

namespace npuc::onnx {

// The rules of domain ai.onnx.ml; those of its trees and support vector machines.
absl::Span<const ImportRule> MlRules();
absl::Span<const ImportRule> TreeRules();
absl::Span<const ImportRule> SvmRules();

// The rows of the operand as floats, [rows, columns].
absl::StatusOr<ValueRef> FeatureRows(NodeImporter& node);

// Scores [rows, classes] after the node's post_transform.
absl::StatusOr<ValueRef> TransformedScores(NodeImporter& node, const ValueRef& scores);
// The labels of classes by their numbers [rows], and of each row's largest score.
absl::StatusOr<ValueRef> LabelsAt(NodeImporter& node, const ValueRef& index,
                                  const std::vector<int64_t>& labels);
absl::StatusOr<ValueRef> LabelsOfLargest(NodeImporter& node, const ValueRef& scores,
                                         const std::vector<int64_t>& labels);

}  // namespace npuc::onnx

#endif  // NPUC_COMPILER_CORE_FRONTENDS_ONNX_IMPORT_ML_H_
