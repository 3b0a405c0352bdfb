#include "compiler_core/frontends/darknet/layer_import.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/activations.h"

namespace npuc::darknet {
namespace {

// Between two bounds, by Clip().
Term Clamped(const Term& x, double low, double high) { return Min(Max(x, low), high); }

Term Loggy(const Term& x) { return Sigmoid(x) * 2.0 - 1.0; }
Term Relie(const Term& x) { return frontend::LeakyRelu(x, 0.01); }
Term LeakyOfTenth(const Term& x) { return frontend::LeakyRelu(x, 0.1); }
Term Relu6(const Term& x) { return Apply("Relu6", x); }
Term EluOfOne(const Term& x) { return frontend::Elu(x, 1, 1); }
Term Selu(const Term& x) { return frontend::Elu(x, 1.6732, 1) * 1.0507; }
Term Ramp(const Term& x) {
  const Term above = Relu(x);
  return above + x * 0.1;
}
// A line from 0 to 1 over -4..4, beyond which it goes on with a slope of 1/100.
Term Plse(const Term& x) {
  const Term inside = Clamped(x * 0.125 + 0.5, 0, 1);
  const Term clamped = Clamped(x, -4, 4);
  const Term beyond = x - clamped;
  return inside + beyond * 0.01;
}
Term HardTanh(const Term& x) { return Clamped(x, -1, 1); }
// x between 0 and 1, beyond which it goes on with a slope of 1/1000.
Term LeakyHardTanh(const Term& x) {
  const Term inside = Clamped(x, 0, 1);
  const Term beyond = x - inside;
  return inside + beyond * 0.001;
}
// x above 0, x * x / 2 + x above -2, else 0.
Term HardMish(const Term& x) {
  const Term above = Relu(x);
  const Term below = Clamped(x, -2, 0);
  const Term factor = below * 0.5 + 1.0;
  return above + below * factor;
}

struct Activation {
  absl::string_view name;
  Term (*formula)(const Term& x);
};
constexpr Activation kActivations[] = {
    {"elu", EluOfOne},
    {"gelu", frontend::GeluByProducts},
    {"hard_mish", HardMish},
    {"hardtan", HardTanh},
    {"leaky", LeakyOfTenth},
    {"lhtan", LeakyHardTanh},
    {"loggy", Loggy},
    {"logistic", frontend::Sigmoid},
    {"mish", frontend::Mish},
    {"plse", Plse},
    {"ramp", Ramp},
    {"relie", Relie},
    {"relu", frontend::Relu},
    {"relu6", Relu6},
    {"revleaky", LeakyOfTenth},
    {"selu", Selu},
    {"swish", frontend::Silu},
    {"tanh", frontend::Tanh},
};
constexpr char kLinear[] = "linear";
// Those that look at all channels of a place.
constexpr absl::string_view kOverChannels[] = {"normalize_channels", "normalize_channels_softmax",
                                               "normalize_channels_softmax_maxval"};

// Parts of a sum over the channels, of what is positive or of powers of e.
Term NormalizedChannels(const Term& x, absl::string_view name, int64_t channels) {
  constexpr double kEpsilon = 1e-4;
  Term part = Relu(x);
  if (name == "normalize_channels_softmax") part = Exp(x);
  if (name == "normalize_channels_softmax_maxval") {
    const Term greatest = Reduced("ReduceMax", x, {channels}, true);
    part = Exp(x - greatest);
  }
  const Term sum = Reduced("ReduceSum", part, {channels}, true) + kEpsilon;
  return part / sum;
}

}  // namespace

std::string ReadActivation(LayerOptions& options, absl::string_view fallback) {
  std::string name = options.Text("activation", fallback);
  std::vector<absl::string_view> known = {kLinear};
  for (const Activation& activation : kActivations) known.push_back(activation.name);
  known.insert(known.end(), std::begin(kOverChannels), std::end(kOverChannels));
  if (std::find(known.begin(), known.end(), name) != known.end()) return name;
  const std::string nearest = NearestMatch(name, known);
  options.FailMode("activation",
                   absl::StrCat("activation '", Printable(name, 40), "' is not supported",
                                nearest.empty() ? "" : "; the nearest supported one is ", nearest));
  return kLinear;
}

absl::StatusOr<ValueRef> LayerImporter::Activated(const ValueRef& x, absl::string_view activation,
                                                  int64_t channels) {
  if (activation == kLinear) return x;
  const Term term(*this, x);
  for (const Activation& known : kActivations) {
    if (known.name == activation) return known.formula(term).value;
  }
  return NormalizedChannels(term, activation, channels).value;
}

absl::StatusOr<ValueRef> LayerImporter::Weights(absl::string_view what, Shape shape) {
  RETURN_IF_ERROR(CheckShape(shape));
  const int64_t count = ElementCount(shape);
  const int64_t size = count * static_cast<int64_t>(sizeof(float));
  if (size > state().constant_bytes_left) {
    return Fail(DiagnosticKind::kModelLimitExceeded,
                absl::StrCat("the weights up to here take more than ", frontend::kMaxConstantBytes,
                             " bytes"),
                "compile a smaller model");
  }
  state().constant_bytes_left -= size;
  std::vector<uint8_t> bytes(static_cast<size_t>(size));
  const WeightsFile& file = darknet_state_.weights;
  const int64_t at =
      file.begin + (layer_.weights_at + taken_) * static_cast<int64_t>(sizeof(float));
  RETURN_IF_ERROR(
      file.bytes->Read(at, absl::MakeSpan(reinterpret_cast<char*>(bytes.data()), bytes.size())));
  taken_ += count;
  return frontend::ConstantValue(Tensor({DType::kFloat32, std::move(shape)}, std::move(bytes)),
                                 {absl::StrCat(layer_.name, "/", what), "Const"});
}

absl::StatusOr<ValueRef> LayerImporter::Row(const ValueRef& value) {
  const Shape& shape = value->type.shape;
  return Reshaped(value, {shape[0], value->type.element_count() / std::max<int64_t>(shape[0], 1)});
}

ValueRef LayerImporter::State(absl::string_view what, int64_t size) {
  return state().AddInput(absl::StrCat(layer_.name, "_", what), {DType::kFloat32, {batch(), size}},
                          layer_.section->type);
}

void LayerImporter::SetState(absl::string_view what, ValueRef next) {
  darknet_state_.next_states.emplace_back(absl::StrCat(layer_.name, "_", what, "_out"),
                                          std::move(next));
}

frontend::RuleTable<LayerType> AllLayerTypes() {
  return {WeightTypes(), WindowTypes(), JoinTypes(), ElementTypes(), RecurrentTypes(), EndTypes()};
}

}  // namespace npuc::darknet
