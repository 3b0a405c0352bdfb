#ifndef NPUC_COMPILER_CORE_FRONTENDS_ONNX_NODE_IMPORT_H_
#define NPUC_COMPILER_CORE_FRONTENDS_ONNX_NODE_IMPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/common/node_emitter.h"
#include "compiler_core/frontends/common/term.h"
#include "compiler_core/frontends/onnx/model_file.h"

namespace npuc::onnx {

using frontend::ImportValue;
using frontend::kMaxConstantBytes;
using frontend::kMaxFoldWork;
using frontend::Term;
using frontend::ValueRef;

// What all nodes of one import share.
struct ImportState : frontend::ImportState {
  using frontend::ImportState::ImportState;

  int64_t opset = 0;
};

// What the rule of an ONNX operator sees of its node beside what all front ends share.
class NodeImporter : public frontend::NodeEmitter {
 public:
  NodeImporter(ImportState* state, const NodeView* node, std::vector<ValueRef> inputs);

  // The same node on other operands; its results are not this one's.
  NodeImporter WithInputs(std::vector<ValueRef> inputs) {
    return NodeImporter(onnx_state_, node_, std::move(inputs));
  }

  const NodeView& node() const { return *node_; }
  absl::string_view op() const { return node_->op(); }
  int64_t opset() const { return onnx_state_->opset; }
  // Whether someone may use result i.
  bool WantsOutput(int i) const { return i < node_->output_count() && !node_->output(i).empty(); }

  // Attributes; the fallback counts where the attribute is absent.
  absl::StatusOr<bool> BoolOr(absl::string_view name, bool fallback);
  absl::StatusOr<int64_t> IntOr(absl::string_view name, int64_t fallback);
  absl::StatusOr<double> FloatOr(absl::string_view name, double fallback);
  absl::StatusOr<std::string> StringOr(absl::string_view name, std::string fallback);
  absl::StatusOr<std::vector<int64_t>> IntsOr(absl::string_view name,
                                              std::vector<int64_t> fallback);
  absl::StatusOr<std::vector<double>> FloatsOr(absl::string_view name,
                                               std::vector<double> fallback);
  absl::StatusOr<std::vector<std::string>> StringsOr(absl::string_view name,
                                                     std::vector<std::string> fallback);
  absl::StatusOr<int64_t> RequiredInt(absl::string_view name);
  absl::StatusOr<std::vector<int64_t>> RequiredInts(absl::string_view name);
  absl::Status BadAttribute(const absl::Status& status);

  // An integer list that was an attribute before an operator set and is operand i since then;
  // nullopt where it is not given.
  absl::StatusOr<std::optional<std::vector<int64_t>>> IntsAt(int i, absl::string_view name);

 private:
  ImportState* onnx_state_;
  const NodeView* node_;
};

// The rule for one ONNX operator: sets the importer's outputs.
struct ImportRule {
  absl::string_view op;
  absl::Status (*import)(NodeImporter& node);
};

// The rules of each family, in import_<family>.cc.
absl::Span<const ImportRule> BasicRules();
absl::Span<const ImportRule> ElementwiseRules();
absl::Span<const ImportRule> ActivationRules();
absl::Span<const ImportRule> LinearRules();
absl::Span<const ImportRule> ConvRules();
absl::Span<const ImportRule> PoolRules();
absl::Span<const ImportRule> NormRules();
absl::Span<const ImportRule> ShapeRules();
absl::Span<const ImportRule> GatherRules();
absl::Span<const ImportRule> ReduceRules();
absl::Span<const ImportRule> ResizeRules();
absl::Span<const ImportRule> RecurrentRules();
absl::Span<const ImportRule> LossRules();
absl::Span<const ImportRule> QuantizedRules();

}  // namespace npuc::onnx

#endif  // NPUC_COMPILER_CORE_FRONTENDS_ONNX_NODE_IMPORT_H_
