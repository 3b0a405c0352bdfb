#include "compiler_core/frontends/paddle/op_import.h"

#include <algorithm>
#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

namespace npuc::paddle {

int OpImporter::At(absl::string_view parameter) const {
  int at = 0;
  for (const auto& [name, arguments] : node().inputs()) {
    if (name == parameter) return at;
    at += static_cast<int>(arguments.size());
  }
  return -1;
}

std::vector<ValueRef> OpImporter::All(absl::string_view parameter) const {
  std::vector<ValueRef> values;
  int at = At(parameter);
  for (const auto& [name, arguments] : node().inputs()) {
    if (name != parameter) continue;
    for (size_t i = 0; i < arguments.size(); ++i) values.push_back(input(at++));
    break;
  }
  return values;
}

ValueRef OpImporter::Optional(absl::string_view parameter) const {
  const int at = At(parameter);
  return at < 0 ? nullptr : input(at);
}

absl::StatusOr<ValueRef> OpImporter::In(absl::string_view parameter) {
  const ValueRef value = Optional(parameter);
  if (value != nullptr) return value;
  return Fail(DiagnosticKind::kOperandCount,
              absl::StrCat("the operator has no operand '", parameter, "'"),
              "export the model again");
}

absl::StatusOr<std::vector<int64_t>> OpImporter::IntsAt(absl::string_view parameter,
                                                        absl::string_view list,
                                                        absl::string_view attribute) {
  if (!parameter.empty() && Takes(parameter)) return ConstantInts(At(parameter), parameter);
  if (!list.empty() && Takes(list)) {
    std::vector<int64_t> values;
    const int first = At(list);
    for (size_t i = 0; i < All(list).size(); ++i) {
      ASSIGN_OR_RETURN(const std::vector<int64_t> value,
                       ConstantInts(first + static_cast<int>(i), list));
      if (value.size() != 1) return absl::InvalidArgumentError("a list where one number stands");
      values.push_back(value[0]);
    }
    return values;
  }
  return IntsOr(attribute, {});
}

absl::StatusOr<double> OpImporter::FloatAt(absl::string_view parameter, absl::string_view attribute,
                                           double fallback) {
  if (!Takes(parameter)) return FloatOr(attribute, fallback);
  ASSIGN_OR_RETURN(const Tensor value, Constant(At(parameter), parameter));
  if (value.element_count() != 1) return absl::InvalidArgumentError("a list where a number stands");
  return value.at(0);
}

absl::Status OpImporter::Give(absl::string_view parameter, ValueRef value) {
  results_[std::string(parameter)] = {std::move(value)};
  return absl::OkStatus();
}

absl::Status OpImporter::Give(absl::string_view parameter, absl::StatusOr<ValueRef> value) {
  RETURN_IF_ERROR(value.status());
  return Give(parameter, *std::move(value));
}

absl::Status OpImporter::Give(absl::string_view parameter, std::vector<ValueRef> values) {
  results_[std::string(parameter)] = std::move(values);
  return absl::OkStatus();
}

size_t OpImporter::ResultCount(absl::string_view parameter) const {
  for (const auto& [name, arguments] : node().outputs()) {
    if (name == parameter) return arguments.size();
  }
  return 0;
}

absl::Status OpImporter::RefuseFused() {
  ASSIGN_OR_RETURN(const std::string activation, StringOr("fuse_activation", ""));
  bool is_fused = !activation.empty() || Takes("ResidualData");
  for (const char* flag : {"fuse_relu", "fuse_with_relu", "fuse_residual_connection"}) {
    ASSIGN_OR_RETURN(const bool is_set, BoolOr(flag, false));
    is_fused = is_fused || is_set;
  }
  for (const char* list : {"fused_reshape_X", "fused_transpose_X", "fused_reshape_Y",
                           "fused_transpose_Y", "fused_reshape_Out", "fused_transpose_Out"}) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, IntsOr(list, {}));
    is_fused = is_fused || !numbers.empty();
  }
  if (!is_fused) return absl::OkStatus();
  return FailMode("operators fused into this one",
                  "export the model without optimizing it for inference");
}

absl::StatusOr<bool> IsChannelsLast(OpImporter& node, absl::string_view attribute) {
  ASSIGN_OR_RETURN(const std::string format, node.StringOr(attribute, "NCHW"));
  constexpr absl::string_view kLast[] = {"NHWC", "NDHWC", "NWC", "NLC"};
  constexpr absl::string_view kFirst[] = {"NCHW", "NCDHW", "NCW", "NCL", "NC", "AnyLayout", ""};
  if (absl::c_linear_search(kLast, format)) return true;
  if (absl::c_linear_search(kFirst, format)) return false;
  return node.FailMode(absl::StrCat(attribute, " '", Printable(format, 40), "'"),
                       "export the model with NCHW");
}

frontend::RuleTable<ImportRule> AllRules() {
  return {ActivationRules(), ElementwiseRules(), WindowRules(), NormRules(),
          LinearRules(),     ShapeRules(),       PickRules(),   ConstantRules(),
          QuantizedRules(),  RecurrentRules()};
}

bool DecodesBoxes(absl::string_view op) {
  constexpr absl::string_view kOps[] = {
      "bipartite_match",    "box_coder",          "box_decoder_and_assign",
      "detection_output",   "generate_proposals", "generate_proposals_v2",
      "locality_aware_nms", "matrix_nms",         "multiclass_nms",
      "multiclass_nms2",    "multiclass_nms3",    "yolo_box",
      "yolo_box_head",      "yolo_box_post"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

}  // namespace npuc::paddle
