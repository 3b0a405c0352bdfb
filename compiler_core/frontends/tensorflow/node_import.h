#ifndef NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_NODE_IMPORT_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_NODE_IMPORT_H_

#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/frontends/common/attribute_node.h"
#include "compiler_core/frontends/tensorflow/graphdef.h"

namespace npuc::tf {

using frontend::ImportValue;
using frontend::kMaxConstantBytes;
using frontend::kMaxFoldWork;
using frontend::ValueRef;

// What TensorFlow's control flow adds to a value.
struct DilationGroup;  // import_dilation.h
struct ControlFacts : ImportValue::Facts {
  // A Switch gives its value on one side only; what depends on the other side never runs.
  bool is_dead = false;
  // A TensorArray: which of ImportState::arrays it is (then it has neither type nor value), and of
  // its flow, which of ImportState::array_versions holds its elements.
  int array = -1;
  int array_version = -1;
  // Random numbers from here to below 1 more, 0 or 1; -1: it holds others.
  int random_from = -1;
  // Every element is 1, or true: the mask of a dropout that keeps all.
  bool is_all_ones = false;
  // Part of a SpaceToBatchND group, of which import_dilation.cc makes one dilated convolution.
  std::shared_ptr<const DilationGroup> group = {};
};
// Of a value without any, those of a plain tensor.
const ControlFacts& FactsOf(const ImportValue& value);
// A value that never comes to be.
ValueRef DeadValue();

// A TensorArray as declared, and its elements after some writes: those of the version before and
// the ones set here. Versions never change, so loops may fork them.
struct TensorArray {
  int64_t size = 0;
  bool is_dynamic = false;  // grows where it is written beyond its size
};
struct ArrayVersion {
  int array = 0;
  int before = -1;
  std::map<int64_t, ValueRef> elements = {};
  int64_t size = 0;
};

// What all nodes of one import share.
struct ImportState : frontend::ImportState {
  using frontend::ImportState::ImportState;

  int producer_version = 0;
  std::vector<TensorArray> arrays;
  std::vector<ArrayVersion> array_versions;
};

// What the rule of a TensorFlow operator sees of its node beside what all front ends share.
class NodeImporter : public frontend::AttributeNode<NodeView> {
 public:
  NodeImporter(ImportState* state, const NodeView* node, std::vector<ValueRef> inputs)
      : AttributeNode(state, node, std::move(inputs)), tf_state_(state) {}

  ImportState& state() { return *tf_state_; }

  // data_format: true for NHWC, false for NCHW, an error for anything else.
  absl::StatusOr<bool> IsNhwc();

  // The integer type that an attribute names; an error for anything else.
  absl::StatusOr<DType> IndexTypeOr(absl::string_view attr, DType fallback);

  // From here on the nodes that this one becomes count as the operators that it is rewritten in,
  // which the core's list may hold where it lacks this one.
  void SetRewritten() { is_rewritten_ = true; }

 protected:
  NodeSource SourceFor(absl::string_view op) const override;

 private:
  ImportState* tf_state_;
  bool is_rewritten_ = false;
};

// The rule for one TensorFlow operator: sets the importer's outputs.
struct ImportRule {
  absl::string_view op;
  absl::Status (*import)(NodeImporter& node);
};

// The rules of each family, in import_<family>.cc.
absl::Span<const ImportRule> BasicRules();
absl::Span<const ImportRule> ElementwiseRules();
absl::Span<const ImportRule> ActivationRules();
absl::Span<const ImportRule> ImageRules();
absl::Span<const ImportRule> LinearRules();
absl::Span<const ImportRule> ConvRules();
absl::Span<const ImportRule> PoolRules();
absl::Span<const ImportRule> ShapeRules();
absl::Span<const ImportRule> SliceRules();
absl::Span<const ImportRule> RecurrentRules();
absl::Span<const ImportRule> ReduceRules();
absl::Span<const ImportRule> SelectionRules();
absl::Span<const ImportRule> ControlRules();
absl::Span<const ImportRule> DilationRules();
absl::Span<const ImportRule> TensorArrayRules();
absl::Span<const ImportRule> TensorListRules();

// A value of ones. It becomes a constant only where an operator needs its elements.
ValueRef AllOnes(NodeImporter& node, TensorType type);

// An element of a version, null where nothing was written there, and the version that follows one
// with the same elements. A version is an index of ImportState::array_versions.
absl::StatusOr<ValueRef> ElementAt(NodeImporter& node, int version, int64_t index);
ArrayVersion After(NodeImporter& node, int version);

// Whether the operator may have a TensorArray as an operand.
bool TakesHandles(absl::string_view op);

}  // namespace npuc::tf

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_NODE_IMPORT_H_
