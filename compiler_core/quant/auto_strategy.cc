#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "compiler_core/base/status.h"
#include "compiler_core/quant/state.h"

namespace npuc {
namespace {

using StrategyKind = QuantStrategy::Kind;

std::vector<QuantStrategy> Candidates(const QuantState& state) {
  std::vector<QuantStrategy> all = {{StrategyKind::kExtrema, 0},
                                    {StrategyKind::kMean, 0},
                                    {StrategyKind::kStd, 3},
                                    {StrategyKind::kStd, 6},
                                    {StrategyKind::kPercentile, 0.9999},
                                    {StrategyKind::kKld, 0},
                                    {StrategyKind::kAciqLaplace, 0},
                                    {StrategyKind::kAciqGauss, 0}};
  if (!state.in_ir.empty()) all.push_back({StrategyKind::kInIr, 0});
  return all;
}

// Whether the mean of a is below that of b by over twice its standard error, sample by sample: a
// difference that other samples are likely to show as well.
bool IsClearlyLess(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size() || a.size() < 2) return false;
  const auto count = static_cast<double>(a.size());
  double sum = 0;
  double squares = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    sum += b[i] - a[i];
    squares += (b[i] - a[i]) * (b[i] - a[i]);
  }
  const double mean = sum / count;
  const double variance = std::max(squares / count - mean * mean, 0.0);
  return mean > 2 * std::sqrt(variance / (count - 1));
}

class Search {
 public:
  Search(QuantState& state, Evaluators& evaluators, std::vector<std::string>& log)
      : state_(state),
        evaluator_(evaluators.search),
        check_(evaluators.check),
        log_(log),
        candidates_(Candidates(state)) {
    for (size_t i = 0; i < state.layers.size(); ++i) {
      const QuantStrategy& strategy = state.settings[i].activation_strategy;
      if (IsMeasured(strategy)) layers_.push_back(static_cast<int>(i));
      if (strategy.kind == StrategyKind::kAuto) refined_.push_back(static_cast<int>(i));
    }
  }

  absl::Status Run() {
    if (layers_.empty()) return absl::OkStatus();
    RETURN_IF_ERROR(TrySingles());
    if (refined_.empty()) {
      log_.push_back(absl::StrFormat("calibration best_single: %s, error %.3e at the outputs",
                                     name_of_best_, best_.all));
      return absl::OkStatus();
    }
    const std::vector<LayerSettings> best_single = state_.settings;
    if (RefineWork() > kMostRefineWork) {
      log_.push_back(absl::StrFormat(
          "calibration auto: error %.3e at the outputs by the best single strategy (%s) for all "
          "tensors; to choose tensor by tensor would take about %.1e products, the limit is %.1e",
          best_.all, name_of_best_, RefineWork(), kMostRefineWork));
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(Refine());
    ASSIGN_OR_RETURN(const Measured refined, Measure());
    // The search's own samples say that any choice made by them is good; the others may not.
    const bool holds = refined.all < best_.all && IsClearlyLess(refined.samples, best_.samples);
    if (!holds) state_.settings = best_single;
    log_.push_back(absl::StrFormat(
        "calibration auto: error %.3e at the outputs, best single %.3e (%s); on samples that did "
        "not choose, strategies by tensor have %.3e, the best single %.3e",
        holds ? refined.all : best_.all, best_.all, name_of_best_, refined.check, best_.check));
    return absl::OkStatus();
  }

 private:
  // Some minutes: beyond that each tensor has the best single strategy.
  static constexpr double kMostRefineWork = 0x1p37;
  // Each layer tries every strategy on each sample from where it stands: half a run in the mean.
  double RefineWork() const {
    return WorkOf(*state_.graph) * static_cast<double>(refined_.size() * candidates_.size()) *
           static_cast<double>(evaluator_.size()) / 2;
  }

  struct Measured {
    double check = std::numeric_limits<double>::infinity();
    double all = std::numeric_limits<double>::infinity();  // with the samples of the search
    std::vector<double> samples;                           // of check
  };

  // A value that the model gives no range for cannot take in_ir.
  bool Set(int layer, const QuantStrategy& strategy) {
    if (strategy.kind == StrategyKind::kInIr) {
      for (const ValueId id : state_.layers[layer].outputs) {
        if (!state_.in_ir.contains(id)) return false;
      }
    }
    state_.settings[layer].activation_strategy = strategy;
    return true;
  }

  absl::StatusOr<Measured> Measure() {
    ASSIGN_OR_RETURN(const auto values, ChooseActivationParams(state_));
    const FakeQuants quants = QuantsOf(state_, values);
    ASSIGN_OR_RETURN(const std::vector<OutputError> check,
                     check_.Outputs(*state_.quantized, quants));
    ASSIGN_OR_RETURN(std::vector<OutputError> all, evaluator_.Outputs(*state_.quantized, quants));
    for (size_t k = 0; k < all.size(); ++k) all[k].Add(check[k]);
    return Measured{SumOf(check), SumOf(all), check_.sample_errors()};
  }

  absl::Status TrySingles() {
    std::vector<LayerSettings> best;
    for (const QuantStrategy& strategy : candidates_) {
      for (const int layer : layers_) {
        if (!Set(layer, strategy)) Set(layer, {StrategyKind::kExtrema, 0});
      }
      ASSIGN_OR_RETURN(const Measured measured, Measure());
      log_.push_back(absl::StrFormat("calibration %s: error %.3e at the outputs", NameOf(strategy),
                                     measured.all));
      if (!(measured.all < best_.all)) continue;
      best_ = measured;
      best = state_.settings;
      name_of_best_ = NameOf(strategy);
    }
    // Where nothing is finite, extrema at least covers what was seen.
    if (best.empty()) {
      for (const int layer : layers_) Set(layer, {StrategyKind::kExtrema, 0});
    } else {
      state_.settings = std::move(best);
    }
    return absl::OkStatus();
  }

  // Each layer in order: what precedes it is settled and has run.
  absl::Status Refine() {
    evaluator_.Restart();
    ASSIGN_OR_RETURN(auto values, ChooseActivationParams(state_));
    for (const int layer : refined_) {
      if (state_.SourceOf(state_.layers[layer].outputs[0]) != state_.layers[layer].outputs[0]) {
        continue;  // has no parameters of its own
      }
      const int step = state_.layers[layer].nodes.back().value();
      RETURN_IF_ERROR(evaluator_.Advance(*state_.quantized, QuantsOf(state_, values), step));
      RETURN_IF_ERROR(RefineLayer(layer, values));
    }
    return absl::OkStatus();
  }

  // On the search's samples, from where they stand.
  absl::StatusOr<double> ErrorOf(const std::map<ValueId, QuantParams>& values) {
    ASSIGN_OR_RETURN(const std::vector<OutputError> errors,
                     evaluator_.Finish(*state_.quantized, QuantsOf(state_, values)));
    return SumOf(errors);
  }

  absl::Status RefineLayer(int layer, std::map<ValueId, QuantParams>& values) {
    const QuantStrategy before = state_.settings[layer].activation_strategy;
    ASSIGN_OR_RETURN(double least, ErrorOf(values));
    QuantStrategy best = before;
    std::vector<std::map<ValueId, QuantParams>> tried = {values};
    for (const QuantStrategy& strategy : candidates_) {
      if (strategy == before || !Set(layer, strategy)) continue;
      ASSIGN_OR_RETURN(auto changed, ChooseActivationParams(state_));
      if (std::find(tried.begin(), tried.end(), changed) != tried.end()) continue;
      tried.push_back(changed);
      ASSIGN_OR_RETURN(const double error, ErrorOf(changed));
      if (error >= least) continue;
      least = error;
      best = strategy;
      values = std::move(changed);
    }
    Set(layer, best);
    return absl::OkStatus();
  }

  QuantState& state_;
  Evaluator& evaluator_;
  Evaluator& check_;
  std::vector<std::string>& log_;
  std::vector<QuantStrategy> candidates_;
  std::vector<int> layers_;   // that a strategy is searched for
  std::vector<int> refined_;  // of these, each on its own
  Measured best_;             // of the best single strategy
  std::string name_of_best_ = "extrema";
};

}  // namespace

absl::Status ChooseStrategies(QuantState& state, Evaluators& evaluators,
                              std::vector<std::string>& log) {
  return Search(state, evaluators, log).Run();
}

}  // namespace npuc
