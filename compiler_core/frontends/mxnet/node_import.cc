#include "compiler_core/frontends/mxnet/node_import.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

namespace npuc::mxnet {

absl::StatusOr<std::vector<int64_t>> NodeImporter::AxesOr(absl::string_view name,
                                                          std::vector<int64_t> fallback) {
  ASSIGN_OR_RETURN(std::vector<int64_t> axes, IntsOr(name, {}));
  if (axes.empty()) return fallback;
  return Axes(std::move(axes), rank(0));
}

absl::StatusOr<int64_t> NodeImporter::AxisOr(absl::string_view name, int64_t fallback) {
  ASSIGN_OR_RETURN(const int64_t axis, IntOr(name, fallback));
  return Axis(axis, rank(0));
}

absl::Status NodeImporter::BadChoice(absl::string_view name, absl::string_view value,
                                     absl::string_view allowed) {
  return FailMode(absl::StrCat("attribute '", name, "' is '", Printable(value, 60), "'"),
                  absl::StrCat("use ", allowed));
}

frontend::RuleTable<ImportRule> AllRules() {
  return {ElementwiseRules(), ActivationRules(), LayerRules(),     NormRules(),
          ShapeRules(),       ReduceRules(),     RecurrentRules(), SelectionRules()};
}

}  // namespace npuc::mxnet
