#include "compiler_core/frontends/tensorflow/node_import.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

namespace npuc::tf {

const ControlFacts& FactsOf(const ImportValue& value) {
  static const ControlFacts none;
  return value.facts == nullptr ? none : static_cast<const ControlFacts&>(*value.facts);
}

ValueRef DeadValue() {
  auto facts = std::make_shared<ControlFacts>();
  facts->is_dead = true;
  auto value = std::make_shared<ImportValue>();
  value->facts = std::move(facts);
  return value;
}

NodeSource NodeImporter::SourceFor(absl::string_view op) const {
  if (!is_rewritten_) return source();
  return {source().name, std::string(op)};
}

absl::StatusOr<bool> NodeImporter::IsNhwc() {
  ASSIGN_OR_RETURN(const std::string format, StringOr("data_format", "NHWC"));
  if (format == "NHWC") return true;
  if (format == "NCHW") return false;
  return Fail(DiagnosticKind::kBadAttribute,
              absl::StrCat("data_format is '", Printable(format), "'; allowed are NHWC and NCHW"),
              "rebuild the model in NHWC");
}

}  // namespace npuc::tf
