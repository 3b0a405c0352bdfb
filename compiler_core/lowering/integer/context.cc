#include "compiler_core/lowering/integer/context.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/integer/access.h"
#include "compiler_core/ops/layers.h"

namespace npuc {
namespace {

bool IsActivationType(DType type) {
  return type == DType::kInt8 || type == DType::kUint8 || type == DType::kInt16 ||
         type == DType::kUint16;
}

}  // namespace

void IntegerContext::Begin(const Layer& layer, const LayerQuant& settings) {
  layer_ = &layer;
  settings_ = &settings;
}

const QuantParams* IntegerContext::FindParams(ValueId value) const {
  const auto found = plan_.values.find(value);
  return found == plan_.values.end() ? nullptr : &found->second;
}

const Tensor* IntegerContext::FindIntegers(ValueId constant) const {
  const auto found = plan_.constants.find(constant);
  return found == plan_.constants.end() ? nullptr : &found->second;
}

absl::StatusOr<QuantParams> IntegerContext::ActivationParams(ValueId value) const {
  const QuantParams* params = FindParams(value);
  const std::string& name = graph_.def(value).source.name;
  if (params == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "tensor '", Printable(name), "' has no scale: the model does not quantize it"));
  }
  if (params->scale.size() != 1 || params->zero_point.size() != 1 ||
      !IsActivationType(params->dtype)) {
    return absl::UnimplementedError(absl::StrCat(
        "tensor '", Printable(name), "' is stored as ", std::string(NameOf(params->dtype)),
        " with ", params->scale.size(), " scales; activations have 8 or 16 bits and one"));
  }
  return *params;
}

absl::StatusOr<Tensor> IntegerContext::Integers(ValueId constant, const QuantParams& params) const {
  const Tensor* given = FindIntegers(constant);
  const QuantParams* own = FindParams(constant);
  if (given != nullptr && (own == nullptr || SameParams(*own, params))) return *given;
  const Tensor* values = graph_.ConstantOf(constant);
  if (values == nullptr) return absl::UnimplementedError("an operand that must be constant is not");
  const Shape& shape = values->shape();
  int64_t inner = 1;
  for (size_t d = static_cast<size_t>(params.axis + 1); params.axis >= 0 && d < shape.size(); ++d) {
    inner *= shape[d];
  }
  const int64_t channels = static_cast<int64_t>(params.scale.size());
  TensorType type{params.dtype, shape};
  std::vector<uint8_t> bytes(static_cast<size_t>(type.size_bytes()));
  const size_t size = static_cast<size_t>(SizeOf(params.dtype));
  for (int64_t i = 0; i < values->element_count(); ++i) {
    const size_t channel = static_cast<size_t>(i / inner % channels);
    const int64_t q = StoredOf(values->at(i), params, channel, *settings_);
    std::memcpy(bytes.data() + static_cast<size_t>(i) * size, &q, size);  // little-endian
  }
  return Tensor(std::move(type), std::move(bytes));
}

integer::Result IntegerContext::ResultFor(const QuantParams& params, Operand d) const {
  integer::Result result;
  result.d = d;
  result.type = params.dtype;
  result.zero = static_cast<int32_t>(params.zero_point[0]);
  const StoredRange range = StoredClamps(ClampsOf(graph_, *layer_), params, *settings_);
  result.min = static_cast<int32_t>(range.min);
  result.max = static_cast<int32_t>(range.max);
  return result;
}

absl::StatusOr<Operand> IntegerContext::Input(ValueId value) const {
  const auto found = places_.find(value);
  if (found == places_.end()) {
    return absl::FailedPreconditionError("an operand comes from a layer that was refused");
  }
  return found->second;
}

Operand IntegerContext::Output(ValueId value, const QuantParams& params) {
  const auto waiting = output_places_.find(value);
  Operand place;
  if (waiting != output_places_.end()) {
    place = waiting->second;
    output_places_.erase(waiting);
  } else {
    place = Temporary(graph_.type(value).element_count() * SizeOf(params.dtype));
  }
  places_[value] = place;
  return place;
}

Operand IntegerContext::Temporary(int64_t size_bytes) {
  Buffer buffer;
  buffer.size_bytes = size_bytes;
  buffer.name = layer_->name;
  program_.buffers.push_back(std::move(buffer));
  return {BufferId(static_cast<int32_t>(program_.buffers.size()) - 1), 0};
}

Operand IntegerContext::Constant(const std::vector<uint8_t>& bytes) {
  std::vector<uint8_t>& weights = program_.weights;
  const auto [found, added] = constants_.emplace(std::string(bytes.begin(), bytes.end()),
                                                 static_cast<int64_t>(weights.size()));
  if (added) {
    weights.insert(weights.end(), bytes.begin(), bytes.end());
    weights.resize((weights.size() + integer::kConstantAlignment - 1) /
                   integer::kConstantAlignment * integer::kConstantAlignment);
    program_.buffers[static_cast<size_t>(weights_.value())].size_bytes =
        static_cast<int64_t>(weights.size());
  }
  return {weights_, found->second};
}

Operand IntegerContext::Constant(const std::vector<int64_t>& numbers, int64_t bytes_each) {
  const auto size = static_cast<size_t>(bytes_each);
  std::vector<uint8_t> bytes(numbers.size() * size);
  for (size_t i = 0; i < numbers.size(); ++i) {
    std::memcpy(bytes.data() + i * size, &numbers[i], size);  // little-endian
  }
  return Constant(bytes);
}

Operand IntegerContext::Factors(absl::Span<const Factor> factors) {
  std::vector<uint8_t> bytes(factors.size() * static_cast<size_t>(integer::kFactorBytes));
  for (size_t i = 0; i < factors.size(); ++i) {
    const uint64_t record = static_cast<uint64_t>(factors[i].multiplier) |
                            static_cast<uint64_t>(factors[i].shift) << 31;
    std::memcpy(bytes.data() + integer::kFactorBytes * i, &record, integer::kFactorBytes);
  }
  return Constant(bytes);
}

void IntegerContext::Emit(integer::Body body) {
  program_.commands.push_back({std::move(body), layer_->name});
}

void IntegerContext::Warn(DiagnosticKind kind, std::string message, std::string fix) {
  if (diagnostics_ == nullptr) return;
  diagnostics_->Add({.kind = kind,
                     .message = std::move(message),
                     .file = model_name_,
                     .node = layer_->name,
                     .op = layer_->type,
                     .fix = std::move(fix)});
}

void IntegerContext::AddPort(const std::string& name, ValueId value, std::vector<PortTensor>& ports,
                             int64_t& offset) const {
  const QuantParams& params = *FindParams(value);
  PortTensor port;
  port.name = name;
  port.shape = graph_.type(value).shape;
  port.dtype = params.dtype;
  port.offset_bytes = offset;
  port.scale = params.scale[0];
  port.zero_point = params.zero_point[0];
  offset += ElementCount(port.shape) * SizeOf(port.dtype);
  ports.push_back(std::move(port));
}

// Every border value has been checked to have parameters.
void IntegerContext::DeclarePorts() {
  int64_t offset = 0;
  for (const ValueId input : graph_.inputs()) {
    AddPort(graph_.def(input).source.name, input, program_.inputs, offset);
  }
  int64_t output_bytes = 0;
  for (const GraphOutput& output : graph_.outputs()) {
    AddPort(output.name, output.value, program_.outputs, output_bytes);
  }
  program_.buffers = {{Slot::kInput, offset, 0, "input"},
                      {Slot::kOutput, output_bytes, 0, "output"},
                      {Slot::kWeight, 0, 0, "weights"}};
  weights_ = BufferId(2);
  for (size_t i = 0; i < graph_.inputs().size(); ++i) {
    places_[graph_.inputs()[i]] = {BufferId(0), program_.inputs[i].offset_bytes};
  }
  for (size_t i = 0; i < graph_.outputs().size(); ++i) {
    output_places_.emplace(graph_.outputs()[i].value,
                           Operand{BufferId(1), program_.outputs[i].offset_bytes});
  }
}

std::pair<Factor, Rounding> IntegerContext::FactorFor(double value, bool wide) const {
  if (!exact()) return {MakeFactor(value, settings_->multiplier_bits), Rounding::kEven};
  Factor factor = MakeFactor(value, 31);
  if (!wide) return {factor, Rounding::kDouble};
  // TFLite's arithmetic of 48-bit sums keeps 15 bits of the multiplier.
  constexpr int32_t kRoundsOver = 0x7fff0000;
  factor.multiplier =
      factor.multiplier < kRoundsOver ? (factor.multiplier + (1 << 15)) >> 16 : 0x7fff;
  // TFLite computes nothing of a factor of 2^15 or more.
  factor.multiplier <<= std::max(16 - factor.shift, 0);
  factor.shift = std::max(factor.shift - 16, 0);
  return {factor, Rounding::kUp};
}

std::pair<std::vector<Factor>, Rounding> IntegerContext::FactorsFor(
    absl::Span<const Scaling> scalings) const {
  std::vector<Factor> factors;
  bool fits_32_bits = true;
  for (const auto& [value, largest] : scalings) {
    const Factor factor = MakeFactor(value, settings_->multiplier_bits);
    const int left = factor.multiplier == 0 ? 0 : std::max(0, 31 - factor.shift);
    fits_32_bits = fits_32_bits && largest <= (INT32_MAX >> left);
    factors.push_back(factor);
  }
  if (!exact()) return {std::move(factors), Rounding::kEven};
  return {std::move(factors), fits_32_bits ? Rounding::kDouble : Rounding::kUp};
}

absl::StatusOr<Side> TakeSide(IntegerContext& context, ValueId value) {
  Side side;
  ASSIGN_OR_RETURN(side.params, context.ActivationParams(value));
  if (context.graph().ConstantOf(value) == nullptr) {
    ASSIGN_OR_RETURN(side.place, context.Input(value));
    return side;
  }
  ASSIGN_OR_RETURN(const Tensor stored, context.Integers(value, side.params));
  side.place = context.Constant({stored.bytes().begin(), stored.bytes().end()});
  return side;
}

int64_t LargestOf(const QuantParams& params) {
  return std::max(params.zero_point[0] - integer::LowestValue(params.dtype),
                  integer::HighestValue(params.dtype) - params.zero_point[0]);
}

bool SameParams(const QuantParams& a, const QuantParams& b) {
  return a.dtype == b.dtype && a.scale == b.scale && a.zero_point == b.zero_point;
}

}  // namespace npuc
