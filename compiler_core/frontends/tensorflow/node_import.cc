#include "compiler_core/frontends/tensorflow/node_import.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/evaluator.h"

namespace npuc::tf {

const ControlFacts& FactsOf(const ImportValue& value) {
  static const ControlFacts none;
  return value.facts == nullptr ? none : static_cast<const ControlFacts&>(*value.facts);
}

ValueRef AllOnes(NodeImporter& node, TensorType type) {
  auto facts = std::make_shared<ControlFacts>();
  facts->is_all_ones = true;
  auto value = std::make_shared<ImportValue>();
  value->type = type;
  value->source = node.source();
  value->facts = std::move(facts);
  value->compute = [state = &node.state(), view = &node.node(),
                    type = std::move(type)]() -> absl::StatusOr<ValueRef> {
    NodeImporter importer(state, view, {});
    const auto too_large = [&](std::string message) {
      return importer.Fail(DiagnosticKind::kModelLimitExceeded, std::move(message),
                           "compile a smaller model");
    };
    if (type.size_bytes() > state->constant_bytes_left) {
      return too_large(absl::StrCat("ones of ", TypeToString(type), " exceed the ",
                                    kMaxConstantBytes, " bytes that constants may take"));
    }
    const Tensor one = CastTensor(Tensor::FromInts({}, {1}), type.dtype);
    absl::StatusOr<Tensor> ones = EvaluateBroadcast(one, type.shape);
    if (!ones.ok()) return too_large(std::string(ones.status().message()));
    state->constant_bytes_left -= type.size_bytes();
    return importer.MakeConstant(*std::move(ones));
  };
  return value;
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

absl::StatusOr<DType> NodeImporter::IndexTypeOr(absl::string_view attr, DType fallback) {
  if (!node().HasAttr(attr)) return fallback;
  ASSIGN_OR_RETURN(const int type, RequiredType(attr));
  const DType dtype = DTypeFromWire(type);
  if (IsInteger(dtype)) return dtype;
  return Fail(DiagnosticKind::kBadAttribute,
              absl::StrCat("attribute '", attr, "' is ", DataTypeName(type),
                           "; it must be an integer type"),
              "export the model again");
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
