// Control flow of TensorFlow 1: a Switch whose predicate is known is decided here; while loops with
// known trip counts are unrolled by the importer (unroll.cc).
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/evaluator.h"
#include "compiler_core/frontends/tensorflow/node_import.h"

namespace npuc::tf {
namespace {

absl::Status ImportSwitch(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const Tensor predicate, node.Constant(1, "predicate"));
  if (predicate.dtype() != DType::kBool || predicate.element_count() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the predicate is ", TypeToString(predicate.type()), "; it must be a bool"));
  }
  if (predicate.bytes()[0] != 0) return node.SetOutputs({DeadValue(), node.input(0)});
  return node.SetOutputs({node.input(0), DeadValue()});
}

absl::Status ImportMerge(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, kMaxInputsPerNode));
  for (int i = 0; i < node.input_count(); ++i) {
    if (FactsOf(*node.input(i)).is_dead) continue;
    return node.SetOutputs({node.input(i), node.MakeConstant(IntTensor(DType::kInt32, {}, {i}))});
  }
  const ValueRef dead = DeadValue();
  return node.SetOutputs({dead, dead});
}

// What steers a loop passes its value on; loops.h says when each runs.
absl::Status PassOn(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  return node.SetOutput(node.input(0));
}

constexpr ImportRule kControlRules[] = {
    {"Enter", PassOn},           {"Exit", PassOn},          {"LoopCond", PassOn},
    {"Merge", ImportMerge},      {"NextIteration", PassOn}, {"RefEnter", PassOn},
    {"RefExit", PassOn},         {"RefMerge", ImportMerge}, {"RefNextIteration", PassOn},
    {"RefSwitch", ImportSwitch}, {"Switch", ImportSwitch},
};

}  // namespace

absl::Span<const ImportRule> ControlRules() { return kControlRules; }

}  // namespace npuc::tf
