#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "compiler_core/base/status.h"
#include "compiler_core/quant/state.h"

namespace npuc {
namespace {

using Kind = QuantStrategy::Kind;

std::vector<QuantStrategy> Candidates(const QuantState& state) {
  std::vector<QuantStrategy> all = {{Kind::kExtrema, 0},
                                    {Kind::kMean, 0},
                                    {Kind::kStd, 3},
                                    {Kind::kStd, 6},
                                    {Kind::kPercentile, 0.9999},
                                    {Kind::kKld, 0},
                                    {Kind::kAciqLaplace, 0},
                                    {Kind::kAciqGauss, 0}};
  if (!state.in_ir.empty()) all.push_back({Kind::kInIr, 0});
  return all;
}

class Search {
 public:
  Search(QuantState& state, Evaluator& evaluator, std::vector<std::string>& log)
      : state_(state), evaluator_(evaluator), log_(log), candidates_(Candidates(state)) {
    for (size_t i = 0; i < state.layers.size(); ++i) {
      const bool wanted = state.settings[i].activation_strategy.kind == Kind::kAuto;
      if (wanted) layers_.push_back(static_cast<int>(i));
    }
  }

  absl::Status Run() {
    if (layers_.empty()) return absl::OkStatus();
    RETURN_IF_ERROR(TrySingles());
    const std::vector<LayerSettings> best_single = state_.settings;
    RETURN_IF_ERROR(Refine());
    ASSIGN_OR_RETURN(const double refined, WholeError());
    if (!(refined < best_error_)) state_.settings = best_single;
    log_.push_back(absl::StrFormat("calibration auto: error %.3e at the outputs, best single %.3e",
                                   std::min(refined, best_error_), best_error_));
    return absl::OkStatus();
  }

 private:
  // A value that the model gives no range for cannot take in_ir.
  bool Set(int layer, const QuantStrategy& strategy) {
    if (strategy.kind == Kind::kInIr) {
      for (const ValueId id : state_.layers[layer].outputs) {
        if (!state_.in_ir.contains(id)) return false;
      }
    }
    state_.settings[layer].activation_strategy = strategy;
    return true;
  }

  absl::StatusOr<double> WholeError() {
    ASSIGN_OR_RETURN(const auto values, ChooseActivationParams(state_));
    evaluator_.Restart();
    return evaluator_.Finish(*state_.quantized, QuantsOf(state_, values));
  }

  absl::Status TrySingles() {
    std::vector<LayerSettings> best;
    for (const QuantStrategy& strategy : candidates_) {
      for (const int layer : layers_) {
        if (!Set(layer, strategy)) Set(layer, {Kind::kExtrema, 0});
      }
      ASSIGN_OR_RETURN(const double error, WholeError());
      log_.push_back(
          absl::StrFormat("calibration %s: error %.3e at the outputs", NameOf(strategy), error));
      if (error >= best_error_) continue;
      best_error_ = error;
      best = state_.settings;
    }
    // Where nothing is finite, extrema at least covers what was seen.
    if (best.empty()) {
      for (const int layer : layers_) Set(layer, {Kind::kExtrema, 0});
    } else {
      state_.settings = std::move(best);
    }
    return absl::OkStatus();
  }

  // Each layer in order: what precedes it is settled and has run.
  absl::Status Refine() {
    evaluator_.Restart();
    ASSIGN_OR_RETURN(auto values, ChooseActivationParams(state_));
    for (const int layer : layers_) {
      if (state_.SourceOf(state_.layers[layer].outputs[0]) != state_.layers[layer].outputs[0]) {
        continue;  // has no parameters of its own
      }
      const int step = state_.layers[layer].nodes.back().value();
      RETURN_IF_ERROR(evaluator_.Advance(*state_.quantized, QuantsOf(state_, values), step));
      RETURN_IF_ERROR(RefineLayer(layer, values));
    }
    return absl::OkStatus();
  }

  absl::Status RefineLayer(int layer, std::map<ValueId, QuantParams>& values) {
    const QuantStrategy before = state_.settings[layer].activation_strategy;
    ASSIGN_OR_RETURN(double least, evaluator_.Finish(*state_.quantized, QuantsOf(state_, values)));
    QuantStrategy best = before;
    std::vector<std::map<ValueId, QuantParams>> tried = {values};
    for (const QuantStrategy& strategy : candidates_) {
      if (strategy == before || !Set(layer, strategy)) continue;
      ASSIGN_OR_RETURN(auto changed, ChooseActivationParams(state_));
      if (std::find(tried.begin(), tried.end(), changed) != tried.end()) continue;
      tried.push_back(changed);
      ASSIGN_OR_RETURN(const double error,
                       evaluator_.Finish(*state_.quantized, QuantsOf(state_, changed)));
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
  std::vector<std::string>& log_;
  std::vector<QuantStrategy> candidates_;
  std::vector<int> layers_;
  double best_error_ = std::numeric_limits<double>::infinity();
};

}  // namespace

absl::Status ChooseStrategies(QuantState& state, Evaluator& evaluator,
                              std::vector<std::string>& log) {
  return Search(state, evaluator, log).Run();
}

}  // namespace npuc
