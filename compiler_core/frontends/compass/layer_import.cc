#include "compiler_core/frontends/compass/layer_import.h"

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/quantize.h"

namespace npuc::compass {

int64_t LayerImporter::NumberOr(absl::string_view key, int64_t fallback) const {
  const Entry* const entry = block().Find(key);
  return entry == nullptr ? fallback : ParseInt(entry->value).value_or(fallback);
}

absl::Status LayerImporter::FailAt(absl::string_view key, DiagnosticKind kind,
                                   const std::string& message, std::string fix) {
  const Entry* const entry = block().Find(key);
  Diagnostics found;
  found.Add({.kind = kind,
             .message = entry == nullptr ? message : absl::StrCat(entry->key, ": ", message),
             .file = state().file,
             .line = entry == nullptr ? block().line : entry->line,
             .node = layer_.name,
             .op = layer_.type,
             .fix = std::move(fix)});
  state().diagnostics->Append(found);
  return AlreadyReported(found.ToStatus());
}

absl::Status LayerImporter::FailInvalid(absl::string_view key, const std::string& message) {
  return FailAt(key, DiagnosticKind::kModelFileInvalid, message, "write the IR again");
}

absl::StatusOr<Tensor> LayerImporter::ReadConstant(absl::string_view name) {
  const std::string offset_key = absl::StrCat(name, "_offset");
  if (!Has(offset_key)) return FailInvalid(offset_key, absl::StrCat("has no ", name));
  TensorType type{TypeFromName(Text(absl::StrCat(name, "_type"))),
                  ParseInts(Text(absl::StrCat(name, "_shape"))).value_or(Shape())};
  const absl::Status shape = CheckShape(type.shape);
  if (!shape.ok()) return FailInvalid(absl::StrCat(name, "_shape"), std::string(shape.message()));
  const int64_t size = type.size_bytes();
  if (size > state().constant_bytes_left) {
    return FailAt(offset_key, DiagnosticKind::kModelLimitExceeded,
                  absl::StrCat("the constants up to here take more than ",
                               frontend::kMaxConstantBytes, " bytes"),
                  "compile a smaller model");
  }
  state().constant_bytes_left -= size;
  std::vector<uint8_t> bytes(static_cast<size_t>(size));
  const absl::Status read = bin_.Read(
      NumberOr(offset_key, 0), absl::MakeSpan(reinterpret_cast<char*>(bytes.data()), bytes.size()));
  if (!read.ok()) return FailInvalid(offset_key, std::string(read.message()));
  return Tensor(std::move(type), std::move(bytes));
}

ValueRef LayerImporter::MakeWeight(Tensor values, std::optional<QuantParams> params,
                                   absl::string_view name) {
  const NodeSource source{absl::StrCat(layer_.name, "/", name), "Const"};
  if (params.has_value()) return MakeStored({std::move(values), *std::move(params)}, source);
  ValueRef value = MakeConstant(CastTensor(values, DType::kFloat32));
  value->source = source;
  return value;
}

absl::Status LayerImporter::ReadBits(absl::string_view key, int lowest, int highest, int& bits) {
  const Entry* const entry = block().Find(key);
  if (entry == nullptr) return absl::OkStatus();
  const std::optional<int64_t> value = ParseInt(entry->value);
  if (!value.has_value() || *value < lowest || *value > highest) {
    return FailInvalid(key, absl::StrCat("'", Printable(entry->value), "' is no whole number in ",
                                         lowest, "..", highest));
  }
  bits = static_cast<int>(*value);
  return absl::OkStatus();
}

absl::Status LayerImporter::ReadSettings() {
  RETURN_IF_ERROR(ReadBits("multiplier_bits", kMinMultiplierBits, kMaxMultiplierBits,
                           settings_.multiplier_bits));
  RETURN_IF_ERROR(ReadBits("lut_items_in_bits", kMinLutBits, kMaxLutBits, settings_.lut_bits));
  return ReadBits("bias_effective_bits", kMinBiasBits, kMaxBiasBits, settings_.bias_effective_bits);
}

absl::StatusOr<ValueRef> LayerImporter::Finish(ValueRef value) {
  if (value->type.shape != top_.type.shape) {
    return FailAt("layer_top_shape", DiagnosticKind::kOperandMismatch,
                  absl::StrCat(PrintShape(top_.type.shape), " is written, ",
                               PrintShape(value->type.shape), " follows"),
                  "write the IR again");
  }
  if (!top_.quant.has_value()) return value;
  AttrMap attrs = QuantizeAttrs(*top_.quant);
  AddLayerQuantAttrs(settings_, attrs);
  // The border has the result's name, which the layer need not have.
  const ValueRef source = value;
  frontend::Emitter border(&state(), {top_.name, layer_.type});
  ASSIGN_OR_RETURN(const ValueRef integers, border.Emit("Quantize", {source}, std::move(attrs)));
  if (integers->constant.has_value()) {
    return MakeStored({*integers->constant, *top_.quant}, {top_.name, layer_.type});
  }
  return border.Emit("Dequantize", {integers}, DequantizeAttrs(*top_.quant));
}

}  // namespace npuc::compass
