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
  auto dead = std::make_shared<ImportValue>();
  dead->is_dead = true;
  if (predicate.bytes()[0] != 0) {
    node.SetOutputs({dead, node.input(0)});
  } else {
    node.SetOutputs({node.input(0), dead});
  }
  return absl::OkStatus();
}

absl::Status ImportMerge(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, kMaxInputsPerNode));
  for (int i = 0; i < node.input_count(); ++i) {
    if (node.input(i)->is_dead) continue;
    node.SetOutputs({node.input(i), node.MakeConstant(IntTensor(DType::kInt32, {}, {i}))});
    return absl::OkStatus();
  }
  auto dead = std::make_shared<ImportValue>();
  dead->is_dead = true;
  node.SetOutputs({dead, dead});
  return absl::OkStatus();
}

// What steers a loop passes its value on; loops.h says when each runs.
absl::Status PassOn(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  node.SetOutput(node.input(0));
  return absl::OkStatus();
}

constexpr ImportRule kRules[] = {
    {"Enter", PassOn},           {"Exit", PassOn},          {"LoopCond", PassOn},
    {"Merge", ImportMerge},      {"NextIteration", PassOn}, {"RefEnter", PassOn},
    {"RefExit", PassOn},         {"RefMerge", ImportMerge}, {"RefNextIteration", PassOn},
    {"RefSwitch", ImportSwitch}, {"Switch", ImportSwitch},
};

}  // namespace

absl::Span<const ImportRule> ControlRules() { return kRules; }

}  // namespace npuc::tf
