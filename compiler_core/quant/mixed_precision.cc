#include "compiler_core/quant/mixed_precision.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/status.h"

namespace npuc {
namespace {

constexpr int kRaisedBits = 16;

// The standard error of a sum of independent values, as a part of the sum.
double RelativeSpread(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  double sum = 0;
  double squares = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
  }
  if (count < 2 || sum <= 0) return 0;
  const double mean = sum / count;
  const double variance = std::max(squares / count - mean * mean, 0.0) * count / (count - 1);
  return std::sqrt(variance * count) / sum;
}

class MixedPrecision {
 public:
  MixedPrecision(QuantState& state, Evaluators& evaluators, const SampleSet& samples,
                 std::vector<std::string>& log)
      : state_(state), evaluators_(evaluators), samples_(samples), log_(log) {
    base_ = state.settings;
    raised_.assign(state.layers.size(), false);
    for (size_t i = 0; i < state.layers.size(); ++i) {
      const Layer& layer = state.layers[i];
      const bool own = state.SourceOf(layer.outputs[0]) == layer.outputs[0];
      const bool low = base_[i].activation_bits < kRaisedBits ||
                       (layer.weight.valid() && base_[i].weight_bits < kRaisedBits);
      if (own && low && !base_[i].in_float) candidates_.push_back(static_cast<int>(i));
      if (layer.weight.valid() && !base_[i].in_float) {
        readers_[layer.weight].push_back(static_cast<int>(i));
      }
    }
  }

  absl::Status Run() {
    ASSIGN_OR_RETURN(Measured now, Measure());
    log_.push_back(
        absl::StrFormat("mixed precision: drop %.6g (at most %.6g) without, threshold %.6g",
                        now.drop, now.bound(), Threshold()));
    if (now.bound() <= Threshold()) return absl::OkStatus();
    ASSIGN_OR_RETURN(std::vector<int> order, ByGain(now.drop));
    for (const int layer : order) {
      if (now.bound() <= Threshold()) break;
      RETURN_IF_ERROR(Raise(layer, true));
      ASSIGN_OR_RETURN(now, Measure());
    }
    if (now.bound() <= Threshold()) RETURN_IF_ERROR(TakeBack(now));
    std::vector<std::string> names;
    for (const int layer : candidates_) {
      if (raised_[layer]) names.push_back(state_.layers[layer].name);
    }
    log_.push_back(absl::StrFormat(
        "mixed precision: %d of %d layers at 16 bits, drop %.6g (at most %.6g)%s: %s", names.size(),
        candidates_.size(), now.drop, now.bound(),
        now.bound() <= Threshold() ? "" : " (the threshold is not met)",
        absl::StrJoin(names, ", ")));
    return LogSplit();
  }

 private:
  double Threshold() const { return state_.options->mixed_precision_threshold; }

  // How much worse than the float model the present settings score, over all samples, and twice the
  // standard error of it: other data of the kind are likely to score within the sum.
  struct Measured {
    double drop = 0;
    double margin = 0;
    double bound() const { return drop + margin; }
  };

  absl::StatusOr<Measured> Measure() {
    const FakeQuants quants = QuantsOf(state_, state_.values);
    ASSIGN_OR_RETURN(std::vector<OutputError> all,
                     evaluators_.search.Outputs(*state_.quantized, quants));
    std::vector<double> samples = evaluators_.search.sample_errors();
    if (!evaluators_.one_set) {
      ASSIGN_OR_RETURN(const std::vector<OutputError> check,
                       evaluators_.check.Outputs(*state_.quantized, quants));
      for (size_t k = 0; k < all.size(); ++k) all[k].Add(check[k]);
      for (const double error : evaluators_.check.sample_errors()) samples.push_back(error);
    }
    if (all.empty()) return Measured{};
    const bool by_cosine = state_.options->mixed_precision_less_is_better;
    double sum = 0;
    for (const OutputError& output : all) {
      sum += by_cosine ? 1 - output.cosine() : output.relative();
    }
    const auto outputs = static_cast<double>(all.size());
    // Where the error is small 1 - cosine is half of error over energy.
    const double spread = RelativeSpread(samples) * SumOf(all) / outputs * (by_cosine ? 0.5 : 1.0);
    return Measured{sum / outputs, 2 * spread};
  }

  static int Bits(int base, bool up) { return up ? std::max(kRaisedBits, base) : base; }

  // A weight has the bits that any of its layers needs; the biases of all follow its scale.
  absl::Status RequantizeWeight(ValueId weight) {
    if (!weight.valid()) return absl::OkStatus();
    const std::vector<int>& layers = readers_.at(weight);
    const bool up = std::any_of(layers.begin(), layers.end(),
                                [this](int reader) { return static_cast<bool>(raised_[reader]); });
    for (const int reader : layers) {
      state_.settings[reader].weight_bits = Bits(base_[reader].weight_bits, up);
    }
    // By the layer that quantized it first.
    RETURN_IF_ERROR(QuantizeWeight(state_, layers.front(), up ? nullptr : &samples_));
    for (const int reader : layers) RETURN_IF_ERROR(QuantizeBias(state_, reader));
    return absl::OkStatus();
  }

  // Sets a layer to 16 bits or back; its weight, and the biases that its results' scales reach.
  absl::Status Raise(int layer, bool up) {
    raised_[layer] = up;
    LayerSettings& settings = state_.settings[layer];
    settings.activation_bits = Bits(base_[layer].activation_bits, up);
    settings.weight_bits = Bits(base_[layer].weight_bits, up);
    RETURN_IF_ERROR(RequantizeWeight(state_.layers[layer].weight));
    ASSIGN_OR_RETURN(const auto activations, ChooseActivationParams(state_));
    std::vector<ValueId> changed = state_.layers[layer].outputs;
    for (const auto& [id, params] : activations) {
      if (state_.values[id] == params) continue;
      state_.values[id] = params;
      changed.push_back(id);
    }
    for (const ValueId id : changed) {
      for (const int consumer : state_.consumers[id.value()]) {
        RETURN_IF_ERROR(QuantizeBias(state_, consumer));
      }
    }
    return absl::OkStatus();
  }

  // Bytes that 16 bits add to a layer.
  double Cost(int layer) const {
    const Layer& l = state_.layers[layer];
    int64_t bytes = 0;
    if (l.weight.valid() && base_[layer].weight_bits <= 8) {
      bytes += state_.graph->type(l.weight).element_count();
    }
    for (const ValueId id : l.outputs) {
      if (base_[layer].activation_bits <= 8) bytes += state_.graph->type(id).element_count();
    }
    return static_cast<double>(std::max<int64_t>(bytes, 1));
  }

  absl::StatusOr<std::vector<int>> ByGain(double drop) {
    std::vector<std::pair<double, int>> gains;
    for (const int layer : candidates_) {
      RETURN_IF_ERROR(Raise(layer, true));
      ASSIGN_OR_RETURN(const Measured with, Measure());
      RETURN_IF_ERROR(Raise(layer, false));
      gains.emplace_back(-(drop - with.drop) / Cost(layer), layer);
      log_.push_back(absl::StrFormat("sensitivity of '%s': %.3e for %.0f bytes",
                                     state_.layers[layer].name, drop - with.drop, Cost(layer)));
    }
    std::sort(gains.begin(), gains.end());
    std::vector<int> order;
    for (const auto& [gain, layer] : gains) order.push_back(layer);
    return order;
  }

  absl::Status TakeBack(Measured& now) {
    std::vector<int> dearest;
    for (const int layer : candidates_) {
      if (raised_[layer]) dearest.push_back(layer);
    }
    std::stable_sort(dearest.begin(), dearest.end(),
                     [&](int a, int b) { return Cost(a) > Cost(b); });
    for (const int layer : dearest) {
      RETURN_IF_ERROR(Raise(layer, false));
      ASSIGN_OR_RETURN(const Measured without, Measure());
      if (without.bound() <= Threshold()) {
        now = without;
      } else {
        RETURN_IF_ERROR(Raise(layer, true));
      }
    }
    return absl::OkStatus();
  }

  // What the other tool's way takes: every layer behind one index at 16 bits, the index by halves.
  absl::Status LogSplit() {
    const std::vector<bool> chosen = raised_;
    const auto set_all = [&](const auto& wanted) {
      for (size_t i = 0; i < candidates_.size(); ++i) {
        const int layer = candidates_[i];
        if (raised_[layer] == wanted(i)) continue;
        const absl::Status status = Raise(layer, wanted(i));
        if (!status.ok()) return status;
      }
      return absl::OkStatus();
    };
    size_t low = 0;  // layers from this candidate on are raised: at 0 all are
    size_t high = candidates_.size();
    while (low < high) {
      const size_t middle = (low + high + 1) / 2;
      RETURN_IF_ERROR(set_all([&](size_t i) { return i >= middle; }));
      ASSIGN_OR_RETURN(const Measured split, Measure());
      if (split.bound() <= Threshold()) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    double split_bytes = 0;
    double chosen_bytes = 0;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      if (i >= low) split_bytes += Cost(candidates_[i]);
      if (chosen[candidates_[i]]) chosen_bytes += Cost(candidates_[i]);
    }
    log_.push_back(absl::StrFormat(
        "mixed precision: %.0f bytes more; raising every layer behind one index takes %d layers, "
        "%.0f bytes",
        chosen_bytes, candidates_.size() - low, split_bytes));
    return set_all([&](size_t i) { return static_cast<bool>(chosen[candidates_[i]]); });
  }

  QuantState& state_;
  Evaluators& evaluators_;
  const SampleSet& samples_;
  std::vector<std::string>& log_;
  std::vector<LayerSettings> base_;
  std::vector<bool> raised_;  // by layer
  std::vector<int> candidates_;
  std::map<ValueId, std::vector<int>> readers_;  // layers by their weights
};

}  // namespace

absl::Status SearchMixedPrecision(QuantState& state, Evaluators& evaluators,
                                  const SampleSet& samples, std::vector<std::string>& log) {
  if (state.options->mixed_precision_batches < 1) return absl::OkStatus();
  return MixedPrecision(state, evaluators, samples, log).Run();
}

}  // namespace npuc
