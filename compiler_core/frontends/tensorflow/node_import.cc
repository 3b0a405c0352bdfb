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

NodeImporter::NodeImporter(ImportState* state, const NodeView* node, std::vector<ValueRef> inputs)
    : NodeEmitter(state, {std::string(node->name()), std::string(node->op())}, std::move(inputs)),
      tf_state_(state),
      node_(node) {}

NodeSource NodeImporter::SourceFor(absl::string_view op) const {
  if (!is_rewritten_) return source();
  return {source().name, op == "Concat" ? "ConcatV2" : std::string(op)};
}

absl::Status NodeImporter::ReportAttr(const absl::Status& status) {
  return Fail(DiagnosticKind::kBadAttribute, std::string(status.message()),
              "export the model again");
}

namespace {

// absent -> fallback; wrong kind -> the error.
template <typename T>
absl::StatusOr<T> OrFallback(absl::StatusOr<T> value, T fallback) {
  if (absl::IsNotFound(value.status())) return fallback;
  return value;
}

}  // namespace

absl::StatusOr<bool> NodeImporter::BoolOr(absl::string_view name, bool fallback) {
  absl::StatusOr<bool> value = OrFallback(node_->Bool(name), fallback);
  if (!value.ok()) return ReportAttr(value.status());
  return value;
}
absl::StatusOr<int64_t> NodeImporter::IntOr(absl::string_view name, int64_t fallback) {
  absl::StatusOr<int64_t> value = OrFallback(node_->Int(name), fallback);
  if (!value.ok()) return ReportAttr(value.status());
  return value;
}
absl::StatusOr<double> NodeImporter::FloatOr(absl::string_view name, double fallback) {
  absl::StatusOr<double> value = OrFallback(node_->Float(name), fallback);
  if (!value.ok()) return ReportAttr(value.status());
  return value;
}
absl::StatusOr<std::string> NodeImporter::StringOr(absl::string_view name, std::string fallback) {
  absl::StatusOr<std::string> value = OrFallback(node_->String(name), std::move(fallback));
  if (!value.ok()) return ReportAttr(value.status());
  return value;
}
absl::StatusOr<std::vector<int64_t>> NodeImporter::IntsOr(absl::string_view name,
                                                          std::vector<int64_t> fallback) {
  absl::StatusOr<std::vector<int64_t>> value = OrFallback(node_->Ints(name), std::move(fallback));
  if (!value.ok()) return ReportAttr(value.status());
  return value;
}
absl::StatusOr<std::vector<int64_t>> NodeImporter::RequiredInts(absl::string_view name) {
  absl::StatusOr<std::vector<int64_t>> value = node_->Ints(name);
  if (!value.ok()) return ReportAttr(value.status());
  return value;
}
absl::StatusOr<int64_t> NodeImporter::RequiredInt(absl::string_view name) {
  absl::StatusOr<int64_t> value = node_->Int(name);
  if (!value.ok()) return ReportAttr(value.status());
  return value;
}
absl::StatusOr<int> NodeImporter::RequiredType(absl::string_view name) {
  absl::StatusOr<int> value = node_->Type(name);
  if (!value.ok()) return ReportAttr(value.status());
  return value;
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
