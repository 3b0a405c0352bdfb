#include "compiler_core/frontends/compass/layer_import.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/quantize.h"

namespace npuc::compass {
namespace {

constexpr int64_t kLargest = int64_t{1} << 31;  // of a number in a list: sums of some stay exact

}  // namespace

int64_t LayerImporter::NumberOr(absl::string_view key, int64_t fallback) const {
  const Entry* const entry = block().Find(key);
  return entry == nullptr ? fallback : ParseInt(entry->value).value_or(fallback);
}

absl::StatusOr<bool> LayerImporter::FlagOr(absl::string_view key, bool fallback) {
  if (!Has(key)) return fallback;
  const std::string text = Text(key);
  if (absl::EqualsIgnoreCase(text, "true")) return true;
  if (absl::EqualsIgnoreCase(text, "false")) return false;
  return FailInvalid(key, absl::StrCat("'", Printable(text), "' is neither true nor false"));
}

absl::StatusOr<double> LayerImporter::RealOr(absl::string_view key, double fallback) {
  if (!Has(key)) return fallback;
  double value = 0;
  if (absl::SimpleAtod(Text(key), &value) && std::isfinite(value)) return value;
  return FailInvalid(key, absl::StrCat("'", Printable(Text(key)), "' is no finite number"));
}

absl::StatusOr<std::vector<int64_t>> LayerImporter::Ints(absl::string_view key, int64_t count) {
  const std::optional<Shape> list = ParseInts(Text(key));
  if (list.has_value() && static_cast<int64_t>(list->size()) == count &&
      std::all_of(list->begin(), list->end(), [](int64_t n) { return std::abs(n) <= kLargest; })) {
    return *list;
  }
  return FailInvalid(key, absl::StrCat("'", Printable(Text(key), 80), "' is no list of ", count,
                                       " whole numbers"));
}

absl::StatusOr<std::vector<Shape>> LayerImporter::Pairs(absl::string_view key, int64_t count) {
  const auto lists = ParseIntLists(Text(key));
  const auto is_pair = [](const Shape& pair) {
    return pair.size() == 2 && std::abs(pair[0]) <= kLargest && std::abs(pair[1]) <= kLargest;
  };
  if (lists.has_value() && static_cast<int64_t>(lists->size()) == count &&
      std::all_of(lists->begin(), lists->end(), is_pair)) {
    return *lists;
  }
  return FailInvalid(key, absl::StrCat("'", Printable(Text(key), 80), "' is no list of ", count,
                                       " pairs of whole numbers"));
}

absl::StatusOr<int64_t> LayerImporter::AxisOr(absl::string_view key, int64_t fallback) {
  const std::string text = TextOr(key, absl::StrCat(fallback));
  const std::optional<int64_t> axis = ParseInt(text);
  if (axis.has_value() && *axis >= -rank(0) && *axis < rank(0)) {
    return *axis < 0 ? *axis + rank(0) : *axis;
  }
  return FailInvalid(
      key, absl::StrCat("'", Printable(text), "' is none of the ", rank(0), " dimensions"));
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

absl::Status LayerImporter::FailWithoutScale(size_t i) {
  return FailInvalid("layer_top_type", absl::StrCat("'", Printable(tops_[i].name), "' is ",
                                                    TypeName(tops_[i].type.dtype),
                                                    " without layer_top_scale and layer_top_zp"));
}

absl::StatusOr<ValueRef> LayerImporter::Finish(ValueRef value, size_t i) {
  const Top& top = tops_[i];
  if (value->type.shape != top.type.shape) {
    return FailAt("layer_top_shape", DiagnosticKind::kOperandMismatch,
                  absl::StrCat(PrintShape(top.type.shape), " is written, ",
                               PrintShape(value->type.shape), " follows"),
                  "write the IR again");
  }
  if (!IsFloat(value->type.dtype)) return value;
  if (!top.quant.has_value()) {
    if (!IsInteger(top.type.dtype)) return value;
    return FailWithoutScale(i);
  }
  AttrMap attrs = QuantizeAttrs(*top.quant);
  AddLayerQuantAttrs(settings_, attrs);
  // The border has the result's name, which the layer need not have.
  const ValueRef source = value;
  frontend::Emitter border(&state(), {top.name, layer_.type});
  ASSIGN_OR_RETURN(const ValueRef integers, border.Emit("Quantize", {source}, std::move(attrs)));
  if (integers->constant.has_value()) {
    return MakeStored({*integers->constant, *top.quant}, {top.name, layer_.type});
  }
  return border.Emit("Dequantize", {integers}, DequantizeAttrs(*top.quant));
}

}  // namespace npuc::compass
