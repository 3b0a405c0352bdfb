// Pooling over windows of one to three spatial dimensions, and over everything.
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/onnx/node_import.h"
#include "compiler_core/frontends/onnx/window_attrs.h"

namespace npuc::onnx {
namespace {

absl::Status CheckRank(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  if (node.rank(0) >= 3 && node.rank(0) <= 5) return absl::OkStatus();
  return node.FailMode(absl::StrCat("the operand is ", TypeToString(node.type(0)),
                                    "; it must have one to three spatial dimensions"),
                       "export the model with pooling of that form");
}

absl::Status ImportMaxPool(NodeImporter& node) {
  RETURN_IF_ERROR(CheckRank(node));
  if (node.WantsOutput(1)) {
    return node.FailMode("it gives the indices of the maxima",
                         "export the model without its second result");
  }
  std::vector<int64_t> grown;
  ASSIGN_OR_RETURN(WindowAttrs w,
                   ReadWindow(node, absl::MakeConstSpan(node.shape(0)).subspan(2), {}, &grown));
  ASSIGN_OR_RETURN(ValueRef x, ChannelsLast(node, node.input(0)));
  ASSIGN_OR_RETURN(x, MaxPooled(node, x, std::move(w)));
  return node.SetOutput(ChannelsFirst(node, x));
}

// What ceil_mode adds behind counts as padding, too, where count_include_pad says so.
absl::Status ImportAveragePool(NodeImporter& node) {
  RETURN_IF_ERROR(CheckRank(node));
  std::vector<int64_t> grown;
  ASSIGN_OR_RETURN(WindowAttrs w,
                   ReadWindow(node, absl::MakeConstSpan(node.shape(0)).subspan(2), {}, &grown));
  ASSIGN_OR_RETURN(const bool include_pad, node.BoolOr("count_include_pad", false));
  ASSIGN_OR_RETURN(ValueRef x, ChannelsLast(node, node.input(0)));
  const std::vector<int64_t> none(w.kernel.size(), 0);
  const frontend::CountedPads counted{include_pad ? w.before : none, include_pad ? w.after : none};
  ASSIGN_OR_RETURN(x, AveragePooled(node, x, std::move(w), counted));
  return node.SetOutput(ChannelsFirst(node, x));
}

// (sum of |x|^p) ^ (1/p)
absl::Status ImportLpPool(NodeImporter& node) {
  RETURN_IF_ERROR(CheckRank(node));
  ASSIGN_OR_RETURN(const int64_t p, node.IntOr("p", 2));
  if (p < 1 || p > 64) return node.FailMode(absl::StrCat("p is ", p), "use p from 1 to 64");
  std::vector<int64_t> grown;
  ASSIGN_OR_RETURN(WindowAttrs w,
                   ReadWindow(node, absl::MakeConstSpan(node.shape(0)).subspan(2), {}, &grown));
  ASSIGN_OR_RETURN(ValueRef x, ChannelsLast(node, node.input(0)));
  Term powers = Apply("Abs", Term(node, x));
  if (p != 1) powers = p == 2 ? Apply("Square", powers) : Pow(powers, static_cast<double>(p));
  RETURN_IF_ERROR(powers.value.status());
  ASSIGN_OR_RETURN(const ValueRef sums, SumPooled(node, *powers.value, std::move(w)));
  Term root(node, sums);
  if (p != 1) root = p == 2 ? Apply("Sqrt", root) : Pow(root, 1.0 / static_cast<double>(p));
  RETURN_IF_ERROR(root.value.status());
  return node.SetOutput(ChannelsFirst(node, *root.value));
}

std::vector<int64_t> SpatialAxes(const NodeImporter& node) {
  std::vector<int64_t> axes;
  for (int64_t i = 2; i < node.rank(0); ++i) axes.push_back(i);
  return axes;
}

absl::Status ImportGlobalAverage(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  return node.SetOutput(node.Reduced("ReduceMean", node.input(0), SpatialAxes(node), true));
}
absl::Status ImportGlobalMax(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  return node.SetOutput(node.Reduced("ReduceMax", node.input(0), SpatialAxes(node), true));
}

constexpr ImportRule kPoolRules[] = {
    {"AveragePool", ImportAveragePool}, {"GlobalAveragePool", ImportGlobalAverage},
    {"GlobalMaxPool", ImportGlobalMax}, {"LpPool", ImportLpPool},
    {"MaxPool", ImportMaxPool},
};

}  // namespace

absl::Span<const ImportRule> PoolRules() { return kPoolRules; }

}  // namespace npuc::onnx
